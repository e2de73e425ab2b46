package schema_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for name, test := range map[string]struct{ from, to, wantFrom, wantTo string }{
		"short":                  {`"1"`, `"2"`, `"1"`, `"2"`},
		"new":                    {"", `"2"`, "", `"2"`},
		"long and new":           {"", long, "", long[:100] + "… (1048576 bytes)"},
		"long, differs late":     {long + "b", long + "c", "…" + long[:20] + "b (1048577 bytes)", "…" + long[:20] + "c (1048577 bytes)"},
		"long becomes its start": {long + "b", "a", long[:100] + "… (1048577 bytes)", "a"},
		"inside of a character":  {strings.Repeat("é", 200), strings.Repeat("é", 200) + "x", "…" + strings.Repeat("é", 10) + " (400 bytes)", "…" + strings.Repeat("é", 10) + "x (401 bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := schema.FieldChange{From: test.from, To: test.to}.Excerpt()
			if from != test.wantFrom || to != test.wantTo {
				t.Errorf("got %q → %q", from, to)
			}
		})
	}
}
