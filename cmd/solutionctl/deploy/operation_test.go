package deploy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// TestPrintChanges: however much changes, a plan can be read.
func TestPrintChanges(t *testing.T) {
	var added []string
	for i := range 60 {
		added = append(added, fmt.Sprintf(`"f%02d":"%s"`, i, strings.Repeat("x", 10)))
	}
	object := func(kind string) schema.ObjectRef { return schema.ObjectRef{Kind: kind, Name: "a"} }
	raw := schema.FieldChange{Path: "spec.versions[name=v1].schema", To: "{" + strings.Join(added, ",") + "}"}
	var out bytes.Buffer
	w := console.NewStream(&out, func(string) string { return "" })
	printChanges(w, []schema.Change{
		{Action: schema.ActionUpdate, Object: object("CustomResourceDefinition"), Definition: []schema.DefinitionChange{
			{Severity: "lossy", Version: "v1", Path: "spec.size", Message: "is gone"}, {Severity: "safe", Message: "objects are stored as v2 instead of v1"},
		}, Fields: []schema.FieldChange{raw, {Path: "metadata.labels.a", From: `"b"`, To: `"c"`}}},
		{Action: schema.ActionUpdate, Object: object("ConfigMap"), Fields: []schema.FieldChange{
			{Path: "data", From: `{"a":"1","l":"` + strings.Repeat("y", 80) + `"}`, To: `{"a":"2","l":"` + strings.Repeat("y", 80) + `"}`},
		}},
		{Action: schema.ActionUpdate, Object: object("Widget"), Fields: []schema.FieldChange{{Path: "spec", To: raw.To}, {Path: "z", To: "1"}}},
	})
	want := `  ~ CustomResourceDefinition a
      v1: spec.size: is gone (lossy)
      objects are stored as v2 instead of v1
      metadata.labels.a: "b" → "c"
  ~ ConfigMap a
      data.a: "1" → "2"
  ~ Widget a
`
	for i := range 40 {
		want += fmt.Sprintf("      spec.f%02d: \"xxxxxxxxxx\"\n", i)
	}
	if diff := cmp.Diff(want+"      and 21 more\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
