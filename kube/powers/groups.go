package powers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

// controllers are domains of the API groups of well-known controllers, beside those of [rightsOverControllers]. An archive can claim these
// groups before the controllers are installed: of these, only the kinds are its own whose CRDs it brings.
var controllers = []string{
	"argoproj.io", "cattle.io", "cert-manager.io", "cilium.io", "cnpg.io", "coreos.com", "crossplane.io", "dapr.io", "elastic.co", "external-secrets.io",
	"fluxcd.io", "gatekeeper.sh", "hashicorp.com", "integreatly.org", "istio.io", "k8s.ovn.org", "keda.sh", "knative.dev", "kubeovn.io", "kubevirt.io",
	"kyverno.io", "linkerd.io", "longhorn.io", "metallb.io", "openshift.io", "projectcalico.org", "strimzi.io", "tekton.dev",
	"traefik.io", "velero.io", "x-k8s.io",
}

// isOfController reports whether an API group is of a well-known controller.
func isOfController(group string) bool {
	return slices.ContainsFunc(rightsOverControllers, func(r right) bool { return r.group == group }) ||
		slices.ContainsFunc(controllers, func(domain string) bool { return group == domain || strings.HasSuffix(group, "."+domain) })
}

// OwnGroups returns the API groups that a Solution can call its own, sorted: those that its manifest claims and those of its CRDs, without
// those of Kubernetes and MetalK8s. Of well-known controllers it has only those of its CRDs.
func OwnGroups(solution string, claimed []string, crds []*unstructured.Unstructured) []string {
	groups := slices.DeleteFunc(slices.Clone(claimed), isOfController)
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		groups = append(groups, group)
	}
	return set(slices.DeleteFunc(groups, func(group string) bool { return schema.IsProtectedGroup(solution, group) }))
}

// ownGroups returns the groups of the Solution, and claimed ones with a CRD among the objects, such as one of a chart, if others do not have
// them.
func (j *judgement) ownGroups() map[string]bool {
	groups := slices.Clone(j.owner.Groups)
	for _, o := range j.objects {
		if group := text(o, "spec", "group"); isKind(o, "apiextensions.k8s.io", "CustomResourceDefinition") && slices.Contains(j.owner.Claimed, group) {
			groups = append(groups, group)
		}
	}
	own := map[string]bool{}
	for _, group := range groups {
		if !schema.IsProtectedGroup(j.owner.Solution, group) && (j.owner.ForeignGroup == nil || j.owner.ForeignGroup(group) == "") {
			own[group] = true
		}
	}
	return own
}

// Definition names the kind and the resource of a CRD.
type Definition struct{ Group, Kind, Plural string }

// DefinitionOf reads the names of a CRD.
func DefinitionOf(crd *unstructured.Unstructured) Definition {
	o := Object{Unstructured: crd}
	return Definition{Group: text(o, "spec", "group"), Kind: text(o, "spec", "names", "kind"), Plural: text(o, "spec", "names", "plural")}
}

// define records the kinds and resources of the Solution's CRDs.
func (j *judgement) define() {
	definitions := slices.Clone(j.owner.Definitions)
	for _, o := range j.objects {
		if isKind(o, "apiextensions.k8s.io", "CustomResourceDefinition") {
			definitions = append(definitions, DefinitionOf(o.Unstructured))
		}
	}
	j.partly, j.kinds, j.resources = map[string]bool{}, map[kube.GroupKind]bool{}, map[kube.GroupResource]bool{}
	for group := range j.groups {
		j.partly[group] = isOfController(group)
	}
	for _, d := range definitions {
		j.kinds[kube.GroupKind{Group: d.Group, Kind: d.Kind}] = true
		j.resources[kube.GroupResource{Group: d.Group, Resource: d.Plural}] = true
	}
}

// mainResources are resources without which the controllers of groups do not work. An archive with the CRD of one has all resources of its group,
// where a rule has a wildcard. In the other groups of controllers a wildcard is about those of others.
var mainResources = map[string]string{
	"cert-manager.io": "certificates", "acme.cert-manager.io": "orders", "keda.sh": "scaledobjects", "eventing.keda.sh": "cloudeventsources",
	"source.toolkit.fluxcd.io": "gitrepositories", "kustomize.toolkit.fluxcd.io": "kustomizations", "helm.toolkit.fluxcd.io": "helmreleases",
	"notification.toolkit.fluxcd.io": "alerts", "image.toolkit.fluxcd.io": "imagerepositories", "source.extensions.fluxcd.io": "artifactgenerators",
	"kubevirt.io": "virtualmachines", "operators.coreos.com": "clusterserviceversions",
	"serving.knative.dev": "services", "eventing.knative.dev": "brokers", "messaging.knative.dev": "channels",
}

// ownsAll reports whether all kinds of a group are the Solution's own.
func (j *judgement) ownsAll(group string) bool { return j.groups[group] && !j.partly[group] }

// ownsResource reports whether a resource, or a subresource, is the Solution's own.
func (j *judgement) ownsResource(group, resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	if resource == "*" || resource == "signers" { // cert-manager has no CRD for them
		resource = mainResources[group]
	}
	return j.ownsAll(group) || j.groups[group] && j.resources[kube.GroupResource{Group: group, Resource: resource}]
}

// ownsKind reports whether a kind is the Solution's own.
func (j *judgement) ownsKind(group, kind string) bool {
	return j.ownsAll(group) || j.groups[group] && j.kinds[kube.GroupKind{Group: group, Kind: kind}]
}

// claims refuses groups that the Solution calls its own and that belong to Kubernetes.
func (j *judgement) claims() {
	for _, group := range set(j.owner.Groups) {
		if !schema.IsProtectedGroup(j.owner.Solution, group) {
			continue
		}
		j.record(schema.Power{
			Name: schema.PowerClaimsGroup, Reach: schema.ReachCluster, Need: schema.NeedRefused,
			Object:  schema.ObjectRef{APIVersion: schema.APIVersion, Kind: schema.KindSolution, Name: j.owner.Solution},
			Field:   "spec.customApiGroups",
			Why:     fmt.Sprintf("call the API group %q its own, which belongs to Kubernetes or MetalK8s", group),
			Effects: []string{group},
		})
	}
}

// isBuiltIn reports whether the API server itself serves the kinds of a group.
func isBuiltIn(group string) bool { return schema.IsAPIServerGroup(group) }
