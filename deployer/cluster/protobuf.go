package cluster

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobuf is the format in which metadata is asked for: writing and reading the same as JSON takes several times as long,
// on both sides. A server that does not know it answers in JSON.
const protobuf = "application/vnd.kubernetes.protobuf"

// fromProtobuf unwraps an answer in that format. It reports false for an answer in another one.
func fromProtobuf(answer []byte) (raw []byte, ok bool) {
	message, ok := bytes.CutPrefix(answer, []byte("k8s\x00"))
	if !ok {
		return nil, false
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(message); err != nil {
		return nil, false
	}
	return envelope.Raw, true
}

// readMetadata reads a list of metadata.
func readMetadata(page *unstructured.UnstructuredList, raw []byte) error {
	var list metav1.PartialObjectMetadataList
	if err := list.Unmarshal(raw); err != nil {
		return err
	}
	page.Object = map[string]any{"metadata": map[string]any{"resourceVersion": list.ResourceVersion, "continue": list.Continue}}
	page.Items = make([]unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		page.Items[i].Object = map[string]any{"metadata": metadataOf(&list.Items[i].ObjectMeta)}
	}
	return nil
}

// metadataOf returns the metadata as in JSON, except the fields that managers own: decoding them takes longer than all the rest.
func metadataOf(m *metav1.ObjectMeta) map[string]any {
	metadata := map[string]any{}
	object := unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	for name, value := range map[string]string{
		"name": m.Name, "generateName": m.GenerateName, "namespace": m.Namespace, "uid": string(m.UID), "resourceVersion": m.ResourceVersion,
	} {
		if value != "" {
			metadata[name] = value
		}
	}
	if m.Generation != 0 {
		metadata["generation"] = m.Generation
	}
	metadata["creationTimestamp"] = m.CreationTimestamp.UTC().Format(time.RFC3339)
	if m.DeletionTimestamp != nil {
		metadata["deletionTimestamp"] = m.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	if m.DeletionGracePeriodSeconds != nil {
		metadata["deletionGracePeriodSeconds"] = *m.DeletionGracePeriodSeconds
	}
	if len(m.Labels) > 0 {
		object.SetLabels(m.Labels)
	}
	if len(m.Annotations) > 0 {
		object.SetAnnotations(m.Annotations)
	}
	if len(m.OwnerReferences) > 0 {
		object.SetOwnerReferences(m.OwnerReferences)
	}
	if len(m.Finalizers) > 0 {
		object.SetFinalizers(m.Finalizers)
	}
	if len(m.ManagedFields) > 0 {
		metadata["managedFields"] = managersOf(m.ManagedFields)
	}
	return metadata
}

// managersOf returns the field managers of an object, without their fields.
func managersOf(entries []metav1.ManagedFieldsEntry) []any {
	managers := make([]any, len(entries))
	for i, entry := range entries {
		manager := map[string]any{"manager": entry.Manager, "operation": string(entry.Operation)}
		if entry.Subresource != "" {
			manager["subresource"] = entry.Subresource
		}
		managers[i] = manager
	}
	return managers
}
