package render

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of the applications that a ConfigMap lists: packed, as it holds at most a MiB, and unpacked.
const (
	maxApplications = 700 << 10
	maxUnpacked     = 16 << 20
)

// applicationsKey is the key of [schema.Applications] in a ConfigMap.
const applicationsKey = "applications.json.gz"

// ApplicationsName is the name of the ConfigMap with the kinds that a Solution offers in a namespace.
func ApplicationsName(solution string) string { return solution + "-applications" }

// applications renders the CRDs for users whose only permissions are on the custom resources of this namespace. Those
// that do not fit into a ConfigMap are left out.
func (r *renderer) applications() error {
	if r.s.judged {
		return nil
	}
	packed, err := r.p.applications()
	if err != nil || packed == nil {
		return err
	}
	name := ApplicationsName(r.name)
	content := map[string]any{"binaryData": map[string]any{applicationsKey: base64.StdEncoding.EncodeToString(packed)}}
	labels := r.labels(name, "applications")
	delete(labels, "app")
	return r.add(generated, newKubernetesObject("v1", "ConfigMap", r.s.Namespace, name, labels, content))
}

// packApplications returns the content of the ConfigMap, which is the same in each namespace, nil where there is none.
func (p *Payload) packApplications() ([]byte, error) {
	crds, err := p.crds()
	if err != nil {
		return nil, err
	}
	document := schema.Applications{
		Stamp: schema.NewStamp("applications", applicationsReader), Solution: p.Solution.Metadata.Name, Version: p.Solution.Spec.Version,
		Definitions: []map[string]any{},
	}
	for _, crd := range crds {
		if isApplication(crd.Unstructured) {
			document.Definitions = append(document.Definitions, outline(crd.Unstructured))
		}
	}
	if len(document.Definitions) == 0 {
		return nil, nil
	}
	data, err := schema.MarshalStored(document)
	if err != nil {
		return nil, err
	}
	packed, err := pack(data)
	if err != nil || len(packed) > maxApplications || len(data) > maxUnpacked {
		return nil, err
	}
	return packed, nil
}

// applicationsReader is the first version of the program that reads the document.
const applicationsReader = "0.1.0"

// outline returns the part of a definition that a form needs: its served versions without the schema of the status, and
// without rules that would need that.
func outline(crd *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(crd.Object, "spec") // a copy
	kept := map[string]any{}
	for _, key := range []string{"group", "names", "scope"} {
		kept[key] = spec[key]
	}
	var versions []any
	for _, version := range listOf(spec["versions"]) {
		if version["served"] != true {
			continue
		}
		one := map[string]any{}
		for _, key := range []string{"name", "served", "storage", "schema", "subresources"} {
			if value, ok := version[key]; ok {
				one[key] = value
			}
		}
		if root, found, _ := unstructured.NestedMap(one, "schema", "openAPIV3Schema"); found {
			stripStatus(root)
			one["schema"] = map[string]any{"openAPIV3Schema": root}
		}
		versions = append(versions, one)
	}
	kept["versions"] = versions
	return map[string]any{
		"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "metadata": map[string]any{"name": crd.GetName()}, "spec": kept,
	}
}

// stripStatus removes from a schema the status, except that it has conditions, and rules that refer to the status.
func stripStatus(root map[string]any) {
	delete(root, "x-kubernetes-validations")
	properties, _ := root["properties"].(map[string]any)
	if properties["status"] == nil {
		return
	}
	status := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if _, reported, _ := unstructured.NestedMap(properties, "status", "properties", "conditions"); reported {
		item := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		status["properties"] = map[string]any{"conditions": map[string]any{"type": "array", "items": item}}
	}
	properties["status"] = status
}

func pack(data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// Applications reads the CRDs from a ConfigMap of [ApplicationsName]. Any user with permission to write in the
// namespace can forge it: everything is bounded and validated, and only CRDs of namespaced custom resources are
// returned.
func Applications(configMap *unstructured.Unstructured, solution string) ([]*unstructured.Unstructured, error) {
	where := "ConfigMap " + configMap.GetNamespace() + "/" + configMap.GetName()
	encoded, _, _ := unstructured.NestedString(configMap.Object, "binaryData", applicationsKey)
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(data) > maxUnpacked {
		err = report.Errorf(report.Corrupt, "it is larger than %d MiB", maxUnpacked>>20)
	}
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	document, err := schema.ParseStored[schema.Applications]("applications", where, data)
	if err != nil {
		return nil, err
	}
	if document.Solution != solution {
		return nil, report.Errorf(report.Corrupt, "%s is about another Solution", where)
	}
	var definitions []*unstructured.Unstructured
	for _, content := range document.Definitions {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{}
		if err = crd.UnmarshalJSON(text); err != nil || !isApplication(crd) {
			return nil, report.Errorf(report.Corrupt, "%s: %q defines no applications", where, crd.GetName())
		}
		definitions = append(definitions, crd)
	}
	return definitions, nil
}

// isApplication reports whether an object is a CRD of namespaced custom resources outside of the groups of Kubernetes.
func isApplication(crd *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	custom := strings.Contains(group, ".") && group != "k8s.io" && !strings.HasSuffix(group, ".k8s.io")
	return custom && scope == "Namespaced" && crd.GetKind() == "CustomResourceDefinition" && crd.GetName() == plural+"."+group
}
