package crd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema/report"
)

const widget = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, shortNames: [wi]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            x-kubernetes-validations: [{rule: self.size <= self.limit, message: too many}]
            properties:
              size: {type: integer, format: int32, minimum: 0, default: 1}
              limit: {type: integer, default: 10}
              mode: {type: string, enum: [fast, slow]}
              color: {type: string, pattern: '^[a-z]+$', maxLength: 10}
              tags: {type: array, x-kubernetes-list-type: set, maxItems: 8, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
              labels: {type: object, additionalProperties: {type: string}}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
              note: {type: string, nullable: true}
          status:
            type: object
            properties: {phase: {type: string}}
`

func parse(tb testing.TB, text string) *crd.Definition {
	tb.Helper()
	d, problems := crd.Parse([]byte(text))
	if d == nil {
		tb.Fatal(problems)
	}
	return d
}

// edit replaces in text and fails when there is nothing to replace.
func edit(tb testing.TB, text string, replace ...string) string {
	tb.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			tb.Fatalf("%q is not in the text", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// secondVersion is a version v2 without storage, whose schema is that of v1 with one more field.
func secondVersion(tb testing.TB) string {
	tb.Helper()
	_, v1, _ := strings.Cut(widget, "  versions:\n")
	return edit(tb, v1, "name: v1", "name: v2", "storage: true", "storage: false", "note:", "added: {type: string}\n              note:")
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"good", widget, nil},
		{"the name must be plural.group", edit(t, widget, "name: widgets.example.com", "name: widget.example.com"), []string{
			`refused metadata.name: Invalid value: "widget.example.com": must be spec.names.plural+"."+spec.group`,
		}},
		{"not structural", edit(t, widget, "color: {type: string, ", "color: {"), []string{
			"refused spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[color].type: Required value: must not be empty for specified object fields",
		}},
		{"a rule on a field that is not there", edit(t, widget, "self.size <= self.limit", "self.size <= self.limits"), []string{
			"refused spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: ",
		}},
		{"a rule of the wrong type", edit(t, widget, "self.size <= self.limit", "self.mode + 1 > 0"), []string{
			"refused spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: ",
		}},
		{"a default that is not valid", edit(t, widget, "minimum: 0, default: 1", "minimum: 0, default: -1"), []string{
			"refused spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default: Invalid value: -1",
		}},
		{"no storage version", edit(t, widget, "storage: true", "storage: false"), []string{
			"refused spec.versions: Invalid value: ", "refused status.storedVersions: Invalid value",
		}},
		{"two storage versions", widget + edit(t, secondVersion(t), "storage: false", "storage: true"), []string{
			"refused spec.versions: Invalid value: ",
		}},
		{"two versions, no conversion", widget + secondVersion(t), []string{
			"no-conversion spec.versions[0]: objects written as v2 do not fit v1: v2 -> v1: spec.added: is removed: its values are dropped",
		}},
		{"two equal versions", widget + edit(t, secondVersion(t), "added: {type: string}", ""), nil},
		{"nothing is served", edit(t, widget, "served: true", "served: false"), []string{"not-served spec.versions: no version is served"}},
		{"v1beta1", read(t, "v1beta1.yaml"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, p := range parse(t, test.text).Judge(t.Context()) {
				got = append(got, fmt.Sprintf("%s %s: %s", p.Reason, p.Path, p.Message))
			}
			prefix := func(got, want string) bool { return strings.HasPrefix(got, want) }
			if len(got) < len(test.want) || !slices.EqualFunc(got[:len(test.want)], test.want, prefix) || len(test.want) == 0 && len(got) > 0 {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestWebhookConversionNeedsNoEqualSchemas(t *testing.T) {
	text := edit(t, widget+secondVersion(t), "scope: Namespaced", `scope: Namespaced
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: a, name: b}}}`)
	if problems := parse(t, text).Judge(t.Context()); len(problems) > 0 {
		t.Errorf("got %v", problems)
	}
}

func TestSchemasThatTakeAnything(t *testing.T) {
	before, _, _ := strings.Cut(widget, "        required: [spec]")
	problems := parse(t, before+"        x-kubernetes-preserve-unknown-fields: true\n").Judge(t.Context())
	if len(problems) != 1 || problems[0].Reason != crd.PreservesAll || problems[0].Severity != report.SeverityWarning {
		t.Errorf("got %v", problems)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text string
		nothing    bool
		want       []string
	}{
		{"good", widget, false, nil},
		{"Windows line ends and a leading separator", "---\r\n" + strings.ReplaceAll(widget, "\n", "\r\n"), false, nil},
		{"trailing separator", widget + "---\n", false, nil},
		{"empty", "# nothing\n", true, []string{"documents 0:0 the file is empty"}},
		{"two documents", widget + "---\na: b\n", false, []string{"documents 0:0 the file holds 2 documents, expected one"}},
		{"not YAML", "a: [", true, []string{"unreadable 2:0 not YAML: did not find"}},
		{"other kind", "{apiVersion: v1, kind: ConfigMap}", true, []string{"wrong-kind 0:0 expected a CustomResourceDefinition"}},
		{"Jinja", edit(t, widget, "type: object\n", "type: object\n        description: use {{ name }}\n"), false, []string{`jinja 17:26 "{{" is taken for a template`}},
		{"Jinja comment", widget + "# {#\n", false, []string{`jinja 42:3 "{#" is taken`}},
		{"v1beta1", read(t, "v1beta1.yaml"), false, []string{"old-api 0:0 apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22"}},
		{"wrong type", edit(t, widget, "served: true", "served: often"), true, []string{"unreadable 0:0 error unmarshaling JSON"}},
		{"large", edit(t, widget, "plural: widgets", "plural: widgets, singular: "+strings.Repeat("widget", 200_000)), false, []string{"large-document 0:0 the definition has 1"}},
		{"too large", widget + strings.Repeat("# filler\n", 500000), true, []string{"unreadable 0:0 the file has more than 4194304 bytes"}},
		{"too many nodes", strings.Repeat("- 1\n", 500_000), true, []string{"unreadable 150001:0 the file has more than 150000 keys, items, comments and documents"}},
		{"text where numbers stand", edit(t, widget, "plural: widgets", "plural: widgets, singular: 5"), false, nil},
		{"too deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), true, []string{"unreadable 1:257 nested deeper than 256 levels"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := crd.Parse([]byte(test.text))
			if (d == nil) != test.nothing {
				t.Errorf("definition = %v", d)
			}
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%s %d:%d %s", p.Reason, p.Line, p.Column, p.Message))
			}
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func ExampleParse() {
	_, problems := crd.Parse([]byte("apiVersion: apiextensions.k8s.io/v1\nkind: CRD # {{ name }}\n"))
	for _, p := range problems {
		fmt.Println(p.Line, p.Message)
	}
	// Output:
	// 2 "{{" is taken for a template by MetalK8s, which renders the file through Jinja
	// 0 expected a CustomResourceDefinition of apiextensions.k8s.io/v1, got "CRD" of "apiextensions.k8s.io/v1"
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(widget))
	f.Add([]byte(widget + "---\n" + widget))
	f.Add([]byte("{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, spec: {version: v1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, problems := crd.Parse(data)
		if d == nil {
			if len(problems) == 0 {
				t.Error("neither a definition nor a problem")
			}
			return
		}
		d.Judge(t.Context())
		for _, change := range crd.Compare(d, d) {
			t.Errorf("a definition differs from itself: %v", change)
		}
		if checker, err := crd.NewChecker(d); err == nil {
			for _, version := range d.Spec.Versions {
				_, _, _ = checker.Check(t.Context(), version.Name, map[string]any{"kind": "A", "spec": map[string]any{"size": 1}})
			}
		}
	})
}
