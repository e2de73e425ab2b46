package deploy

import (
	"bytes"
	"encoding/base64"
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
	}, false)
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

// TestFoldedChanges: without --verbose a plan counts objects that get other labels only, and describes certificates and records.
func TestFoldedChanges(t *testing.T) {
	label := schema.FieldChange{Path: "metadata.labels[app.kubernetes.io/version]", From: `"1.9.0"`, To: `"1.10.0"`}
	record := base64.StdEncoding.EncodeToString(append([]byte{0x1f, 0x8b}, make([]byte, 1000)...))
	webhook := fmt.Sprintf(`{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":%q,"service":{"name":"shop","namespace":"shop-system"}}}}`, strings.Repeat("LS0tLS1C", 80))
	changes := []schema.Change{
		{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Role", Name: "a"}, Fields: []schema.FieldChange{label}},
		{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Deployment", Name: "shop"}, Fields: []schema.FieldChange{
			label, {Path: "spec.template.spec.containers[name=a].image", From: `"a:1"`, To: `"a:2"`},
		}},
		{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Service", Name: "b"}, Fields: []schema.FieldChange{{Path: "metadata.labels", To: `{"a":"b"}`}}},
		{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "ConfigMap", Name: "shop"}, Fields: []schema.FieldChange{{Path: "data.forms", To: fmt.Sprintf("%q", record)}}},
		{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "CustomResourceDefinition", Name: "shops"}, Fields: []schema.FieldChange{{Path: "spec.conversion", To: webhook}}},
	}
	for name, test := range map[string]struct {
		fold bool
		want string
	}{
		"folded": {true, `  ~ Deployment shop
      spec.template.spec.containers[name=a].image: "a:1" → "a:2"
  ~ ConfigMap shop
      data.forms: compressed record, 1002 B
  ~ CustomResourceDefinition shops
      spec.conversion.strategy: "Webhook"
      spec.conversion.webhook.clientConfig.caBundle: own certificate
      spec.conversion.webhook.clientConfig.service: {"name":"shop","namespace":"shop-system"}
  ~ 2 objects: labels only
`},
		"verbose": {false, `  ~ Role a
      metadata.labels[app.kubernetes.io/version]: "1.9.0" → "1.10.0"
  ~ Deployment shop
      metadata.labels[app.kubernetes.io/version]: "1.9.0" → "1.10.0"
      spec.template.spec.containers[name=a].image: "a:1" → "a:2"
  ~ Service b
      metadata.labels: {"a":"b"}
  ~ ConfigMap shop
      data.forms: "H4sAAAAA`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			printChanges(console.NewStream(&out, func(string) string { return "" }), changes, test.fold)
			got := out.String()
			if !test.fold {
				got = got[:min(len(got), len(test.want))]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrintPreflight: checks that passed take one line, others have one of their own with what helps.
func TestPrintPreflight(t *testing.T) {
	var out bytes.Buffer
	printPreflight(console.NewStream(&out, func(string) string { return "" }), []schema.PreflightCheck{
		{Name: schema.PreflightKubernetes, Result: schema.PreflightPass, Message: "Kubernetes v1.36.3"},
		{Name: schema.PreflightStorage, Result: schema.PreflightFail, Message: "there is no StorageClass fast", Hint: "create it"},
		{Name: schema.PreflightRoom, Result: schema.PreflightUnknown, Message: "not known: you do not have permission to look"},
		{Name: schema.PreflightQuota, Result: schema.PreflightWarning, Message: "little is left"},
		{Name: schema.PreflightImages, Result: schema.PreflightPass, Message: "1 of 1 endpoints serve the images"},
	})
	want := `checks passed: Kubernetes v1.36.3; 1 of 1 endpoints serve the images
check FAILED: there is no StorageClass fast
  create it
check: room not known: you do not have permission to look
check, warning: little is left
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
