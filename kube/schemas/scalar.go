package schemas

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/schema/report"
)

// node is a reduced schema, as the generator writes it.
type node struct {
	Type       string           `json:"t"`
	Format     string           `json:"f"`
	Ref        *int             `json:"$"`
	Properties map[string]*node `json:"p"`
	Required   []string         `json:"r"`
	Items      *node            `json:"i"`
	Values     *node            `json:"a"`
	Enum       []string         `json:"e"`
	Keys       []string         `json:"k"`
	Set        bool             `json:"u"`
	Default    any              `json:"d"`
}

// entryKey is the identity of a list entry; "" when it has none.
func (n *node) entryKey(entry any, item *node) string {
	if n.Set {
		return fmt.Sprint(entry)
	}
	m, ok := entry.(map[string]any)
	if !ok {
		return ""
	}
	var key strings.Builder
	for _, name := range n.Keys {
		value := m[name]
		if value == nil && item != nil && item.Properties[name] != nil {
			value = item.Properties[name].Default
		}
		if value != nil {
			fmt.Fprintf(&key, "%d:%v,", len(fmt.Sprint(value)), value)
		}
	}
	return key.String()
}

func (n *node) keyNames() string {
	if n.Set {
		return "value"
	}
	return strings.Join(n.Keys, " and ")
}

func (v *checker) scalar(value any, n *node, at *path) {
	switch n.Format {
	case "quantity":
		v.quantity(value, at)
		return
	case "int-or-string":
		if _, ok := value.(string); !ok {
			v.integer(value, "int32", at)
		}
		return
	}
	switch n.Type {
	case "string":
		text, ok := value.(string)
		if _, date := value.(time.Time); date && n.Format == "date-time" {
			return // YAML decoders turn unquoted dates into times
		}
		if !ok {
			v.addProblem(at, Problem{Reason: WrongType, Message: "expected a string, got " + typeName(value), Unquoted: isScalar(value)})
			return
		}
		v.text(text, n, at)
	case "integer":
		v.integer(value, n.Format, at)
	case "number":
		if !isNumber(value) {
			v.add(at, WrongType, "expected a number, got %s", typeName(value))
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			v.add(at, WrongType, "expected true or false, got %s", typeName(value))
		}
	}
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func (v *checker) text(text string, n *node, at *path) {
	switch {
	case text == "" || at.status:
		return // the server fills in the default
	case len(n.Enum) > 0 && !slices.Contains(n.Enum, text):
		v.add(at, WrongValue, "%q is not one of %s", text, strings.Join(n.Enum, ", "))
	case n.Format == "date-time":
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			v.add(at, WrongValue, "%q is not a time of the form 2006-01-02T15:04:05Z", text)
		}
	case n.Format == "byte":
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			v.add(at, WrongValue, "is not base64")
		}
	}
}

func (v *checker) quantity(value any, at *path) {
	var text string
	switch q := value.(type) {
	case string:
		text = q
	default:
		if !isNumber(value) {
			v.add(at, WrongType, "expected a quantity, got %s", typeName(value))
			return
		}
		text = fmt.Sprint(value)
	}
	if _, err := resource.ParseQuantity(text); err != nil {
		v.add(at, WrongValue, "%q is not a quantity: expected a number with a suffix such as m, Ki, Mi, Gi, k, M or G", text)
	}
}

func (v *checker) integer(value any, format string, at *path) {
	var number int64
	switch i := value.(type) {
	case int:
		number = int64(i)
	case int32:
		number = int64(i)
	case int64:
		number = i
	case uint64:
		number = int64(min(i, math.MaxInt64)) //nolint:gosec // bounded by min
	case json.Number:
		parsed, err := i.Int64()
		if err != nil {
			v.add(at, WrongType, "expected an integer, got %s", i)
			return
		}
		number = parsed
	case float64:
		if i != math.Trunc(i) || math.Abs(i) >= 1<<63 {
			v.add(at, WrongType, "expected an integer, got %v", i)
			return
		}
		number = int64(i)
	default:
		v.add(at, WrongType, "expected an integer, got %s", typeName(value))
		return
	}
	if format == "int32" && (number > math.MaxInt32 || number < math.MinInt32) {
		v.add(at, WrongValue, "%d does not fit in 32 bits", number)
	}
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, int32, int64, uint64, float64, json.Number:
		return true
	}
	return false
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case time.Time:
		return "a date"
	}
	if isNumber(value) {
		return "a number"
	}
	return fmt.Sprintf("%T", value)
}

// labels checks the labels of a metadata block, which the description calls a map of strings.
func (v *checker) labels(metadata map[string]any, at *path) {
	labels, _ := metadata["labels"].(map[string]any)
	for name, value := range labels {
		entry := path{parent: &path{parent: at, key: "labels"}, key: name}
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			v.add(&entry, WrongValue, "%q is not a label name: %s", name, problems[0])
		}
		if text, ok := value.(string); ok {
			if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
				v.add(&entry, WrongValue, "%q is not a label value: %s", text, problems[0])
			}
		}
	}
}

// unknownField names the field that was probably meant.
func unknownField(name string, n *node) string {
	best, distance := "", len(name)/3+1
	for _, known := range slices.Sorted(maps.Keys(n.Properties)) {
		if strings.EqualFold(name, known) {
			return fmt.Sprintf("unknown field; did you mean %s?", known)
		}
		if d := report.EditDistance(name, known); d < distance {
			best, distance = known, d
		}
	}
	if best == "" {
		return "unknown field"
	}
	return fmt.Sprintf("unknown field; did you mean %s?", best)
}
