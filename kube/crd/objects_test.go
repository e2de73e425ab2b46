package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/crd"
)

func checker(tb testing.TB, text string) *crd.Checker {
	tb.Helper()
	c, err := crd.NewChecker(parse(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func object(tb testing.TB, spec string) map[string]any {
	tb.Helper()
	var m map[string]any
	text := "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, labels: {x: z}}, spec: " + spec + "}"
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		invalid    []string
		lost       []crd.LostField
	}{
		{"good", "{size: 3, mode: fast, tags: [a, b], labels: {a: b}, extra: {any: {thing: 1}}, note: null}", nil, nil},
		{"defaults are filled in before rules", "{}", nil, nil},
		{"a default counts for a rule", "{size: 11}", []string{`spec: Invalid value: too many`}, nil},
		{
			"unknown fields", "{gone: 1, ports: [{name: a, colour: {r: 1, g: 2}}], size: 1}", nil,
			[]crd.LostField{{Path: "spec.gone", Values: 1}, {Path: "spec.ports[0].colour", Values: 2}},
		},
		{"enumeration", "{mode: medium}", []string{`spec.mode: Unsupported value: "medium": supported values: "fast", "slow"`}, nil},
		{"type", "{size: two}", []string{"spec.size: Invalid value: "}, nil},
		{"pattern", "{color: RED}", []string{`spec.color: Invalid value: "RED"`}, nil},
		{"null where it is not allowed is dropped", "{size: null, mode: null}", nil, nil},
		{"set with duplicates", "{tags: [a, a]}", []string{`spec.tags[1]: Duplicate value: "a"`}, nil},
		{"map with duplicates", "{ports: [{name: a}, {name: a}]}", []string{`spec.ports[1]: Duplicate value: {"name":"a"}`}, nil},
		{"missing key", "{ports: [{port: 1}]}", []string{"spec.ports[0].name: Required value"}, nil},
		{"required", "null", []string{"spec: Required value"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := object(t, test.spec)
			invalid, lost, err := checker(t, widget).Check(t.Context(), "v1", m)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(invalid, test.invalid, func(i crd.Invalid, want string) bool { return strings.HasPrefix(i.String(), want) }) {
				t.Errorf("invalid:\ngot  %q\nwant %q", invalid, test.invalid)
			}
			if !slices.Equal(lost, test.lost) {
				t.Errorf("lost: got %v, want %v", lost, test.lost)
			}
			if !reflect.DeepEqual(m, object(t, test.spec)) {
				t.Error("the object was changed")
			}
		})
	}
}

// Decoders give numbers different types; all must be understood, and none may panic.
func TestCheckNumberTypes(t *testing.T) {
	for _, number := range []any{3, int32(3), int64(3), uint64(3), 3.0, json.Number("3")} {
		m := object(t, "{}")
		m["spec"] = map[string]any{"size": number}
		invalid, _, err := checker(t, widget).Check(t.Context(), "v1", m)
		if err != nil || len(invalid) > 0 {
			t.Errorf("%T: %v, %v", number, invalid, err)
		}
	}
}

func TestCheckOtherVersion(t *testing.T) {
	c := checker(t, widget+edit(t, secondVersion(t), "color: {type: string, pattern: '^[a-z]+$', maxLength: 10}", ""))
	_, lost, err := c.Check(t.Context(), "v2", object(t, "{color: red}"))
	if err != nil || !slices.Equal(lost, []crd.LostField{{Path: "spec.color", Values: 1}}) {
		t.Errorf("lost = %v, %v", lost, err)
	}
	if _, _, err := c.Check(t.Context(), "v3", object(t, "{}")); err == nil {
		t.Error("a version that does not exist was accepted")
	}
}

func TestNewCheckerRefusesUnusableSchemas(t *testing.T) {
	if _, err := crd.NewChecker(parse(t, edit(t, widget, "color: {type: string, ", "color: {"))); err == nil {
		t.Error("a schema that is not structural was accepted")
	}
}

func TestMissing(t *testing.T) {
	const whole = "{size: 3, tags: [a, b], labels: {a: b}, ports: [{name: a, port: 1}], empty: {}, note: null}"
	for _, test := range []struct{ name, other, want string }{
		{"the same", whole, ""},
		{"more is no loss", "{size: 3, tags: [a, b], labels: {a: b, c: d}, ports: [{name: a, port: 1, tls: true}], empty: {}, note: null, new: 1}", ""},
		{"a field", "{size: 3, tags: [a, b], labels: {a: b}, ports: [{name: a}], empty: {}, note: null}", "spec.ports[0].port"},
		{"another value", "{size: '3', tags: [b, a], labels: {a: b}, ports: [{name: a, port: 1}], empty: {}, note: null}", "spec.size spec.tags[0] spec.tags[1]"},
		{"an entry", "{size: 3, tags: [a], labels: {a: b}, ports: [{name: a, port: 1}], empty: {}, note: null}", "spec.tags"},
		{"what is empty means something", "{size: 3, tags: [a, b], labels: {a: b}, ports: [{name: a, port: 1}], note: null}", "spec.empty"},
		{"another kind of value", "{size: 3, tags: {a: b}, labels: [a], ports: 1, empty: 1, note: null}", "spec.empty spec.labels spec.ports spec.tags"},
		{"all", "null", "spec"},
	} {
		got := crd.Missing(object(t, whole), object(t, test.other))
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	other := object(t, whole)
	other["apiVersion"] = "example.com/v2"
	other["metadata"] = map[string]any{"name": "a", "annotations": map[string]any{"was": "v1"}}
	if got := crd.Missing(object(t, whole), other); strings.Join(got, " ") != "metadata.labels" {
		t.Errorf("metadata: %q", got)
	}
}

func ExampleChecker_Check() {
	definition, _ := crd.Parse([]byte(widget))
	checker, err := crd.NewChecker(definition)
	if err != nil {
		panic(err)
	}
	invalid, lost, err := checker.Check(context.Background(), "v1", map[string]any{
		"kind": "Widget", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"mode": "fast", "size": -1, "old": "x"},
	})
	fmt.Println(invalid, lost, err)
	// Output: [spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0] [{spec.old 1}] <nil>
}

func BenchmarkCheck10000(b *testing.B) {
	c := checker(b, widget)
	m := object(b, "{size: 3, mode: fast, tags: [a, b], labels: {a: b}, ports: [{name: a, port: 1}, {name: b, port: 2}], gone: 1}")
	for b.Loop() {
		for range 10000 {
			if _, _, err := c.Check(b.Context(), "v1", m); err != nil {
				b.Fatal(err)
			}
		}
	}
}
