package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestDirectives refuses more directives than real files have, for every line ending: the YAML library needs quadratic time
// for them.
func TestDirectives(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028"} {
		var text strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&text, "%%TAG !a%d! tag:x,2000:%s", i, end)
		}
		text.WriteString("---\na: 1\n")
		_, err := schema.ParseYAML("x.yaml", []byte(text.String()))
		if err == nil || !strings.Contains(err.Error(), "more than 150000 keys, items, comments and documents") {
			t.Errorf("%q: got %v", end, err)
		}
	}
	documents, err := schema.ParseYAML("x.yaml", []byte("%YAML 1.1\n%TAG !a! tag:x,2000:\n---\na: 100%\nb: |\n"+strings.Repeat(" %x %\n", 50_000)))
	if err != nil || len(documents) != 1 {
		t.Errorf("got %v", err)
	}
}
