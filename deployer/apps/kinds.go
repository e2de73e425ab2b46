package apps

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/apps/form"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Kind is a kind of instances that the Solutions of an environment offer.
type Kind struct {
	Solution string
	*form.Form

	kind       kube.GroupVersionKind
	source     apiextensionsv1.CustomResourceDefinitionSpec // the source of the form
	names      []string                                     // by which people call the kind, lower case
	scales     bool
	reports    bool                 // its operator reports health in conditions
	namespaces []metalk8s.Namespace // where its operator is
}

// offer has the kinds of instances that an environment has, by name.
type offer struct {
	environment string
	kinds       []*Kind
	unread      error // why those of some Solution are not known
}

// Kinds returns the kinds of instances that can be made in an environment, or in one namespace of it, by name.
func (a *Apps) Kinds(ctx context.Context, o Options) ([]*Kind, error) {
	offered, err := a.kinds(ctx, o)
	if err != nil {
		return nil, err
	}
	return offered.kinds, nil
}

// kinds returns the kinds that users can create in an environment, or in one namespace of it, by the deployed versions.
// Where the imported versions cannot be read, it uses the annotations of the namespaces. A Solution whose kinds cannot
// be read is left out and reported; the others are not affected.
func (a *Apps) kinds(ctx context.Context, o Options) (*offer, error) {
	namespaces, err := a.namespaces(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, err
	}
	catalog, err := a.Records.Catalog(ctx)
	unreadable := report.CodeOf(err) == report.Forbidden || report.CodeOf(err) == report.Corrupt
	if err != nil && !unreadable {
		return nil, err
	}
	offered := &offer{environment: o.Environment}
	for _, n := range namespaces {
		for _, solution := range slices.Sorted(maps.Keys(n.Versions)) {
			var definitions []*unstructured.Unstructured
			if unreadable {
				definitions, err = a.annotatedApplications(ctx, n.Name, solution)
			} else {
				definitions, err = a.applications(ctx, catalog, n, solution)
			}
			var served []*Kind
			if err == nil {
				served, err = a.served(ctx, solution, definitions)
			}
			offered.add(served, n)
			switch report.CodeOf(err) {
			case report.Corrupt, report.Invalid:
				note := strings.Join(append([]string{err.Error()}, report.Hints(err)...), "; ")
				a.Sink.Emit(report.Event{Step: "read", Name: solution, State: report.Skipped, Note: note})
				offered.unread = cmp.Or(offered.unread, err)
			default:
				if err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortStableFunc(offered.kinds, func(a, b *Kind) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Solution, b.Solution))
	})
	return offered, nil
}

// namespaces returns namespaces of an environment. A user without permission to list namespaces has to name one, unless
// it has the name of the environment.
func (a *Apps) namespaces(ctx context.Context, environment, namespace string) ([]metalk8s.Namespace, error) {
	namespaces, err := a.Records.Namespaces(ctx, environment, namespace)
	if report.CodeOf(err) != report.Forbidden {
		return namespaces, err
	}
	one, err := a.Records.Documents.Namespace(ctx, environment, cmp.Or(namespace, environment))
	if err != nil && namespace == "" {
		return nil, report.Errorf(report.CodeOf(err), "you do not have permission to list the namespaces of environment %s: %w", environment, err).
			WithHint("name your namespace with --namespace")
	}
	return []metalk8s.Namespace{one}, err
}

// applications returns the CRDs of the version of a Solution that a namespace has, or those in the cluster if the version is not imported.
func (a *Apps) applications(ctx context.Context, catalog *records.Catalog, n metalk8s.Namespace, solution string) ([]*unstructured.Unstructured, error) {
	state, err := a.Records.Engine.State(ctx, record.Key{Namespace: n.Name, Name: solution})
	if err != nil {
		return nil, err
	}
	version, deployed := records.DeployedVersion(state)
	if !deployed || version == "" {
		version = n.Versions[solution]
	}
	imported, known := catalog.Get(solution + "-" + version)
	if !known {
		return a.Definitions.Of(ctx, catalog, solution)
	}
	p, err := a.Records.Payload(ctx, imported)
	if err != nil {
		return nil, err
	}
	return render.Definitions(p)
}

// annotatedApplications returns the CRDs that a namespace lists in an annotation. They are not trusted.
func (a *Apps) annotatedApplications(ctx context.Context, namespace, solution string) ([]*unstructured.Unstructured, error) {
	name := render.ApplicationsName(solution)
	configMap, err := a.Cluster.Get(ctx, cluster.ConfigMapKind, namespace, name)
	if err != nil || configMap == nil {
		return nil, err
	}
	return render.Applications(configMap, solution)
}

