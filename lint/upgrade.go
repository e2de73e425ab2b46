package lint

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
)

func checkDefinitions(_ context.Context, t *subject, r *reporter) {
	for _, after := range t.Definitions() {
		before, ok := t.against.definition(after.Name)
		if !ok || !after.Part.Applied() {
			continue
		}
		for _, change := range crd.Compare(before.Definition, after.Definition) {
			at := after.At("spec.versions")
			at.Object = "CustomResourceDefinition/" + after.Name
			if change.Path != "" {
				at.Object += ": " + change.Path
			}
			switch change.Severity {
			case crd.Lossy:
				r.Report(at, "keep the field, or add a version with a conversion webhook", "stored data would be lost: %s", change)
			case crd.Breaking:
				r.Report(at, "keep what was allowed, or add a version with a conversion webhook", "objects or clients would break: %s", change)
			case crd.Safe:
			}
		}
	}
}

// definition returns one that activation applies.
func (t *subject) definition(name string) (target.Definition, bool) {
	definitions := t.Definitions()
	i := slices.IndexFunc(definitions, func(d target.Definition) bool { return d.Name == name && d.Part.Applied() })
	if i < 0 {
		return target.Definition{}, false
	}
	return definitions[i], true
}

func checkRemovedDefinitions(_ context.Context, t *subject, r *reporter) {
	before := t.against
	for _, old := range before.Definitions() {
		if _, ok := t.definition(old.Name); !ok && old.Part.Applied() {
			r.Report(target.Place{File: "operator/deploy/crds", Object: "CustomResourceDefinition/" + old.Name},
				"keep it, and stop serving it in a later release", "%s of version %s is gone: its objects stay behind, and nothing looks after them",
				old.Name, before.Solution.Spec.Version)
		}
	}
}

func checkWidened(_ context.Context, t *subject, r *reporter) {
	before := t.against
	for _, kind := range []string{"Role", "ClusterRole"} {
		widened, err := rbac.Widened(grantedBy(before, kind), t.operatorRules(kind))
		if err != nil {
			r.Report(t.rolePlace(kind), "", "the rules of the %ss cannot be compared: %v", kind, err)
		}
		for _, rule := range widened {
			r.Report(t.rolePlace(kind), "review it before the upgrade", "the operator gets new permissions: %s", rbac.Summary(rule))
		}
	}
	if clusterWide(t) && !clusterWide(before) && len(t.operatorRules("ClusterRole")) > 0 {
		r.Report(t.ManifestPlace("spec", "operator", "clusterWide"), "review it before the upgrade",
			"the operator's ClusterRoles are newly bound in every namespace")
	}
	for i := range t.Solution.Spec.Components {
		c := &t.Solution.Spec.Components[i]
		components := before.Solution.Spec.Components
		if j := slices.IndexFunc(components, func(old schema.Component) bool { return old.Name == c.Name }); j >= 0 {
			reportWidened(r, c.Name, before.objectsOf(&components[j]), t.objectsOf(c))
		}
	}
}

// reportWidened reports permissions of a component's roles that the older version did not have.
func reportWidened(r *reporter, component string, before, after []*target.Object) {
	for i, o := range after {
		if !isRole(o) || slices.ContainsFunc(after[:i], func(earlier *target.Object) bool { return isRole(earlier) && earlier.Kind == o.Kind }) {
			continue // once for each kind
		}
		granted := rulesOf(before, "ClusterRole")
		if o.Kind == "Role" {
			granted = slices.Concat(granted, rulesOf(before, "Role"))
		}
		widened, err := rbac.Widened(granted, rulesOf(after, o.Kind))
		if err != nil {
			r.Report(o.At(""), "", "the rules of the %ss cannot be compared: %v", o.Kind, err)
		}
		for _, rule := range widened {
			r.Report(o.At(""), "review it before the upgrade", "component %s gets new permissions: %s", component, rbac.Summary(rule))
		}
	}
}

