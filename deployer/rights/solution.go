package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Version is a version of a Solution as the objects that deploying it applies.
type Version struct {
	ID          string
	Activation  []*unstructured.Unstructured // when it is activated
	Deployments []Deployment                 // in each namespace
}

// Deployment is a version in one namespace of an environment.
type Deployment struct {
	Namespace  string
	Operator   []*unstructured.Unstructured
	Components []Component
}

// Component is any component of a version, which may be selected. Objects has the objects of an installation and of an upgrade with the values
// of the archive, including its tasks; a component of the cluster has none.
type Component struct {
	*schema.Component
	Objects []*unstructured.Unstructured
}

// solution collects the permissions to deploy versions of a Solution.
type solution struct {
	cluster    *cluster.Cluster
	o          RolesOptions
	wide, here []cluster.Permission // in the whole cluster, and in the namespaces of environments
	kinds      []cluster.Permission // on the custom resources, for users of applications
	served     map[string][]string  // versions in any archive, by CustomResourceDefinition
	notices    []string
}

// version adds the permissions for one version.
func (s *solution) version(ctx context.Context, v Version) error {
	for _, object := range v.Activation {
		var err error
		switch group := object.GroupVersionKind().Group; {
		case object.GetKind() == cluster.DefinitionKind.Kind:
			s.define(object)
			err = s.object(ctx, &s.wide, object)
		case object.GetKind() == cluster.NamespaceKind.Kind:
		case group == monitoringGroup, object.GetNamespace() == "" && strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy"):
			err = s.object(ctx, &s.wide, object)
		default:
			s.notice("activating %s brings %s %s, which takes an administrator: no role grants it", v.ID, object.GetKind(), object.GetName())
		}
		if err != nil {
			return err
		}
	}
	for _, in := range v.Deployments {
		for _, object := range in.Operator {
			if err := s.placed(ctx, object); err != nil {
				return err
			}
		}
		for _, c := range in.Components {
			if err := s.component(ctx, v.ID, in.Namespace, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// define adds the permissions on the objects of a CustomResourceDefinition, which are checked, exported and deleted.
func (s *solution) define(definition *unstructured.Unstructured) {
	name := definition.GetName()
	s.served[name] = slices.Compact(slices.Sorted(slices.Values(append(s.served[name], render.ServedVersions(definition)...))))
	s.wide = append(s.wide, definitions.OnObjects(definition, "get", "list", "watch", "delete")...)
	if len(s.served[name]) > 1 { // they are stored again when a version is removed
		s.wide = append(s.wide, definitions.MayMigrate(definition)...)
	}
	s.kinds = append(s.kinds, definitions.OnObjects(definition, "get", "list", "watch", "create", "patch", "update", "delete")...)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok {
			if _, scales, _ := unstructured.NestedMap(v, "subresources", "scale"); scales {
				scale := definitions.OnObjects(definition, "patch")
				scale[0].Subresource = "scale"
				s.kinds = append(s.kinds, scale...)
			}
		}
	}
}

// component adds the permissions for a component. Planning tries its tasks by dry runs.
func (s *solution) component(ctx context.Context, id, namespace string, c Component) error {
	if c.Scope == schema.ScopeCluster {
		s.notice("component %s of %s is in the cluster, which takes an administrator: no role grants it", c.Name, id)
		return nil
	}
	if c.Chart != "" {
		s.notice("component %s of %s is a chart: roles grant what it brings with the values of the archive, and other values may bring more", c.Name, id)
	}
	for _, object := range c.Objects {
		switch at := object.GetNamespace(); {
		case at != "" && at != namespace:
			s.notice("component %s of %s has %s %s in namespace %s: no role grants it", c.Name, id, object.GetKind(), object.GetName(), at)
		case at == "" && object.GroupVersionKind().Group != rbacv1.GroupName:
			s.notice("component %s of %s has %s %s, which takes an administrator: no role grants it", c.Name, id, object.GetKind(), object.GetName())
		default:
			if err := s.placed(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// placed adds the permissions for an object in a namespace of an environment, or for one of the cluster that belongs to it.
func (s *solution) placed(ctx context.Context, object *unstructured.Unstructured) error {
	to := &s.here
	if object.GetNamespace() == "" && object.GroupVersionKind().Group == rbacv1.GroupName {
		if to = &s.wide; s.o.Environment == "" {
			s.notice("the operator of %s wants %s %s, whose name depends on the namespace: say --environment to have rights on it", s.o.Solution, object.GetKind(), object.GetName())
			return nil
		}
	}
	if roleResource(object) != "" {
		*to = append(*to, onRole(object, "bind", "escalate")...)
	}
	return s.object(ctx, to, object)
}

// object adds the permissions to create and to delete an object. Kinds that the cluster does not have are not deployed.
func (s *solution) object(ctx context.Context, to *[]cluster.Permission, object *unstructured.Unstructured) error {
	for _, action := range []schema.Action{schema.ActionCreate, schema.ActionDelete} {
		required, err := forChange(ctx, s.cluster, schema.Change{Action: action, Object: refOf(object)}, true)
		if err != nil {
			return err
		}
		*to = append(*to, required...)
	}
	return nil
}

func (s *solution) notice(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.notices, text) {
		s.notices = append(s.notices, text)
	}
}
