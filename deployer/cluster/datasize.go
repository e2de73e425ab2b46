package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaxData is how many bytes the values of a ConfigMap, or of a Secret, can have together.
const MaxData = 1 << 20

// DataSize returns the bytes of the values of a ConfigMap or a Secret, as [MaxData] counts them.
func DataSize(object *unstructured.Unstructured) int {
	size := 0
	for _, key := range []string{"data", "binaryData"} {
		values, _, _ := unstructured.NestedFieldNoCopy(object.Object, key)
		fields, _ := values.(map[string]any)
		for _, value := range fields {
			text, _ := value.(string)
			if key == "binaryData" || object.GetKind() == SecretKind.Kind {
				size += decodedSize(text)
			} else {
				size += len(text)
			}
		}
	}
	return size
}

// decodedSize returns the bytes that a text in base64 stands for.
func decodedSize(text string) int {
	size := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && i >= len(text)-2 && text[i] == '='; i-- {
		size--
	}
	return size
}

// isFull reports whether the API server has refused an object because its values have more than [MaxData].
func isFull(r request, said metav1.Status) bool {
	return (r.kind == ConfigMapKind || r.kind == SecretKind) && said.Details != nil && slices.ContainsFunc(said.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeTooLong && slices.Contains([]string{"[]", "data"}, c.Field)
	})
}