// served returns the kinds of a Solution that the cluster serves; with an error, those before it.
func (a *Apps) served(ctx context.Context, solution string, definitions []*unstructured.Unstructured) (kinds []*Kind, _ error) {
	for _, object := range definitions {
		kind, err := a.newKind(ctx, solution, object)
		if err != nil {
			return kinds, err
		}
		if kind != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// add adds kinds of a namespace. Namespaces with the same version share a kind.
func (o *offer) add(kinds []*Kind, n metalk8s.Namespace) {
	for _, kind := range kinds {
		same := slices.IndexFunc(o.kinds, func(k *Kind) bool {
			return k.Solution == kind.Solution && k.kind == kind.kind && apiequality.Semantic.DeepEqual(k.source, kind.source)
		})
		if same < 0 {
			o.kinds, same = append(o.kinds, kind), len(o.kinds)
		}
		o.kinds[same].namespaces = append(o.kinds[same].namespaces, n)
	}
}

// newKind returns nil for kinds that the cluster does not serve in any of their versions, and for those whose objects are
// not in namespaces: those are for administrators.
func (a *Apps) newKind(ctx context.Context, solution string, object *unstructured.Unstructured) (*Kind, error) {
	def, err := definitions.Parse(object)
	if err != nil {
		return nil, err
	}
	version, err := a.servedBoth(ctx, def)
	if err != nil || version == "" || def.Spec.Scope != "Namespaced" {
		return nil, err
	}
	fields, err := form.New(def, version)
	if err != nil {
		return nil, err
	}
	names := append([]string{def.Spec.Names.Kind, def.Spec.Names.Plural, def.Spec.Names.Singular}, def.Spec.Names.ShortNames...)
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return &Kind{
		Solution: solution, Form: fields, names: names, source: def.Spec,
		scales: definitions.Scales(def, version), reports: definitions.ReportsHealth(def, version),
		kind: kube.GroupVersionKind{Group: def.Spec.Group, Version: version, Kind: def.Spec.Names.Kind},
	}, nil
}

// servedBoth is the version that a definition prefers of those that the cluster serves, too.
func (a *Apps) servedBoth(ctx context.Context, def *crd.Definition) (string, error) {
	names := []string{definitions.ServedVersion(def)}
	for _, v := range def.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	for _, name := range names {
		mapping, err := a.Cluster.Mapping(ctx, kube.GroupVersionKind{Group: def.Spec.Group, Version: name, Kind: def.Spec.Names.Kind})
		switch {
		case errors.Is(err, cluster.ErrNoKind):
		case err != nil:
			return "", err
		case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
			return name, nil
		}
	}
	return "", nil
}

// health returns the health of an instance. One that its operator has not observed yet is progressing.
func (k *Kind) health(object *unstructured.Unstructured) (schema.AppHealth, string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if k.reports && len(conditions) == 0 && object.GetDeletionTimestamp() == nil {
		return schema.AppProgressing, "its operator has not looked at it yet"
	}
	return appHealth(object)
}

// Kind returns a kind of instances that can be made in an environment, or in one namespace of it.
func (a *Apps) Kind(ctx context.Context, o Options) (*Kind, error) {
	offered, err := a.kinds(ctx, o)
	if err != nil {
		return nil, err
	}
	return offered.choose(o.Kind)
}

// isCalled reports whether name is one of the names of the kind.
func (k *Kind) isCalled(name string) bool { return slices.Contains(k.names, strings.ToLower(name)) }

// choose returns the kind of a name; "" is the only one.
func (f *offer) choose(name string) (*Kind, error) {
	var names []string
	var found []*Kind
	for _, kind := range f.kinds {
		names = append(names, kind.Kind)
		if name == "" || kind.isCalled(name) {
			found = append(found, kind)
		}
	}
	names = slices.Compact(names)
	switch {
	case name == "" && len(found) > 0 && f.unread != nil: // another kind may be meant
		return nil, report.Errorf(report.Usage, "environment %s may have instances of more kinds: %w", f.environment, f.unread).
			WithHint("say which one: --kind %s", strings.Join(names, ", --kind "))
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && f.unread != nil:
		return nil, f.unread
	case len(f.kinds) == 0:
		return nil, report.Errorf(report.NotFound, "no Solution in environment %s has instances that you have permission to list", f.environment).
			WithHint("deploy one: %s; adding it again records its kinds for users with permissions in one namespace only", report.Run("deploy add", f.environment, "SOLUTION"))
	case len(found) == 0:
		return nil, report.Errorf(report.NotFound, "environment %s has no kind %s", f.environment, name).
			WithHint("it has %s", strings.Join(names, ", "))
	case slices.ContainsFunc(found, func(k *Kind) bool { return k.kind.GroupKind() != found[0].kind.GroupKind() }):
		return nil, report.Errorf(report.Usage, "environment %s has instances of several kinds", f.environment).
			WithHint("say which one: --kind %s", strings.Join(names, ", --kind "))
	default:
		return nil, report.Errorf(report.Usage, "namespaces of environment %s have other versions of Solution %s", f.environment, found[0].Solution).
			WithHint("say which one: --namespace %s", strings.Join(placesOf(found), ", --namespace "))
	}
}

// placesOf are the names of the namespaces in which kinds are.
func placesOf(kinds []*Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Namespaces()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Scales reports whether the number of replicas of an instance can be changed by [Apps.Scale].
func (k *Kind) Scales() bool { return k.scales }

// Namespaces returns the namespaces of the environment in which instances can be created.
func (k *Kind) Namespaces() []string { return metalk8s.NamesOf(k.namespaces) }

// Judge validates an instance of [Apps.New] with the values of assignments, as [Apps.Create] does before it creates one.
func (k *Kind) Judge(ctx context.Context, object *unstructured.Unstructured, assignments []string) error {
	return k.fill(ctx, object, map[string]any{}, assignments, nil)
}

// Description returns the fields that can be filled in, for printing.
func (k *Kind) Description() *schema.AppForm {
	return &schema.AppForm{Solution: k.Solution, APIVersion: k.kind.GroupVersion().String(), Kind: k.Kind, Fields: k.Fields()}
}

// place chooses the namespace of a new instance.
func (k *Kind) place(o Options) (string, error) {
	names := placesOf([]*Kind{k})
	switch {
	case slices.Contains(names, o.Namespace):
		return o.Namespace, nil
	case o.Namespace != "":
		return "", report.Errorf(report.NotFound, "Solution %s is not in namespace %s of environment %s", k.Solution, o.Namespace, o.Environment).
			WithHint("it is in %s", strings.Join(names, ", "))
	case len(names) > 1:
		return "", report.Errorf(report.Usage, "Solution %s is in several namespaces of environment %s", k.Solution, o.Environment).
			WithHint("say which one: --namespace %s", strings.Join(names, ", --namespace "))
	}
	return names[0], nil
}