// grantedBy returns the rules of the older version for roles of a kind: a Role is not wider if a ClusterRole had its
// rules.
func grantedBy(before *subject, kind string) []rbacv1.PolicyRule {
	if kind == "ClusterRole" && clusterWide(before) {
		return before.operatorRules(kind)
	}
	return before.grantedRules(true) // a ClusterRole that is not bound in every namespace ends with the namespace, too
}

func clusterWide(t *subject) bool {
	return t.Solution.Spec.Operator != nil && t.Solution.Spec.Operator.ClusterWide
}

// rolePlace is the first role of a kind.
func (t *subject) rolePlace(kind string) target.Place {
	for _, o := range t.Objects() {
		if o.Part == target.PartRole && o.Kind == kind {
			return o.At("")
		}
	}
	return target.InFile("operator/deploy/role.yaml")
}

func checkStillNeeded(ctx context.Context, t *subject, r *reporter) {
	before := t.against
	if !t.ImagesKnown() {
		return
	}
	now := newResolver(t)
	reported := map[schema.ImageRef]bool{}
	for _, use := range uses(ctx, before) {
		reference, ok := images.ParseReference(use.Image)
		if !use.Found() || !ok || reported[use.Ref] || logicalRegistry.MatchString(use.Image) {
			continue
		}
		if ref, _ := now.resolve(use.Image); now.have[ref] {
			continue
		}
		reported[use.Ref] = true
		r.Report(t.imagePlace(use.Ref), fmt.Sprintf("keep %s imported until nothing runs that needs it", before.Solution.ID()),
			"image %s is gone, and %s of version %s starts it as %s", use.Ref, use.Object, before.Solution.Spec.Version, reference)
	}
}

func checkMovedTags(_ context.Context, t *subject, r *reporter) {
	before := t.against
	digests := map[string]string{} // original name → digest in the older version
	for _, image := range before.Images {
		if origin, ok := originOf(before, image); ok && image.Content != nil {
			digests[origin.String()] = image.Content.Root.Digest.String()
		}
	}
	for _, image := range t.Images {
		origin, ok := originOf(t, image)
		if !ok || image.Content == nil {
			continue
		}
		if old, known := digests[origin.String()]; known && old != image.Content.Root.Digest.String() {
			r.Report(t.imagePlace(image.Ref), "give the new content a new tag", "%s is %s here and %s in version %s",
				origin, image.Content.Root.Digest, old, before.Solution.Spec.Version)
		}
	}
}

func checkVersion(_ context.Context, t *subject, r *reporter) {
	old, err := schema.ParseVersion(t.against.Solution.Spec.Version)
	if err != nil {
		return // the rules on documents report it
	}
	version, err := schema.ParseVersion(t.Solution.Spec.Version)
	if err == nil && version.Compare(old) <= 0 {
		r.Report(t.ManifestPlace("spec", "version"), "raise spec.version in solution.yaml",
			"version %s is not higher than %s", version, old)
	}
}

func checkMinUpgradeFrom(_ context.Context, t *subject, r *reporter) {
	if t.Solution.Spec.MinUpgradeFrom == "" {
		return
	}
	old, err := schema.ParseVersion(t.against.Solution.Spec.Version)
	if err != nil {
		return // the rules on documents report it
	}
	lowest, err := schema.ParseVersion(t.Solution.Spec.MinUpgradeFrom)
	if err == nil && old.Compare(lowest) < 0 {
		r.Report(t.ManifestPlace("spec", "minUpgradeFrom"), fmt.Sprintf("upgrade to %s or later first", lowest),
			"version %s cannot be upgraded in one step: the lowest is %s", old, lowest)
	}
}

func checkSameSolution(_ context.Context, t *subject, r *reporter) {
	if before := t.against; before.Solution.Metadata.Name != t.Solution.Metadata.Name {
		r.Report(t.ManifestPlace("metadata", "name"), "compare it with an older version of the same Solution",
			"this is %s, and the older archive is %s", t.Solution.Metadata.Name, before.Solution.Metadata.Name)
	}
}
