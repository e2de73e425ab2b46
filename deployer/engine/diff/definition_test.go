package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDefinition: a change of a CustomResourceDefinition is described by what it means, and other objects by their fields alone.
func TestDefinition(t *testing.T) {
	definition := func(fields string) *unstructured.Unstructured {
		return object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com,
  scope: Namespaced, names: {kind: A, plural: as, singular: a, listKind: AList}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`+fields+`}}}}}}]}}`)
	}
	got := Definition(definition("size: {type: string}, count: {type: integer}"), definition("size: {type: integer}, colour: {type: string}"))
	var lines []string
	for _, c := range got {
		lines = append(lines, c.Kind+" "+c.Severity+" "+c.Version+" "+c.Path)
	}
	want := []string{"field-removed lossy v1 spec.count", "type breaking v1 spec.size", "field-added safe v1 spec.colour"}
	if diff := cmp.Diff(want, lines); diff != "" || !strings.HasSuffix(got[0].String(), "(lossy)") {
		t.Errorf("%s%s", diff, got[0])
	}
	if got = Definition(object(t, "{apiVersion: v1, kind: A}"), object(t, "{apiVersion: v1, kind: A, b: c}")); got != nil {
		t.Errorf("%v", got)
	}
}
