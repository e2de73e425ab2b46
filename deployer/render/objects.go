package render

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// object is an object of the archive, and where it stands.
type object struct {
	*unstructured.Unstructured
	document *schema.Document
	prefix   []string // the path to the object in the document
}

// refuse returns an error that names the object and the line of a field.
func (o object) refuse(code report.Code, path []string, format string, args ...any) *report.Error {
	line, _ := o.document.Lookup(slices.Concat(o.prefix, path)...)
	return report.Errorf(code, "%s:%d: %s/%s: %w", o.document.File(), line, o.GetKind(), o.GetName(), fmt.Errorf(format, args...))
}

func (o object) group() string { return o.GroupVersionKind().Group }

// is reports whether the object is of one of these kinds of an API group.
func (o object) is(group string, kinds ...string) bool {
	return o.group() == group && slices.Contains(kinds, o.GetKind())
}

// read returns the objects of a manifest in which the variable repository stands for a text; the caller may change them.
func (p *Payload) read(file, repository string) ([]object, error) {
	parsed, err := p.parse(file, repository)
	objects := slices.Clone(parsed)
	for i, o := range objects {
		objects[i].Unstructured = o.DeepCopy()
	}
	return objects, err
}

// parse is read for callers that do not change the objects. Each file is parsed once, however many environments and components there are.
func (p *Payload) parse(file, repository string) ([]object, error) {
	key := file + "\x00" + repository
	parsed, known := p.parsed.Load(key)
	if !known {
		data := p.files[file]
		if repository != "" {
			data = repositoryVariable.ReplaceAllLiteral(data, []byte(repository))
		}
		objects, err := parseObjects(file, data)
		if err != nil {
			return nil, err
		}
		parsed, _ = p.parsed.LoadOrStore(key, objects)
	}
	return parsed.([]object), nil
}

func parseObjects(file string, data []byte) ([]object, error) {
	return parseObjectsOf("", file, 1, data)
}

// definitionKind is the kind of definitions of APIs.
const definitionKind = "CustomResourceDefinition"

// parseObjectsOf returns only the objects of a kind, "" for all of them, in a part of a file that begins at a line.
func parseObjectsOf(kind, file string, line int, data []byte) ([]object, error) {
	documents, err := schema.ParseKubernetesAt(file, line, data)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, document := range documents {
		content, _ := document.Value().(map[string]any)
		if document.Value() == nil || kind != "" && content["kind"] != kind {
			continue
		}
		found, err := objectsOf(document, decoded(document.Value()))
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	schema.Release(documents) // the objects are kept, with the documents, and errors about their fields are rare
	return objects, nil
}

// decoded returns a copy of a value of a document as Kubernetes decodes it from JSON: a number is an int64 if it is one, else a float64.
func decoded(value any) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, field := range v {
			object[key] = decoded(field)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = decoded(item)
		}
		return list
	case int:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
		return float64(v)
	case float64:
		if v == math.Trunc(v) && v >= -(1<<63) && v < 1<<63 {
			return int64(v)
		}
		return v
	default:
		return v
	}
}

// objectsOf takes a document apart: a List holds objects, everything else is one.
func objectsOf(document *schema.Document, value any) ([]object, error) {
	content, _ := value.(map[string]any)
	items, isList := content["items"].([]any)
	if kind := content["kind"]; !isList || kind != "List" {
		o, err := newObject(document, value)
		return []object{o}, err
	}
	var objects []object
	for i, item := range items {
		o, err := newObject(document, item, "items", strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func newObject(document *schema.Document, value any, prefix ...string) (object, error) {
	content, ok := value.(map[string]any)
	o := object{&unstructured.Unstructured{Object: content}, document, prefix}
	if !ok || o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
		line, _ := document.Lookup(prefix...)
		return object{}, report.Errorf(report.Invalid, "%s:%d: a document is not a Kubernetes object: it needs apiVersion, kind and metadata.name", document.File(), line).
			WithHint("check the archive with: %s", report.Run("lint"))
	}
	return o, nil
}

// objectsIn reads every file.
func (p *Payload) objectsIn(files []string, repository string) ([]object, error) {
	var objects []object
	for _, file := range files {
		found, err := p.read(file, repository)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// clusterScoped are the kinds of Kubernetes that have no namespace, of every supported release.
var clusterScoped = map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceClass", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

// isClusterScoped reports whether an object has no namespace, by the table and by the CRDs of the archive. Unknown
// kinds count as namespaced, so that they can never leave their namespace.
func (r *renderer) isClusterScoped(o object) bool {
	if slices.Contains(clusterScoped[o.group()], o.GetKind()) {
		return true
	}
	return slices.ContainsFunc(r.crds, func(crd object) bool {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		return group == o.group() && kind == o.GetKind() && scope == "Cluster"
	})
}

// moveTo puts a namespaced object into a namespace, together with the accounts that a binding names.
func moveTo(o *unstructured.Unstructured, namespace string) {
	o.SetNamespace(namespace)
	moveSubjects(o, namespace)
}

// moveSubjects puts the accounts of a binding into a namespace, except those in one of the others.
func moveSubjects(o *unstructured.Unstructured, namespace string, others ...string) {
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	for _, subject := range subjects {
		if s, ok := subject.(map[string]any); ok && s["kind"] == "ServiceAccount" && !slices.Contains(others, fmt.Sprint(s["namespace"])) {
			s["namespace"] = namespace
		}
	}
	if subjects != nil {
		o.Object["subjects"] = subjects
	}
}

// Labels by which people, and MetalK8s, recognise objects.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelVersion   = "app.kubernetes.io/version"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"

	managedBy = "solutionctl"
)

// labels returns the labels of an object that this package creates.
func (r *renderer) labels(name, component string) map[string]any {
	return map[string]any{
		"app": name, labelName: name, labelInstance: name, labelVersion: r.p.Solution.Spec.Version,
		labelComponent: component, labelPartOf: r.name, labelManagedBy: managedBy,
	}
}

// mark labels an object of the archive; existing labels stay.
func (r *renderer) mark(o *unstructured.Unstructured) {
	setLabel(o, labelManagedBy, managedBy)
	if o.GetLabels()[labelPartOf] == "" {
		setLabel(o, labelPartOf, r.name)
	}
}

func setLabel(o *unstructured.Unstructured, key, value string) {
	o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{key: value}))
}

// newKubernetesObject makes an object; content holds everything but its head.
func newKubernetesObject(apiVersion, kind, namespace, name string, labels, content map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels != nil {
		metadata["labels"] = labels
	}
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(o, content)
	return &unstructured.Unstructured{Object: o}
}

// repositoryVariable matches the variable for HOST/<id> in manifests.
var repositoryVariable = lazyregexp.New(`\{\{-?\s*repository\s*-?\}\}`)
