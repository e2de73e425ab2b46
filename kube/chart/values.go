package chart

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ValueProblem is a value that values.schema.json does not allow. The message does not contain the value, which may be secret.
type ValueProblem struct{ Path, Message string }

// CheckValues returns what values.schema.json of the chart and of its enabled subcharts do not allow of values, over the defaults of the chart.
func (c *Chart) CheckValues(given map[string]any) ([]ValueProblem, error) {
	enabled, values, err := c.complete(given)
	if err != nil {
		return nil, err
	}
	b := newSchemaBudget()
	if err = b.checkValues(enabled, values, ""); len(b.problems) > 0 {
		return b.problems, nil
	}
	return nil, err
}

// checkValues validates values against values.schema.json of the chart and of its subcharts. prefix is the path of the chart's values.
func (b *schemaBudget) checkValues(c *engine.Chart, values map[string]any, prefix string) error {
	var errs []error
	if len(c.Schema) > 0 {
		err := b.checkSchema(c.Schema, values)
		if failure, ok := errors.AsType[*invalidValues](err); ok {
			for _, p := range failure.problems {
				b.problems = append(b.problems, ValueProblem{strings.TrimSuffix(prefix+p.Path, "."), p.Message})
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	for _, sub := range c.Subcharts {
		own, ok := values[sub.Name].(map[string]any)
		if !ok {
			continue
		}
		if err := b.checkValues(sub, own, prefix+joinKeys(sub.Name)+"."); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// invalidValues is the error about values that violate a schema.
type invalidValues struct {
	problems []ValueProblem
	more     int // that are left out
}

func (e *invalidValues) Error() string {
	list := schema.Strings(e.problems)
	if e.more > 0 {
		list = append(list, fmt.Sprintf("and %d more", e.more))
	}
	return strings.Join(list, "; ")
}

// String returns the problem with the path of the value in its chart.
func (p ValueProblem) String() string {
	return report.Cut(cmp.Or(p.Path, "the whole"), maxComplaint) + ": " + p.Message
}

// maxComplaints is how many things that are wrong with values are reported together.
const maxComplaints = 20

// violations lists the violations of a schema without the values, which may be secret.
func violations(failure *jsonschema.ValidationError) *invalidValues {
	var list []ValueProblem
	var collect func(f *jsonschema.ValidationError)
	collect = func(f *jsonschema.ValidationError) {
		for _, cause := range f.Causes {
			collect(cause)
		}
		if len(f.Causes) == 0 {
			list = append(list, violation(f)...)
		}
	}
	collect(failure)
	slices.SortFunc(list, func(a, b ValueProblem) int { return strings.Compare(a.String(), b.String()) })
	shown := min(len(list), maxComplaints)
	return &invalidValues{list[:shown], len(list) - shown}
}

func violation(failure *jsonschema.ValidationError) (list []ValueProblem) {
	at := failure.InstanceLocation
	add := func(keys []string, text string) {
		list = append(list, ValueProblem{report.Cut(joinKeys(keys...), maxComplaint), report.Cut(text, maxComplaint)})
	}
	switch k := failure.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(append(slices.Clone(at), name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(append(slices.Clone(at), name), "is not among the values of the chart")
		}
	case *kind.Pattern:
		add(at, "does not match pattern "+k.Want)
	case *kind.Format:
		add(at, "is not valid "+k.Want)
	case *kind.Minimum:
		add(at, "is less than "+k.Want.RatString())
	case *kind.ExclusiveMinimum:
		add(at, "is not more than "+k.Want.RatString())
	case *kind.Maximum:
		add(at, "is more than "+k.Want.RatString())
	case *kind.ExclusiveMaximum:
		add(at, "is not less than "+k.Want.RatString())
	case *kind.MultipleOf:
		add(at, "is not a multiple of "+k.Want.RatString())
	default:
		_, text, _ := strings.Cut(failure.Error(), "': ") // behind the place
		add(at, text)
	}
	return list
}

const maxComplaint = 1000 // bytes

// noLoader keeps a schema from reading other documents.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not in the chart", url)
}

// MergeValues puts values over others, table by table; null removes a default of the chart. Neither argument is
// changed.
func MergeValues(under, over map[string]any) map[string]any {
	merged := copyValues(under)
	for key, value := range over {
		if table, ok := value.(map[string]any); ok {
			below, _ := merged[key].(map[string]any)
			value = MergeValues(below, table)
		}
		merged[key] = value
	}
	return merged
}

// copyValues copies tables, but shares other values.
func copyValues(values map[string]any) map[string]any {
	result := make(map[string]any, len(values))
	for key, value := range values {
		if m, ok := value.(map[string]any); ok {
			value = copyValues(m)
		}
		result[key] = value
	}
	return result
}
