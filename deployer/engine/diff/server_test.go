package diff

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// server keeps one object as an API server does: apimachinery's server-side apply, with the schemas of Kubernetes, records who owns which
// field.
type server struct {
	*testing.T
	fields *managedfields.FieldManager
	live   *unstructured.Unstructured
}

// serve returns a server to which solutionctl has applied an object.
func serve(t *testing.T, text string) *server {
	t.Helper()
	s := &server{T: t}
	s.begin(text)
	s.apply(cluster.FieldManager, text)
	return s
}

// begin prepares the server for an object, and returns one that has nothing but its name.
func (s *server) begin(text string) *unstructured.Unstructured {
	s.Helper()
	o := object(s.T, text)
	kind := o.GroupVersionKind()
	types := managedfields.NewDeducedTypeConverter() // as for a custom resource without a schema
	if scheme.Scheme.Recognizes(kind) {
		types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	}
	fields, err := managedfields.NewDefaultFieldManager(types, unconverted{}, unconverted{}, unconverted{}, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		s.Fatal(err)
	}
	s.fields, s.live = fields, &unstructured.Unstructured{}
	s.live.SetGroupVersionKind(kind)
	bare := s.live.DeepCopy()
	bare.SetName(o.GetName())
	bare.SetNamespace(o.GetNamespace())
	return bare
}

// text is an object as a document.
func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// apply applies an object, and takes the fields of others that it has.
func (s *server) apply(manager, text string) {
	s.Helper()
	next, err := s.fields.Apply(s.live, object(s.T, text), manager, true)
	s.keep(next, err)
}

// update writes the live object back after a change, as kubectl edit and controllers do.
func (s *server) update(manager string, change func(live *unstructured.Unstructured)) {
	s.Helper()
	next := s.live.DeepCopy()
	change(next)
	updated, err := s.fields.Update(s.live, next, manager)
	s.keep(updated, err)
}

// keep stores the object as it comes back from etcd: it has the numbers of JSON.
func (s *server) keep(next runtime.Object, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	s.live = withProtocols(object(s.T, text(s.T, next.(*unstructured.Unstructured))))
}

// withProtocols sets the protocol of ports that have none, as the server does. It is a part of their key.
func withProtocols(o *unstructured.Unstructured) *unstructured.Unstructured {
	var visit func(value any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if value["protocol"] == nil && (value["containerPort"] != nil || value["targetPort"] != nil) {
				value["protocol"] = "TCP"
			}
			for _, element := range value {
				visit(element)
			}
		case []any:
			for _, element := range value {
				visit(element)
			}
		}
	}
	visit(o.Object)
	return o
}

// setting returns a change that sets a field.
func setting(value any, path ...string) func(*unstructured.Unstructured) {
	return func(live *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(live.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// removing returns a change that removes a field.
func removing(path ...string) func(*unstructured.Unstructured) {
	return func(live *unstructured.Unstructured) { unstructured.RemoveNestedField(live.Object, path...) }
}

// inElement returns a change of the first element of a list that has a name.
func inElement(name string, change func(element map[string]any), list ...string) func(*unstructured.Unstructured) {
	return func(live *unstructured.Unstructured) {
		elements, _, err := unstructured.NestedSlice(live.Object, list...)
		if err != nil {
			panic(err)
		}
		for _, element := range elements {
			if element := element.(map[string]any); element["name"] == name {
				change(element)
				break
			}
		}
		setting(elements, list...)(live)
	}
}

// unconverted converts and defaults nothing: objects are unstructured, and of one version.
type unconverted struct{}

func (unconverted) Default(runtime.Object) {}

func (unconverted) New(kind kube.GroupVersionKind) (runtime.Object, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty, nil
}

func (unconverted) Convert(_, _, _ any) error { return nil }

func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (unconverted) ConvertFieldLabel(_ kube.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
