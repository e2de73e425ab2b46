package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
)

// TestYAMLOfChartsIsBounded loads charts whose YAML takes much more memory than they have bytes.
func TestYAMLOfChartsIsBounded(t *testing.T) {
	annotations := func(size, aliases int) string {
		text := "annotations:\n  a: &a " + strings.Repeat("x", size) + "\n"
		for i := range aliases {
			text += fmt.Sprintf("  b%d: *a\n", i)
		}
		return text
	}
	chart := func(name, more string) engine.File {
		_, base, _ := strings.Cut("/"+name, "/charts/")
		return engine.File{Name: name + "Chart.yaml", Data: []byte("name: web" + strings.Trim(base, "/") + "\nversion: 1.0.0\n" + more)}
	}
	var subcharts []engine.File
	for i := range 10 {
		subcharts = append(subcharts, chart(fmt.Sprintf("charts/s%d/", i), annotations(1<<18, 40)))
	}
	const tooMuch, together = "aliases make more than", "the YAML of the chart and its subcharts has more than"
	for name, test := range map[string]struct {
		files []engine.File
		want  string
	}{
		"aliases in Chart.yaml":        {[]engine.File{chart("", annotations(1<<20, 100))}, tooMuch},
		"aliases in requirements.yaml": {[]engine.File{chart("", ""), {Name: "requirements.yaml", Data: []byte(annotations(1<<20, 100))}}, tooMuch},
		"aliases in subcharts":         {append(subcharts, chart("", "")), together},
		"many documents":               {[]engine.File{chart("", ""), {Name: "values.yaml", Data: []byte(strings.Repeat("---\n", 100_000))}}, together},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.Load(test.files); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %.300v, want %q", err, test.want)
			}
		})
	}
}
