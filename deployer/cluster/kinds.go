package cluster

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that more than one package above looks at.
var (
	ClaimKind          = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	ConfigMapKind      = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	EventKind          = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	NamespaceKind      = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	PodKind            = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	SecretKind         = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ServiceKind        = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	ServiceAccountKind = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	DeploymentKind     = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	LeaseKind          = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	DefinitionKind     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// NameOf writes the name of an object for people: "Deployment demo/web".
func NameOf(object *unstructured.Unstructured) string {
	return Name(object.GetKind(), object.GetNamespace(), object.GetName())
}

// NewObject returns an object without anything but its identity.
func NewObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// SetLabel adds a label to an object.
func SetLabel(object *unstructured.Unstructured, key, value string) {
	object.SetLabels(labels.Merge(object.GetLabels(), labels.Set{key: value}))
}

// SetAnnotation adds an annotation to an object.
func SetAnnotation(object *unstructured.Unstructured, key, value string) {
	object.SetAnnotations(labels.Merge(object.GetAnnotations(), labels.Set{key: value}))
}

// SecretData returns what lies below a key of a Secret.
func SecretData(secret *unstructured.Unstructured, key string) ([]byte, error) {
	text, found, err := unstructured.NestedString(secret.Object, "data", key)
	if err != nil || !found {
		return nil, fmt.Errorf("it has no data %s", key)
	}
	return base64.StdEncoding.DecodeString(text)
}
