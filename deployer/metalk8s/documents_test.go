package metalk8s

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

func namespace(t *testing.T, name, metadata string) *unstructured.Unstructured {
	t.Helper()
	object := new(unstructured.Unstructured)
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q%s}`, name, metadata)
	if err := object.UnmarshalJSON([]byte(text + "}")); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestNamespaceRead: an entry that cannot be parsed does not affect the others.
func TestNamespaceRead(t *testing.T) {
	n := Namespace{Name: "shop"}
	n.read(map[string]string{"db": "1.0.0", "Web": "1.0.0", "cache": "latest", "long": strings.Repeat("1", maxVersion+1), "esc": "1.0.0\x1b[2J"})
	if diff := cmp.Diff(map[string]string{"db": "1.0.0"}, n.Versions); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{`key "Web" cannot be the name`, "key cache", "key esc", "too long for a version"} {
		if got := n.Problems[i].String(); !strings.Contains(got, want) || !strings.HasPrefix(got, "ConfigMap shop/") || strings.Contains(got, "\x1b") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	many := map[string]string{}
	for i := range maxAsked + 3 {
		many[fmt.Sprintf("s%03d", i)] = "1.0.0"
	}
	n = Namespace{Name: "shop"}
	if n.read(many); len(n.Versions) != maxAsked || len(n.Problems) != 1 || !strings.Contains(n.Problems[0].String(), "3 more keys not checked") {
		t.Errorf("%d versions, %v", len(n.Versions), n.Problems)
	}
}

func TestGroup(t *testing.T) {
	const label = `,"labels":{"` + EnvironmentLabel + `":"prod"},"annotations":{"` + descriptionAnnotation + `":%q}`
	got := group([]Namespace{
		newNamespace(namespace(t, "b", fmt.Sprintf(label, "second"))), newNamespace(namespace(t, "a", fmt.Sprintf(label, ""))),
		newNamespace(namespace(t, "other", "")),
	})
	if len(got) != 1 || got[0].Name != "prod" || got[0].Description != "second" || cmp.Diff([]string{"a", "b"}, got[0].Names()) != "" {
		t.Fatalf("%+v", got)
	}
	if _, ok := got[0].Namespace("other"); ok {
		t.Error("a namespace without a label is part of an environment")
	}
}

func TestHolding(t *testing.T) {
	object := namespace(t, "a", `,"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/hold"]`)
	object.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"status": "True", "message": "2 pods remain"}, map[string]any{"status": "False", "message": "all is well"}, "not a condition",
	}}
	want := []string{"2 pods remain", "the namespace itself has the finalizer example.com/hold"}
	if diff := cmp.Diff(want, holding(object)); diff != "" {
		t.Error(diff)
	}
	object.SetDeletionTimestamp(nil)
	if got := holding(object); got != nil {
		t.Errorf("it is not being deleted: %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct {
		name, namespace string
		code            report.Code // "" for good names
	}{
		{"shop", "", ""},
		{"Shop_1", "shop", ""},
		{"Shop_1", "", report.Usage},
		{"", "", report.Usage},
		{"shop", "Shop", report.Usage},
		{strings.Repeat("a", 64), "", report.Usage},
		{"shop", "kube-system", report.Refused},
		{"shop", cluster.SystemNamespace, report.Refused},
	} {
		o, err := CreateOptions{Name: test.name, Namespace: test.namespace}.Check()
		if test.code == "" && (err != nil || o.Namespace == "") || test.code != "" && report.CodeOf(err) != test.code {
			t.Errorf("%q, %q: %v", test.name, test.namespace, err)
		}
	}
	if err := Deletable([]Namespace{{Name: "shop"}, {Name: "default", Environment: "e"}}); report.CodeOf(err) != report.Refused {
		t.Error(err)
	}
}

func TestSolutionsDocument(t *testing.T) {
	s := parseSolutions(map[string]string{
		"db": `[{"version":"1.0.0","active":false,"archive":"/a.iso","id":"db-1.0.0","name":"DB","mountpoint":"/srv/a"},` +
			`{"version":"1.1.0","active":true,"archive":"/b.iso","id":"db-1.1.0","name":"DB","mountpoint":"/srv/b"}]`,
		"bad": "{",
	})
	if s.Active("db") != "1.1.0" || s.Active("bad") != "" {
		t.Errorf("active: %q, %q", s.Active("db"), s.Active("bad"))
	}
	if entry, ok := s.Find("db", "1.0.0"); !ok || entry.Archive != "/a.iso" {
		t.Errorf("%t %+v", ok, entry)
	}
	if _, ok := s.Find("db", "2.0.0"); ok {
		t.Error("a version that was not imported was found")
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Where, "key bad") {
		t.Errorf("%v", s.Problems)
	}
}

func TestUse(t *testing.T) {
	objects := []*unstructured.Unstructured{namespace(t, "a", ""), namespace(t, "b", ""), namespace(t, "c", ""), namespace(t, "d", "")}
	for want, use := range map[string]Use{
		"Solution db 1.0.0 in namespace shop":                {Namespace: "shop", Solution: "db", Version: "1.0.0"},
		"Namespace a, b, c and 1 more in namespace shop":     {Namespace: "shop", Kind: cluster.NamespaceKind, Objects: objects},
		"PersistentVolumeClaim a, b, c, d in namespace shop": {Namespace: "shop", Kind: cluster.ClaimKind, Objects: objects},
	} {
		if got := use.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
