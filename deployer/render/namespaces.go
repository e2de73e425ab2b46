package render

import (
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const namespaceKind = "Namespace"

// isHome reports whether an object is a Namespace that activation creates for a cluster component. The component does not apply it itself.
func (p *Payload) isHome(c *schema.Component, o object) bool {
	return o.is("", namespaceKind) && c.CreatesNamespace(o.GetName(), ComponentNamespace(p.Solution, c))
}

// podSecurityLabels returns the Pod Security labels that the Namespaces of cluster components have, by the name of the Namespace.
func (r *renderer) podSecurityLabels() (map[string]map[string]any, error) {
	labels := map[string]map[string]any{}
	for i := range r.p.Solution.Spec.Components {
		homes, err := r.homes(&r.p.Solution.Spec.Components[i])
		if err != nil {
			return nil, err
		}
		for _, o := range homes {
			for key, value := range o.GetLabels() {
				if !strings.HasPrefix(key, schema.PodSecurityLabels) {
					continue
				}
				of := labels[o.GetName()]
				if of == nil {
					of = map[string]any{}
					labels[o.GetName()] = of
				}
				if before, twice := of[key]; twice && before != value {
					return nil, o.refuse(report.Invalid, []string{"metadata", "labels", key}, "another Namespace of this name sets the label to %s", before).
						WithHint("write the same value in both")
				}
				of[key] = value
			}
		}
	}
	return labels, nil
}

// homes returns the Namespaces among the manifests of a component, or in its chart, that activation creates.
func (r *renderer) homes(c *schema.Component) ([]object, error) {
	if c.Scope != schema.ScopeCluster {
		return nil, nil
	}
	found, err := r.p.charts()
	if c.Manifests != "" {
		found, err = r.p.objectsIn(r.p.componentManifests(c), "")
	}
	in := path.Clean(c.Chart) + "/"
	return slices.DeleteFunc(slices.Clone(found), func(o object) bool {
		return !r.p.isHome(c, o) || c.Manifests == "" && !strings.HasPrefix(o.document.File(), in)
	}), err
}
