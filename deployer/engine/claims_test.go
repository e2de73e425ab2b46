package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplateOf(t *testing.T) {
	for _, test := range []struct{ claim, set, want string }{
		{"data-db-0", "db", "data"},
		{"data-db-12", "db", "data"},
		{"my-data-my-db-3", "my-db", "my-data"},
		{"data-db-other-0", "db", ""}, // of StatefulSet db-other
		{"data-otherdb-0", "db", ""},
		{"data-db-x", "db", ""},
		{"data-db--1", "db", ""},
		{"data-db-99999999999", "db", ""},
		{"data", "db", ""},
		{"db-0", "db", ""},
	} {
		if got := templateOf(test.claim, test.set); got != test.want {
			t.Errorf("claim %s of StatefulSet %s: template %q, want %q", test.claim, test.set, got, test.want)
		}
	}
}

func TestSmaller(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"1Gi", "2Gi", true},
		{"900Mi", "1Gi", true},
		{"1024Mi", "1Gi", false},
		{"2Gi", "1Gi", false},
		{"1G", "1Gi", true},
		{"", "1Gi", false},
		{"1Gi", "", false}, // the claim has no template
		{"much", "1Gi", false},
	} {
		if got := smaller(test.a, test.b); got != test.want {
			t.Errorf("%q smaller than %q: %t", test.a, test.b, got)
		}
	}
}

func TestTemplateSizes(t *testing.T) {
	got := templateSizes(object(t, `{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [
{metadata: {name: data}, spec: {resources: {requests: {storage: 2Gi}}}}, {metadata: {name: bytes}, spec: {resources: {requests: {storage: 1048576}}}},
{metadata: {name: nothing}}, no template]}}`))
	if diff := cmp.Diff(got, map[string]string{"data": "2Gi", "bytes": "1048576"}); diff != "" {
		t.Error(diff)
	}
	if got := templateSizes(object(t, "{apiVersion: apps/v1, kind: StatefulSet}")); len(got) > 0 {
		t.Errorf("without templates: %v", got)
	}
}
