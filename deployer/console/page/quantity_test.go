package page

import (
	"net/url"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestQuantity checks which fields are a number with a unit, and that a form gives back the value that it shows.
func TestQuantity(t *testing.T) {
	for name, test := range map[string]struct {
		field                       schema.AppField
		value                       string
		kind, number, unit, changed string // changed is the value after another number is typed
	}{
		"a size":                     {schema.AppField{Path: "data.size", Type: "string", Default: `"8Gi"`}, "20Gi", "quantity", "20", "Gi", "7Gi"},
		"the default size":           {schema.AppField{Path: "data.size", Type: "string", Default: `"8Ti"`}, "", "quantity", "", "Ti", "7Ti"},
		"a size without a unit":      {schema.AppField{Path: "data.size", Type: "string", Default: `"8Gi"`}, "20", "text", "20", "", "7"},
		"a size by its pattern":      {schema.AppField{Path: "data.size", Type: "string", Pattern: "^[0-9]+(Gi|Ti)$"}, "", "quantity", "", "Gi", "7Gi"},
		"processors":                 {schema.AppField{Path: "resources.limits.cpu", Type: "integer or string", Default: `"500m"`}, "2", "quantity", "2", "", "7"},
		"thousandths of a processor": {schema.AppField{Path: "resources.limits.cpu", Type: "string", Default: "1"}, "250m", "quantity", "250", "m", "7m"},
		"the default processors":     {schema.AppField{Path: "cpu", Type: "string", Default: `"500m"`}, "", "quantity", "", "m", "7m"},
		"no default":                 {schema.AppField{Path: "cpu", Type: "string"}, "", "quantity", "", "", "7"},
		"another notation":           {schema.AppField{Path: "cpu", Type: "string"}, "2e3", "text", "2e3", "", "7"},
		"a pattern with thousandths": {schema.AppField{Path: "cpu", Type: "string", Pattern: "^[0-9]+m$"}, "", "quantity", "", "m", "7m"},
		"a model of a processor":     {schema.AppField{Path: "cpu", Type: "string", Default: `"haswell"`}, "", "text", "", "", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			c := controlOf(test.field, FieldValue{Value: test.value}, "spec.x")
			unit := ""
			for _, one := range c.Units {
				if one.Selected {
					unit = one.Value
				}
			}
			if c.Kind != test.kind || c.Value != test.number || unit != test.unit {
				t.Errorf("%s %q %q, want %s %q %q", c.Kind, c.Value, unit, test.kind, test.number, test.unit)
			}
			form := url.Values{"spec.x": {c.Value}, "unit:spec.x": {unit}}
			if got, _ := Typed(&test.field, form, "spec.x"); got != test.value {
				t.Errorf("sent back is %q, want %q", got, test.value)
			}
			form.Set("spec.x", "7")
			if got, _ := Typed(&test.field, form, "spec.x"); got != test.changed {
				t.Errorf("changed to %q, want %q", got, test.changed)
			}
		})
	}
}
