package lint

import (
	"context"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkTakeover reports powers beyond those that every Solution has, in the words that an administrator reads before
// approving them. An error is a power that cannot be approved.
func checkTakeover(_ context.Context, t *subject, r *reporter) {
	for _, part := range t.parts() {
		places := map[string]*target.Object{}
		for _, o := range part.objects {
			places[roleOf(o, o.Kind, o.Name).String()] = o
		}
		for _, p := range powers.Judge(t.ownerOf(part.objects), part.judged) {
			o := places[p.Object.Kind+"/"+p.Object.Name]
			if o == nil { // a role that every cluster has: the binding is the place
				o = part.bindingOf(p)
			}
			if o == nil || p.Rules == nil && p.Subject == "" {
				continue
			}
			severity := report.SeverityWarning
			if p.Need == schema.NeedRefused {
				severity = report.SeverityError
			}
			field, _, _ := strings.Cut(p.Field, ", ")
			if !strings.HasPrefix(field, "rules[") {
				field = ""
			}
			r.ReportAs(severity, o.At(field), "use fewer permissions, or explain them to the administrator: they are approved with --allow "+string(p.Name),
				"it can %s", p.Why)
		}
	}
	t.reportClaims(r)
	t.reportHazards(r, rbac.SystemName)
}

// reportClaims reports objects in namespaces of the cluster, and CRDs in groups that the API server itself has.
func (t *subject) reportClaims(r *reporter) {
	for _, o := range t.Objects() {
		judged := judgedObject(o)
		isCRD, namespace := o.Kind == "CustomResourceDefinition", judged.GetNamespace()
		if !o.Part.Applied() || isMoved(o) || !isCRD && (namespace == "default" || !schema.IsSystemNamespace(namespace)) { // charts are rendered for default
			continue
		}
		for _, p := range powers.Judge(t.ownerOf([]*target.Object{o}), []powers.Object{judged}) {
			switch {
			case p.Need == schema.NeedRefused && isCRD && p.Name == schema.PowerDefinesForeignAPIs:
				r.ReportAs(report.SeverityError, o.At(p.Field), "use a group of your own", "it can %s, which no approval allows", p.Why)
			case p.Name == schema.PowerObjectsElsewhere && !isCRD:
				r.ReportAs(report.SeverityWarning, o.At(p.Field), "use a namespace of the Solution, or explain it to the administrator: it is approved with --allow "+string(p.Name),
					"it can %s", p.Why)
			}
		}
	}
}

// isMoved reports whether an object is not applied in its namespace (SOL208): older archives have MetalK8s' namespace in the user
// interface, which is deployed into that of the environment.
func isMoved(o *target.Object) bool {
	return o.Part == target.PartUI && o.Namespace == "metalk8s-solutions"
}

// String names a role within its part.
func (b boundRole) String() string { return b.kind + "/" + b.name }

// rightsPart are the roles, bindings and accounts that are applied together.
type rightsPart struct {
	objects []*target.Object
	judged  []powers.Object
}

// bindingOf returns the binding that gives a power's role to its subject.
func (p *rightsPart) bindingOf(power schema.Power) *target.Object {
	for _, o := range p.objects {
		name, _, _ := unstructured.NestedString(o.Value, "roleRef", "name")
		if strings.HasSuffix(o.Kind, "Binding") && name == power.Object.Name {
			return o
		}
	}
	return nil
}

// parts returns the objects about permissions, grouped by what is applied together. An operator's roles are bound to
// its account.
func (t *subject) parts() []*rightsPart {
	byKey := map[boundRole]*rightsPart{}
	var parts []*rightsPart
	for _, o := range t.Objects() {
		if !o.Part.Applied() || !isRole(o) && !strings.HasSuffix(o.Kind, "Binding") && o.Kind != "ServiceAccount" {
			continue
		}
		key := roleOf(o, "", "")
		if o.Part == target.PartRole {
			key.file = o.File
		}
		part, ok := byKey[key]
		if !ok {
			part = &rightsPart{}
			byKey[key], parts = part, append(parts, part)
		}
		part.objects = append(part.objects, o)
		part.judged = append(part.judged, judgedObject(o))
		if o.Part == target.PartRole {
			part.judged = append(part.judged, t.operatorBinding(o))
		}
	}
	return parts
}

// unknownNamespace stands for the namespace in which a Solution will be.
const unknownNamespace = "ENVIRONMENT"

// judgedObject is an object as it is judged: in some namespace of the Solution where it names none.
func judgedObject(o *target.Object) powers.Object {
	judged := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(judged.Object, o.Value)
	if o.Kind != "ClusterRole" && o.Kind != "ClusterRoleBinding" && judged.GetNamespace() == "" {
		metadata := map[string]any{"namespace": unknownNamespace}
		old, _ := o.Value["metadata"].(map[string]any)
		for key, value := range old {
			if key != "namespace" {
				metadata[key] = value
			}
		}
		judged.Object["metadata"] = metadata
	}
	return powers.Object{File: o.File, Unstructured: judged}
}

// operatorBinding returns the binding of an operator's role to its account.
func (t *subject) operatorBinding(role *target.Object) powers.Object {
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": role.Name, "namespace": unknownNamespace},
		"roleRef":  map[string]any{"kind": role.Kind, "name": role.Name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "operator", "namespace": unknownNamespace}},
	}}
	if namespace := judgedObject(role).GetNamespace(); namespace != "" {
		binding.SetNamespace(namespace)
	} else if clusterWide(t) && role.File == archive.RoleFile {
		binding.SetKind("ClusterRoleBinding")
		unstructured.RemoveNestedField(binding.Object, "metadata", "namespace")
	}
	return powers.Object{File: role.File, Unstructured: binding}
}

// ownerOf is the Solution. Namespaces that its files name count as its own: where objects will be, the deployment decides.
func (t *subject) ownerOf(objects []*target.Object) powers.Owner {
	owner := powers.Owner{Solution: t.Solution.Metadata.Name, Namespaces: []string{unknownNamespace}, Groups: t.ownGroups(), Claimed: t.Solution.Spec.CustomAPIGroups}
	for _, d := range t.Definitions() {
		owner.Definitions = append(owner.Definitions, powers.Definition{Group: d.Spec.Group, Kind: d.Spec.Names.Kind, Plural: d.Spec.Names.Plural})
	}
	add := func(namespace string) {
		if namespace != "" && !schema.IsSystemNamespace(namespace) {
			owner.Namespaces = append(owner.Namespaces, namespace)
		}
	}
	for _, o := range objects {
		add(judgedObject(o).GetNamespace())
		if b, err := rbac.BindingFromObject(o.Value); err == nil {
			for _, s := range b.Subjects {
				if s.Namespace == "default" { // the namespace of rendered charts
					owner.Namespaces = append(owner.Namespaces, s.Namespace)
				}
				add(s.Namespace)
			}
		}
	}
	return owner
}
