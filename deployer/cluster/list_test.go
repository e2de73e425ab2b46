package cluster

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestReadList compares ReadList with the method of the list, and checks that a non-list has no objects.
func TestReadList(t *testing.T) {
	for _, answer := range []string{
		`{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "generation": 3}, "spec": {"share": 0.5}}]}`,
		`{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}`,
		`{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null}`,
	} {
		var got, want unstructured.UnstructuredList
		if err := want.UnmarshalJSON([]byte(answer)); err != nil {
			t.Fatal(err)
		}
		if err := readList(&got, []byte(answer)); err != nil {
			t.Errorf("%s: %v", answer, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %v, want %v", answer, got, want)
		}
	}
	for _, answer := range []string{
		``, `null`, `{}`, `[]`, `{"items": []}`, `{"kind": 7, "items": []}`, `{"kind": "PodList", "items": {}}`, `{"kind": "PodList", "items": "none"}`,
		`{"kind": "PodList", "items": [null]}`, `{"kind": "PodList", "items": ["a"]}`, `{"kind": "PodList", "items": [`,
	} {
		var page unstructured.UnstructuredList
		if err := readList(&page, []byte(answer)); err == nil {
			t.Errorf("%q is read as %v", answer, page)
		}
	}
}
