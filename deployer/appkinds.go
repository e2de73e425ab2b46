package deployer

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/form"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// AppKind is a kind of instances that the Solutions of an environment offer.
type AppKind struct {
	Solution string
	*form.Form

	kind       kube.GroupVersionKind
	names      []string // by which people call the kind, lower case
	scales     bool
	reports    bool                 // its operator tells in conditions how an instance is
	namespaces []metalk8s.Namespace // where its operator is
}

// AppKinds returns the kinds of instances that can be made in an environment, by name.
func (d *Deployer) AppKinds(ctx context.Context, environment string) ([]*AppKind, error) {
	e, err := d.documents().Environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string][]metalk8s.Namespace{}
	for _, n := range e.Namespaces {
		for solution := range n.Versions {
			places[solution] = append(places[solution], n)
		}
	}
	var kinds []*AppKind
	for _, solution := range sortedKeys(places) {
		definitions, err := d.definitions(ctx, catalog, solution)
		if err != nil {
			return nil, err
		}
		for _, object := range definitions {
			kind, err := newAppKind(solution, object, places[solution])
			if err != nil {
				return nil, err
			}
			if kind != nil {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b *AppKind) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Solution, b.Solution))
	})
	return kinds, nil
}

// newAppKind returns nil for kinds whose objects are not in namespaces: those are for administrators.
func newAppKind(solution string, object *unstructured.Unstructured, namespaces []metalk8s.Namespace) (*AppKind, error) {
	def, err := definition(object)
	if err != nil {
		return nil, err
	}
	version := servedVersion(def)
	if version == "" || def.Spec.Scope != "Namespaced" {
		return nil, nil
	}
	fields, err := form.New(def, version)
	if err != nil {
		return nil, err
	}
	names := append([]string{def.Spec.Names.Kind, def.Spec.Names.Plural, def.Spec.Names.Singular}, def.Spec.Names.ShortNames...)
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return &AppKind{
		Solution: solution, Form: fields, names: names, namespaces: namespaces,
		scales: scales(def, version), reports: reports(def, version),
		kind: kube.GroupVersionKind{Group: def.Spec.Group, Version: version, Kind: def.Spec.Names.Kind},
	}, nil
}

func scales(d *crd.Definition, version string) bool {
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			return v.Subresources != nil && v.Subresources.Scale != nil
		}
	}
	return false
}

func reports(d *crd.Definition, version string) bool {
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			_, found := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
			return found
		}
	}
	return false
}

// health tells how an instance is. One that its operator has not looked at yet is on its way.
func (k *AppKind) health(object *unstructured.Unstructured) (schema.AppHealth, string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if k.reports && len(conditions) == 0 && object.GetDeletionTimestamp() == nil {
		return schema.AppProgressing, "its operator has not looked at it yet"
	}
	return appHealth(object)
}

// AppKind returns the kind of a name in an environment; "" is its only one.
func (d *Deployer) AppKind(ctx context.Context, environment, name string) (*AppKind, error) {
	kinds, err := d.AppKinds(ctx, environment)
	if err != nil {
		return nil, err
	}
	var names []string
	var found []*AppKind
	for _, kind := range kinds {
		names = append(names, kind.Kind)
		if name == "" || slices.Contains(kind.names, strings.ToLower(name)) {
			found = append(found, kind)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(kinds) == 0:
		return nil, report.Errorf(report.NotFound, "no Solution in environment %s has instances", environment).
			WithHint("deploy one: solutionctl deploy add %s SOLUTION", environment)
	case len(found) > 1:
		return nil, report.Errorf(report.Usage, "environment %s has instances of several kinds", environment).
			WithHint("say which one: --kind %s", strings.Join(names, ", --kind "))
	default:
		return nil, report.Errorf(report.NotFound, "environment %s has no kind %s", environment, name).
			WithHint("it has %s", strings.Join(names, ", "))
	}
}

// Description is what can be filled in, for printing.
func (k *AppKind) Description() *schema.AppForm {
	return &schema.AppForm{Solution: k.Solution, APIVersion: k.kind.GroupVersion().String(), Kind: k.Kind, Fields: k.Fields()}
}

// place chooses the namespace of a new instance.
func (k *AppKind) place(o AppOptions) (string, error) {
	var names []string
	for _, n := range k.namespaces {
		if n.Name == o.Namespace {
			return n.Name, nil
		}
		names = append(names, n.Name)
	}
	switch {
	case o.Namespace != "":
		return "", report.Errorf(report.NotFound, "Solution %s is not in namespace %s of environment %s", k.Solution, o.Namespace, o.Environment).
			WithHint("it is in %s", strings.Join(names, ", "))
	case len(names) > 1:
		return "", report.Errorf(report.Usage, "Solution %s is in several namespaces of environment %s", k.Solution, o.Environment).
			WithHint("say which one: --namespace %s", strings.Join(names, ", --namespace "))
	}
	return names[0], nil
}
