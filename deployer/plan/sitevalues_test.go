package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
)

func described(paths ...string) schema.ComponentValues {
	var c schema.ComponentValues
	for _, path := range paths {
		c.Values = append(c.Values, schema.ChartValue{AppField: schema.AppField{Path: path}})
	}
	return c
}

// TestWithSite: values that the chart does not have are added, unless they are within one of its values, or around one.
func TestWithSite(t *testing.T) {
	site := map[string]any{
		"a": 1, "b": map[string]any{"c": 2, "d": 3}, "e": map[string]any{"f": map[string]any{"g": 4}}, "h": map[string]any{}, "i.j": 5, "k": 6,
	}
	for name, test := range map[string]struct {
		chart, want []string
	}{
		"a chart without values":           {nil, []string{"a", "b.c", "b.d", "e.f.g", "h", `i\.j`, "k"}},
		"the same":                         {[]string{"a", "b.c"}, []string{"a", "b.c", "b.d", "e.f.g", "h", `i\.j`, "k"}},
		"a table of the chart around it":   {[]string{"b", "e.f"}, []string{"a", "b", "e.f", "h", `i\.j`, "k"}},
		"values of the chart within it":    {[]string{"a.x.y", "h.z"}, []string{"a.x.y", "b.c", "b.d", "e.f.g", "h.z", `i\.j`, "k"}},
		"names with the same beginning":    {[]string{"b.cc", "ee"}, []string{"a", "b.c", "b.cc", "b.d", "e.f.g", "ee", "h", `i\.j`, "k"}},
		"a name with a dot is not a table": {[]string{"i", "i.j.l"}, []string{"a", "b.c", "b.d", "e.f.g", "h", "i", "i.j.l", `i\.j`, "k"}},
	} {
		var got []string
		for _, v := range withSite(described(test.chart...), site).Values {
			got = append(got, v.Path)
		}
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestWithSiteOfManyValues: the time grows with the number of values, and not with its square.
func TestWithSiteOfManyValues(t *testing.T) {
	took := func(n int) time.Duration {
		site, paths := map[string]any{}, make([]string, n)
		for i := range n {
			site[fmt.Sprint("site", i)] = map[string]any{"x": i}
			paths[i] = fmt.Sprintf("chart%d.x", i)
		}
		c, started := described(paths...), time.Now()
		if got := len(withSite(c, site).Values); got != 2*n || len(chart.Paths(site)) != n {
			t.Fatalf("%d values", got)
		}
		return time.Since(started)
	}
	few, many := time.Hour, time.Hour
	for range 5 { // in turn, as the machine may be busy
		few, many = min(few, took(5_000)), min(many, took(20_000))
	}
	if many > 10*few { // four times as many; comparing each with each takes sixteen times as long
		t.Errorf("it takes %s instead of %s", many, few)
	}
}

// TestSecretsOfTheSite: a screen gets no value of a site that has a secret in it.
func TestSecretsOfTheSite(t *testing.T) {
	site := map[string]any{
		"env":     []any{map[string]any{"name": "HOST", "value": "a"}, map[string]any{"name": "DB_PASSWORD", "value": "b"}},
		"plain":   []any{map[string]any{"name": "HOST", "value": "a"}, map[string]any{"automountServiceAccountToken": true}},
		"clients": []any{map[string]any{"clientSecret": "c"}},
	}
	c := described("env", "plain", "clients")
	for i := range c.Values {
		c.Values[i].Type = "any"
	}
	for _, v := range withSite(c, site).Values {
		if want := v.Path != "plain"; v.Secret != want || (v.Value == "") != want || (v.Type == "array") != want {
			t.Errorf("%s: %s, secret %t, shown %q", v.Path, v.Type, v.Secret, v.Value)
		}
	}
}
