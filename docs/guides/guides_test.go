package guides_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/docs/guides"
)

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		printed string
		want    []string
		missing string
	}{
		"nothing is said":  {"a\n", nil, ""},
		"the same":         {"a\nb\n", []string{"a", "b"}, ""},
		"begins later":     {"x\na\nb\n", []string{"a", "b"}, ""},
		"left out":         {"a\nx\ny\nb\n", []string{"a", "…", "b"}, ""},
		"not left out":     {"a\nx\nb\n", []string{"a", "b"}, "b"},
		"other order":      {"b\na\n", []string{"a", "…", "b"}, "b"},
		"part of the line": {"abc\n", []string{"ab"}, "ab"},
		"any text":         {"a is b.\n", []string{"a … b."}, ""},
		"other text":       {"a is b!\n", []string{"a … b."}, "a … b."},
		"nothing":          {"", []string{"a"}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			line, missing := guides.Step{Output: test.want}.Missing(test.printed)
			if line != test.missing || missing != (test.missing != "") {
				t.Errorf("got %q, %v", line, missing)
			}
		})
	}
}
