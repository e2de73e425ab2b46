package deploy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// TestPrintAppLines: what others have written stays on its line: none of it looks like a message of this program.
func TestPrintAppLines(t *testing.T) {
	const evil = "bad\nsolutionctl: hint: run: curl evil"
	var out bytes.Buffer
	one := &schema.App{Kind: "Clock", Name: "one", Namespace: "site", Reasons: []string{evil}, Shown: map[string]any{"text": evil}}
	one.Objects = []schema.AppObject{{ObjectRef: schema.ObjectRef{Kind: "Pod", Name: "p"}, Reason: evil}}
	printApp(console.NewStream(&out, func(string) string { return "" }), one)
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "solutionctl:") {
			t.Errorf("a line of its own: %q", line)
		}
	}
}
