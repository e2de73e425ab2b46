package render

import (
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// RecoverValues recovers generated values from the data of a live object, see [chart.GeneratedValues.Recover]. It reports whether one changed.
func RecoverValues(values *chart.GeneratedValues, rendered, live *unstructured.Unstructured) (recovered bool) {
	there := Texts(live)
	for name, text := range Texts(rendered) {
		if value, ok := there[name]; ok && values.Recover(text, value) {
			recovered = true
		}
	}
	return recovered
}

// Texts are the data of a Secret or a ConfigMap; other objects have none.
func Texts(object *unstructured.Unstructured) map[string]string {
	if object.GetAPIVersion() != "v1" || object.GetKind() != "Secret" && object.GetKind() != "ConfigMap" {
		return nil
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	texts := map[string]string{}
	for name, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil && object.GetKind() == "Secret" {
			text = string(plain)
		}
		texts[name] = text
	}
	written, _, _ := unstructured.NestedMap(object.Object, "stringData")
	for name, value := range written {
		texts[name], _ = value.(string)
	}
	return texts
}

// KeepSecret gives a Secret the content of the live one where both have a key, and names the keys that were different.
func KeepSecret(rendered, live *unstructured.Unstructured) (different []string) {
	if rendered.GetKind() != "Secret" {
		return nil
	}
	there := Texts(live)
	for name, text := range Texts(rendered) {
		value, ok := there[name]
		if !ok || value == text {
			continue
		}
		different = append(different, name)
		unstructured.RemoveNestedField(rendered.Object, "stringData", name)
		data, _, _ := unstructured.NestedMap(rendered.Object, "data")
		if data == nil {
			data = map[string]any{}
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(value))
		rendered.Object["data"] = data
	}
	slices.Sort(different)
	return different
}
