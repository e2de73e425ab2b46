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
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkValues validates values against values.schema.json of the chart and of its subcharts.
func (b *schemaBudget) checkValues(c *engine.Chart, values map[string]any) error {
	var errs []error
	if len(c.Schema) > 0 {
		if err := b.checkSchema(c.Schema, values); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	for _, sub := range c.Subcharts {
		own, ok := values[sub.Name].(map[string]any)
		if !ok {
			continue
		}
		if err := b.checkValues(sub, own); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxComplaints is how many things that are wrong with values are reported together.
const maxComplaints = 20

// complaints lists the violations of a schema without the values, which may be secret.
func complaints(failure *jsonschema.ValidationError) (list []string) {
	var failures []*jsonschema.ValidationError
	var collect func(f *jsonschema.ValidationError)
	collect = func(f *jsonschema.ValidationError) {
		for _, cause := range f.Causes {
			collect(cause)
		}
		if len(f.Causes) == 0 {
			failures = append(failures, f)
		}
	}
	collect(failure)
	slices.SortFunc(failures, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	for _, f := range failures[:min(len(failures), maxComplaints)] {
		list = append(list, complaint(f))
	}
	slices.Sort(list)
	if more := len(failures) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}

func complaint(failure *jsonschema.ValidationError) (text string) {
	switch k := failure.ErrorKind.(type) {
	case *kind.Pattern:
		text = "does not match pattern " + k.Want
	case *kind.Format:
		text = "is not valid " + k.Want
	case *kind.Minimum:
		text = "is less than " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		text = "is not more than " + k.Want.RatString()
	case *kind.Maximum:
		text = "is more than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		text = "is not less than " + k.Want.RatString()
	case *kind.MultipleOf:
		text = "is not a multiple of " + k.Want.RatString()
	default:
		_, text, _ = strings.Cut(failure.Error(), "': ") // behind the place
	}
	place := cmp.Or(strings.Join(failure.InstanceLocation, "."), "the whole")
	return report.Cut(place, maxComplaint) + ": " + report.Cut(text, maxComplaint)
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
