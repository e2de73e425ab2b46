package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// owner describes the Solution for the judgement of its objects.
func (r *Run) owner(ctx context.Context, j *judged, objects []*unstructured.Unstructured) (powers.Owner, error) {
	var namespaces []string
	if j.key.Namespace != "" {
		namespaces = append(namespaces, j.key.Namespace)
	}
	owner, err := render.Owner(j.payload, namespaces...)
	if err != nil {
		return owner, err
	}
	groups := foreignGroups{Planner: r.Planner, solution: j.key.Name, groups: slices.Concat(owner.Groups, owner.Claimed), owners: map[string]string{}}
	groups.isOwn = func(object *unstructured.Unstructured) (bool, error) {
		switch {
		case r.Adopt && slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind() == object.GroupVersionKind() && o.GetName() == object.GetName()
		}):
			return true, nil
		case j.key.Namespace == "" || object.GetKind() != cluster.DefinitionKind.Kind:
			return false, nil
		}
		own, failure := r.Definitions.Unlabelled(ctx, r.Catalog, j.key.Name)
		return own[object.GetName()], failure
	}
	owner.ForeignGroup = func(group string) string { return groups.owners[group] }
	return owner, groups.find(ctx)
}

// judge judges objects. <solution>-system is taken out of the Solution's own namespaces if others have created it, which is looked up only if it makes a
// difference. If the Namespace is planned, the plan is refused unless the user adopts it.
func (r *Run) judge(ctx context.Context, owner *powers.Owner, key record.Key, objects []*unstructured.Unstructured) ([]schema.Power, error) {
	system, list := render.SystemNamespace(key.Name), judgeable(key, objects, "")
	found := powers.Judge(*owner, list)
	if key.Namespace == system || slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind() == cluster.NamespaceKind && o.GetName() == system
	}) {
		return found, nil
	}
	without := *owner
	without.Namespaces = slices.DeleteFunc(slices.Clone(owner.Namespaces), func(name string) bool { return name == system })
	more := powers.Judge(without, list)
	if reflect.DeepEqual(found, more) {
		return found, nil
	}
	live, err := r.Cluster.GetMetadata(ctx, cluster.NamespaceKind, "", system)
	if report.CodeOf(err) == report.Forbidden { // a user of one namespace
		return found, nil
	}
	if live == nil || live.GetLabels()[schema.LabelRelease] == (record.Key{Name: key.Name}).ID() {
		return found, err
	}
	*owner = without
	return more, err
}

// foreignGroups finds out who else has API groups of a Solution in the cluster.
type foreignGroups struct {
	*Planner
	solution string
	groups   []string
	// isOwn reports whether a definition or an APIService without a label is the Solution's own.
	isOwn  func(*unstructured.Unstructured) (bool, error)
	owners map[string]string // by group, what was found
}

// find asks for definitions, and then for the servers behind the API server.
func (g *foreignGroups) find(ctx context.Context) error {
	kinds, err := g.Cluster.Kinds(ctx)
	if err != nil {
		return err
	}
	defined := map[kube.GroupVersion]bool{} // all versions of each definition
	for _, kind := range kinds {
		version := kind.Resource.GroupVersion()
		if !g.asks(version.Group) {
			continue
		}
		var definition *unstructured.Unstructured
		if definition, err = g.Cluster.Definition(ctx, kind.Resource.Resource+"."+version.Group); err == nil && definition != nil {
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			for _, v := range versions {
				if fields, ok := v.(map[string]any); ok {
					defined[kube.GroupVersion{Group: version.Group, Version: fmt.Sprint(fields["name"])}] = true
				}
			}
			err = g.judge(version.Group, definition)
		}
		if err != nil {
			return err
		}
	}
	versions, err := g.Cluster.Versions(ctx)
	for _, version := range versions {
		if err != nil || !g.asks(version.Group) || defined[version] {
			continue
		}
		var service *unstructured.Unstructured
		if service, err = g.apiService(ctx, version); err == nil && service != nil {
			err = g.judge(version.Group, service)
		}
	}
	return err
}

// asks reports whether it is open who has a group.
func (g *foreignGroups) asks(group string) bool {
	return slices.Contains(g.groups, group) && g.owners[group] == "" && !schema.IsProtectedGroup(g.solution, group)
}

// judge finds the owner of a group by the label of an object that brings it.
func (g *foreignGroups) judge(group string, object *unstructured.Unstructured) error {
	switch of := object.GetLabels()[schema.LabelRelease]; of {
	case record.Key{Name: g.solution}.ID():
	case "":
		own, err := g.isOwn(object)
		if err == nil && !own {
			g.owners[group] = fmt.Sprintf("the creator of %s %s", object.GetKind(), object.GetName())
		}
		return err
	default:
		g.owners[group] = "Solution " + strings.SplitN(of, ".", 2)[0]
	}
	return nil
}

var apiServiceKind = kube.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// apiService returns the APIService of a server behind the API server that has a version of a group; nil where the API server has it
// itself. A user who cannot read it gets one without labels.
func (g *foreignGroups) apiService(ctx context.Context, version kube.GroupVersion) (*unstructured.Unstructured, error) {
	name := version.Version + "." + version.Group
	service, err := g.Cluster.Get(ctx, apiServiceKind, "", name)
	if report.CodeOf(err) == report.Forbidden {
		service = &unstructured.Unstructured{}
		service.SetGroupVersionKind(apiServiceKind)
		service.SetName(name)
		return service, nil
	}
	if err != nil || service == nil {
		return nil, err
	}
	if server, _, _ := unstructured.NestedMap(service.Object, "spec", "service"); server == nil {
		return nil, nil
	}
	return service, nil
}
