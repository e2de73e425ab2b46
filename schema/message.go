package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/solutionctl/solutionctl/schema/report"
)

func (c *checker) unknownField(path []string, s *jsonschema.Schema) {
	severity := report.SeverityError
	if c.row.foreign {
		severity = report.SeverityWarning
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	hint := didYouMean(path[len(path)-1], known, "the fields here are "+strings.Join(known, ", "))
	c.addKey(severity, "unknown-field", path, hint, "unknown field")
}

// didYouMean is the hint to the name that another one is most likely a misspelling of, else to all.
func didYouMean(got string, known []string, all string) string {
	if near := report.Nearest(got, known); near != "" {
		return "did you mean " + near + "?"
	}
	return all
}

// translate turns errors of the validator into findings.
func (c *checker) translate(failure *jsonschema.ValidationError) {
	at := slices.Clone(failure.InstanceLocation)
	switch k := failure.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			if path := append(slices.Clone(at), name); !c.reported(path) {
				c.add(report.SeverityError, "missing-field", path, "", "is missing")
			}
		}
		return
	case *kind.PropertyNames:
		return // checkKey reports it; the validator does not know the object
	}
	if len(failure.Causes) == 0 {
		c.badValue(at, failure)
		return
	}
	for _, cause := range failure.Causes {
		c.translate(cause)
	}
}

// checkKey checks the key that ends path by the propertyNames of its object's schema.
func (c *checker) checkKey(path []string, object *jsonschema.Schema) {
	if object.PropertyNames == nil {
		return
	}
	key, names := path[len(path)-1], target(object.PropertyNames)
	if names.Validate(key) != nil {
		c.addKey(report.SeverityError, "bad-key", path, patternHint(names.Location, key), "key %q is not %s", key, names.Description)
	}
}

func (c *checker) badValue(path []string, failure *jsonschema.ValidationError) {
	words := ""
	if s := c.row.schema().byLocation[failure.SchemaURL]; s != nil {
		words = s.Description
	}
	rule, hint, message := "bad-value", "", ""
	switch k := failure.ErrorKind.(type) {
	case *kind.Type:
		rule = "wrong-type"
		message = fmt.Sprintf("want %s, got %s", article(k.Want[0]), article(k.Got))
		if k.Want[0] == "string" && k.Got != "object" && k.Got != "array" && k.Got != "null" {
			hint = fmt.Sprintf("write %q in quotes", c.doc.SourceText(path...))
		}
	case *kind.Pattern:
		message = fmt.Sprintf("%q is not %s", k.Got, words)
		hint = patternHint(failure.SchemaURL, k.Got)
	case *kind.Minimum:
		message = fmt.Sprintf("%s is not %s", k.Got.RatString(), words)
	case *kind.Maximum:
		message = fmt.Sprintf("%s is not %s", k.Got.RatString(), words)
	case *kind.Format:
		message = fmt.Sprintf("%q is not %s", k.Got, cmp.Or(words, k.Want))
	case *kind.Enum:
		message, hint = enumMessage(k)
	case *kind.Const:
		message = fmt.Sprintf("want %q, got %q", k.Want, k.Got)
	case *kind.MinLength, *kind.MinItems, *kind.MinProperties:
		message = "is empty"
	case *kind.MaxLength:
		message = fmt.Sprintf("has %d characters, more than %d", k.Got, k.Want)
	case *kind.MaxItems:
		message = fmt.Sprintf("has %d items, more than %d", k.Got, k.Want)
	case *kind.UniqueItems:
		path = append(path, strconv.Itoa(k.Duplicates[1]))
		message = fmt.Sprintf("is the same as item %d", k.Duplicates[0])
	default:
		message = failure.Error()
	}
	c.add(report.SeverityError, rule, path, hint, "%s", message)
}

// patternHint completes what is nearly a version.
func patternHint(location, got string) string {
	if strings.HasSuffix(location, "/$defs/version") {
		if _, err := ParseVersion(got); err != nil {
			return report.Hints(err)[0]
		}
	}
	if strings.HasSuffix(location, "/$defs/imageRef") && !strings.Contains(got, ":") {
		return "write it as name:tag"
	}
	return ""
}

func enumMessage(k *kind.Enum) (message, hint string) {
	var words, quoted []string
	for _, want := range k.Want {
		words = append(words, fmt.Sprint(want))
		quoted = append(quoted, shownValue(want))
	}
	return fmt.Sprintf("%s is not one of %s", shownValue(k.Got), strings.Join(quoted, ", ")), didYouMean(fmt.Sprint(k.Got), words, "")
}

// shownValue returns a value as text, with quotes that distinguish the string "true" from the boolean.
func shownValue(value any) string {
	switch value.(type) {
	case bool, nil:
		return fmt.Sprint(value)
	default:
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
}

// article returns a JSON type in words, with its article.
func article(jsonType string) string {
	switch jsonType {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "integer":
		return "a whole number"
	case "null":
		return "nothing"
	default:
		return "a " + jsonType
	}
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
