package schema

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// routineLabels change with each version, and mean nothing to the objects that have them.
var routineLabels = []string{"[app.kubernetes.io/version]", "[helm.sh/chart]"}

// OnlyLabels reports whether nothing but labels of the object changes.
func (c *Change) OnlyLabels() bool {
	return c.Action == ActionUpdate && c.Note == "" && len(c.Fields) > 0 && len(c.Definition) == 0 &&
		!slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return !strings.HasPrefix(f.Path, "metadata.labels") })
}

// Leaves takes the fields of a change apart. For a CustomResourceDefinition whose effects are known it leaves out the schemas.
func (c *Change) Leaves() (leaves []FieldChange) {
	for _, field := range c.Fields {
		if len(c.Definition) > 0 && strings.HasPrefix(field.Path, "spec.versions") {
			continue
		}
		more, _ := field.Leaves(math.MaxInt)
		leaves = append(leaves, more...)
	}
	return leaves
}

// Brief is [Change.Leaves] without the labels that change with each version, if there is anything else.
func (c *Change) Brief() []FieldChange {
	leaves := c.Leaves()
	rest := slices.DeleteFunc(slices.Clone(leaves), func(f FieldChange) bool {
		return slices.ContainsFunc(routineLabels, func(label string) bool { return strings.HasSuffix(f.Path, "labels"+label) })
	})
	if len(rest)+len(c.Definition) == 0 {
		return leaves
	}
	return rest
}

// Brief is [FieldChange.Excerpt], but describes certificates, and compressed and encoded records, instead of showing their beginning.
func (f FieldChange) Brief() (from, to string) {
	from, to = f.Excerpt()
	before, after := f.describe(f.From), f.describe(f.To)
	switch {
	case before != "" && before == after:
		return before, "another one"
	case before != "":
		from = before
	}
	if after != "" {
		to = after
	}
	return from, to
}

// describe describes a value that a person cannot read; "" for any other.
func (f FieldChange) describe(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) != nil || text == "" {
		return ""
	}
	switch {
	case f.Path == "caBundle", strings.HasSuffix(f.Path, ".caBundle"):
		return "own certificate"
	case strings.HasPrefix(text, "-----BEGIN CERTIFICATE-----"):
		return "certificate"
	case len(text) <= enoughAsOne:
		return ""
	}
	content, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return ""
	case len(content) > 2 && content[0] == 0x1f && content[1] == 0x8b:
		return "compressed record, " + report.Bytes(int64(len(content)))
	case len(text) > maxShown:
		return "encoded record, " + report.Bytes(int64(len(content)))
	default:
		return ""
	}
}
