package lint

import (
	"slices"
	"strings"
	"testing"
)

// TestTexts makes sure that every rule is described, and that every description is of a rule.
func TestTexts(t *testing.T) {
	entries, err := texts.ReadDir("rules")
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, entry := range entries {
		unused[entry.Name()] = true
	}
	fromISO := ImageRules()
	for _, rule := range Rules() {
		if slices.Contains([]string{rule.Name, rule.Summary, rule.Explanation, rule.Bad, rule.Good}, "") {
			t.Errorf("%s lacks a part of its text: %+v", rule.ID, rule)
		}
		name := rule.ID + ".md"
		if !unused[name] && !slices.Contains(fromISO, rule.ID) {
			t.Errorf("there is no rules/%s", name)
		}
		delete(unused, name)
	}
	for name := range unused {
		t.Errorf("rules/%s is of no rule", name)
	}
}

func TestDescribe(t *testing.T) {
	r := Rule{ID: "SOL321"}
	r.describe()
	if want := "A file *_crd.yaml holds exactly one document, a CustomResourceDefinition."; r.Summary != want {
		t.Errorf("got %q, want %q", r.Summary, want)
	}
	if want := "kind: CustomResourceDefinition\n---\nkind: CustomResourceDefinition"; r.Bad != want {
		t.Errorf("got %q, want %q", r.Bad, want)
	}
	if want := "websites_crd.yaml\npages_crd.yaml"; r.Good != want {
		t.Errorf("got %q, want %q", r.Good, want)
	}
	if strings.Contains(r.Explanation, "\n") {
		t.Errorf("a paragraph is one line: %q", r.Explanation)
	}
}
