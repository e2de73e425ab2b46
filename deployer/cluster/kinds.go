package cluster

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// SecretData returns what lies below a key of a Secret.
func SecretData(secret *unstructured.Unstructured, key string) ([]byte, error) {
	text, found, err := unstructured.NestedString(secret.Object, "data", key)
	if err != nil || !found {
		return nil, fmt.Errorf("it has no data %s", key)
	}
	return base64.StdEncoding.DecodeString(text)
}
