package schema_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestCheckYAMLAliases(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for _, test := range []struct{ name, data, want string }{
		{"text many times", "a: &a " + text + "\nb: [" + strings.Repeat("*a,", 1000) + "]", "aliases make more than 500000 values or 16777216 bytes"},
		{"lists of lists", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [" + strings.Repeat("*a,", 1000) + "]\nc: [" + strings.Repeat("*b,", 1000) + "]", "aliases make more than"},
		{"key many times", "a: &a {" + text[:1000] + ": 1}\nb: [" + strings.Repeat("*a,", 100_000) + "]", "aliases make more than"},
		{"breaks outside of ASCII", "a: &a " + text + "\nb: [" + strings.Repeat("\u2028*a\u2028,", 1000) + "]", "aliases make more than"},
		{"anchor after a tag", "a: !!str &a " + text + "\nb: [" + strings.Repeat("*a,", 1000) + "]", "aliases make more than"},
		{"anchor in a flow", "{a: [&a " + text + "],b: [" + strings.Repeat("*a,", 1000) + "]}", "aliases make more than"},
		{"anchor after a quoted key", "{\"a\":&a " + text + ",b: [" + strings.Repeat("*a,", 1000) + "]}", "aliases make more than"},
		{"few", "a: &a " + text + "\nb: [*a, *a]", ""},
		{"no aliases", "a: b && *c\ncron: '*/5 * * * *'\n", ""},
		{"in itself", "a: &a [*a]", ""}, // the parser reports it
		{"not YAML", "a: &a {\n*b", ""},
	} {
		err := schema.CheckYAML("values.yaml", []byte(test.data))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: err = %v, want %q", test.name, err, test.want)
		}
	}
}
