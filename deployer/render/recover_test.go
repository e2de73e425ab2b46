package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// TestKeptSecrets: generated values are found in existing Secrets, and Secrets keep their other keys.
func TestKeptSecrets(t *testing.T) {
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"] = "v1", kind
		return &unstructured.Unstructured{Object: fields}
	}
	for _, test := range []struct {
		name           string
		rendered, live *unstructured.Unstructured
		recovered      bool
		different      []string
		want           map[string]string
	}{
		{
			"a Secret", object("Secret", map[string]any{"stringData": map[string]any{"a": "drawn-by-me"}, "data": map[string]any{"b": "aW4="}}),
			object("Secret", map[string]any{"data": map[string]any{"a": "c2VjcmV0LWRiLTE=", "b": "b3V0", "c": "b3RoZXI="}}), false,
			[]string{"a", "b"},
			map[string]string{"a": "secret-db-1", "b": "out"},
		},
		{
			"what was drawn", object("Secret", map[string]any{"stringData": map[string]any{"a": "x:aaaaaa"}}),
			object("Secret", map[string]any{"data": map[string]any{"a": "eDpiYmJiYmI="}}), true,
			[]string{"a"},
			map[string]string{"a": "x:bbbbbb"},
		},
		{
			"a ConfigMap", object("ConfigMap", map[string]any{"data": map[string]any{"a": "aaaaaa"}}),
			object("ConfigMap", map[string]any{"data": map[string]any{"a": "bbbbbb"}}), true, nil,
			map[string]string{"a": "aaaaaa"},
		},
		{
			"what is no text", object("Secret", map[string]any{"data": map[string]any{"a": "!"}, "stringData": []any{}}),
			object("Secret", map[string]any{"data": map[string]any{"a": int64(1)}}), false,
			[]string{"a"},
			map[string]string{"a": ""},
		},
		{"another kind", object("Service", map[string]any{"data": map[string]any{"a": "aaaaaa"}}), object("Service", map[string]any{"data": map[string]any{"a": "bbbbbb"}}), false, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			values := &chart.GeneratedValues{Values: []chart.GeneratedValue{{Function: "randAlpha", Value: json.RawMessage(`"aaaaaa"`)}}}
			if recovered := RecoverValues(values, test.rendered, test.live); recovered != test.recovered {
				t.Errorf("recovered: %t", recovered)
			}
			if diff := cmp.Diff(test.different, KeepSecret(test.rendered, test.live)); diff != "" {
				t.Errorf("different (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, Texts(test.rendered)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
