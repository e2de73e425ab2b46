package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// replacement describes the consequences of replacing an object that holds no data of others.
type replacement struct {
	costs       string // the end of a sentence that begins with "replacing it"
	propagation metav1.DeletionPropagation
}

const (
	costsPods   = "ends its pods before the new ones start"
	costsObject = "leaves a moment without it"
)

// Objects that own pods are deleted in the foreground, so that old and new pods never run at the same time.
var replacements = map[kube.GroupKind]replacement{
	{Kind: "Pod"}:                                  {"ends it before the new one starts", metav1.DeletePropagationForeground},
	{Kind: "ReplicationController"}:                {costsPods, metav1.DeletePropagationForeground},
	{Group: "apps", Kind: "Deployment"}:            {costsPods, metav1.DeletePropagationForeground},
	{Group: "apps", Kind: "DaemonSet"}:             {costsPods, metav1.DeletePropagationForeground},
	{Group: "apps", Kind: "ReplicaSet"}:            {costsPods, metav1.DeletePropagationForeground},
	{Group: "apps", Kind: "StatefulSet"}:           {"keeps its volume claims and, where the selector allows it, its pods", metav1.DeletePropagationOrphan},
	{Group: "batch", Kind: "Job"}:                  {"ends what it does and begins again", metav1.DeletePropagationForeground},
	{Group: "batch", Kind: "CronJob"}:              {"ends the jobs that it has started", metav1.DeletePropagationForeground},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {costsObject, metav1.DeletePropagationBackground},
	{Kind: "Service"}: {
		"gives it another cluster IP, and perhaps other node ports and another address of a load balancer; clients have to resolve it again",
		metav1.DeletePropagationBackground,
	},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {costsObject, metav1.DeletePropagationBackground},
	{Kind: "ConfigMap"}:                                 {"leaves what runs with the old values until it starts again", metav1.DeletePropagationBackground},
	{Kind: "Secret"}:                                    {"leaves what runs with the old values until it starts again", metav1.DeletePropagationBackground},
	{Kind: "ResourceQuota"}:                             {costsObject, metav1.DeletePropagationBackground},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:     {"leaves the volumes that were made with it as they are", metav1.DeletePropagationBackground},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {"leaves the pods that run as they are", metav1.DeletePropagationBackground},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  {costsObject, metav1.DeletePropagationBackground},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:        {"leaves the pods that run as they are", metav1.DeletePropagationBackground},
}

// irreplaceable are kinds that are never replaced, with the loss that this would cause.
var irreplaceable = map[kube.GroupKind]string{
	{Kind: "Namespace"}: "everything in it",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "every custom resource of it",
	{Kind: "PersistentVolumeClaim"}:                                   "the data in its volume",
	{Kind: "PersistentVolume"}:                                        "the reference to its data, if not the data itself",
}

// decideImmutable decides on a change that the server refuses in place. There are three cases: defaults that the server has set for the
// old object are in the way, or the object could be created again, or it is invalid.
func (d *decider) decideImmutable(ctx context.Context, s *step, refusal error) (*unstructured.Unstructured, error) {
	if s.cleared = fieldsToClear(s, refusal); len(s.cleared) > 0 {
		result, err := d.tryCleared(ctx, s)
		if err == nil || !apierrors.IsInvalid(err) {
			return result, err
		}
		s.cleared, refusal = nil, err
	}
	kind := s.desired.GroupVersionKind().GroupKind()
	if _, ok := replacements[kind]; !ok {
		if immutable(refusal) {
			return nil, d.refuseReplace(s, refusal)
		}
		return nil, refusal
	}
	again, err := d.trial(ctx, s)
	switch {
	case apierrors.IsInvalid(err):
		return nil, refusal
	case err != nil && !immutable(refusal): // unknown
		return nil, refusal
	}
	return nil, d.replace(ctx, s, again, refusal)
}

// immutable reports whether the server refused because a field cannot change. There is no reason code for that; each kind has its own
// message.
func immutable(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"immutable", "may not change", "may not be changed", "cannot change", "cannot be changed", "are forbidden", "can not be less than"},
		func(words string) bool { return strings.Contains(text, words) })
}

// trial asks the server whether an object could be created. It uses another name, because the object exists.
func (d *decider) trial(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	object := s.desired.DeepCopy()
	object.SetName("solutionctl-trial-" + s.hash[:8])
	if kind := object.GroupVersionKind(); kind.Group == "" && kind.Kind == "Service" { // its addresses are in use, too
		if ip, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		}
		unstructured.RemoveNestedField(object.Object, "spec", "healthCheckNodePort")
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
		for _, port := range ports {
			if fields, ok := port.(map[string]any); ok {
				delete(fields, "nodePort")
			}
		}
		if len(ports) > 0 {
			object.Object["spec"].(map[string]any)["ports"] = ports
		}
	}
	made, err := d.Cluster.Create(ctx, object, cluster.WriteOptions{DryRun: true, Whole: true})
	if err == nil {
		made.SetName(s.Object.Name)
	}
	return made, err
}

// refuseReplace refuses to replace an object that holds data of others. The hint does not offer a way to do it.
func (d *decider) refuseReplace(s *step, refusal error) error {
	lost, known := irreplaceable[s.desired.GroupVersionKind().GroupKind()]
	if !known {
		lost = "what its controller keeps for it"
	}
	return refuseLoss(s, refusal, lost)
}

func refuseLoss(s *step, refusal error, lost string) error {
	return report.Errorf(report.Refused, "%w; it cannot be changed in place, and is not replaced, as %s would be lost with it", refusal, lost).
		WithHint("a version of the Solution that leaves this as it is in %s can be deployed; nothing was changed", s.Object)
}

// replace decides whether an object that cannot be changed in place is deleted and created again. Where nothing is lost (a binding, a
// Job that has ended), this needs no approval. again is the object that would be created; nil if unknown.
func (d *decider) replace(ctx context.Context, s *step, again *unstructured.Unstructured, refusal error) error {
	if s.Action == schema.ActionAdopt && !d.options.Adopt {
		if err := d.adopt(s, false); err != nil {
			return err
		}
	}
	kind := s.desired.GroupVersionKind().GroupKind()
	r := replacements[kind]
	s.propagation, s.Note = r.propagation, "it cannot be changed in place"
	if again != nil {
		s.Fields = slices.DeleteFunc(diff.Fields(s.live, again), isAssigned(s.desired))
	}
	if kind == statefulSetKind && refusal != nil { // the server lists only fields that can change
		refusal = fmt.Errorf("%w, this is a change of %s", refusal, strings.Join(fixedFields(s.Fields), ", "))
	}
	asked := d.replaceRequested(s)
	switch stops := kind == statefulSetKind && !orphans(s); {
	case phaseOf(kind) == phaseBindings, kind == jobKind && health.JobEnded(s.live) != "":
		s.propagation, s.Action = metav1.DeletePropagationBackground, schema.ActionReplace
		if kind == jobKind {
			s.Note += "; it is run again"
		}
		return nil
	case stops && deletesClaims(s.live):
		return refuseLoss(s, refusal, "the data in the volumes that its persistentVolumeClaimRetentionPolicy deletes with it")
	case stops:
		s.propagation, r.costs = metav1.DeletePropagationForeground, "keeps its volume claims, and "+costsPods
	case kind == jobKind:
		r.costs = "ends it, though it is still running, and begins again"
	case kind == cluster.SecretKind.GroupKind() || kind == configMapKind:
		if keys := dataOfOthers(s); len(keys) > 0 {
			return refuseLoss(s, refusal, "the data of others in it ("+strings.Join(keys, ", ")+")")
		}
	}
	if !asked {
		hint := "to replace it, add %s"
		if kind == jobKind {
			hint = "wait until it has ended, or: " + hint
		}
		return report.Errorf(report.Refused, "%w; it cannot be changed in place, and replacing it %s", refusal, r.costs).
			WithHint(hint, report.Accept("replace", s.Object.Kind+"/"+s.Object.Name).About("replacing it "+r.costs))
	}
	s.Action, s.replacing = schema.ActionReplace, true
	s.Note += "; replacing it " + r.costs
	if kind != statefulSetKind {
		return nil
	}
	claims, notes, err := d.claimsToGrow(ctx, s)
	s.claims, s.Note = claims, strings.Join(append([]string{s.Note}, notes...), "; ")
	return err
}

// isNamed reports whether the user has named an object for replacement.
func (d *decider) isNamed(s *step) bool {
	return slices.ContainsFunc(d.options.Replace, func(name string) bool { return namesObject(name, s.Object) })
}

// namesObject reports whether a text KIND/NAME names an object, ignoring the case of the kind.
func namesObject(text string, object schema.ObjectRef) bool {
	kind, name, _ := strings.Cut(text, "/")
	return name == object.Name && strings.EqualFold(kind, object.Kind)
}

// ReplacedUnasked reports whether objects of a kind are replaced without approval, ignoring the case: bindings, whose role cannot be
// changed in place.
func ReplacedUnasked(kind string) bool {
	return strings.EqualFold(kind, "RoleBinding") || strings.EqualFold(kind, "ClusterRoleBinding")
}

// Replaceable reports whether objects of a kind can be replaced at all, ignoring the case.
func Replaceable(kind string) bool {
	for known := range replacements {
		if strings.EqualFold(known.Kind, kind) {
			return true
		}
	}
	return false
}

var (
	statefulSetKind = kube.GroupKind{Group: "apps", Kind: "StatefulSet"}
	jobKind         = kube.GroupKind{Group: "batch", Kind: "Job"}
	configMapKind   = kube.GroupKind{Kind: "ConfigMap"}
)

// orphans reports whether the new StatefulSet can adopt the pods of the old one: it has to select them.
func orphans(s *step) bool {
	selector, _, _ := unstructured.NestedMap(s.desired.Object, "spec", "selector")
	wanted, simple, _ := unstructured.NestedMap(selector, "matchLabels")
	return simple && len(selector) == 1 && contains(pods.Labels(s.live.Object), wanted)
}

// deletesClaims reports whether the volume claims of a StatefulSet are deleted with it.
func deletesClaims(live *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return policy == "Delete"
}

// dataOfOthers returns the keys of a ConfigMap or a Secret that were not deployed.
func dataOfOthers(s *step) []string {
	var keys []string
	for _, field := range []string{"data", "binaryData"} {
		live, _, _ := unstructured.NestedMap(s.live.Object, field)
		wanted, _, _ := unstructured.NestedMap(s.desired.Object, field)
		for _, key := range slices.Sorted(maps.Keys(live)) {
			if _, ok := wanted[key]; !ok && !diff.IsOwned(s.live, field, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// fixedFields returns the changes of a StatefulSet that cannot be made in place.
func fixedFields(changes []schema.FieldChange) []string {
	var paths []string
	for _, c := range changes {
		field, _, _ := strings.Cut(strings.TrimPrefix(c.Path, "spec."), ".")
		if strings.HasPrefix(c.Path, "spec.") && !slices.Contains([]string{
			"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
		}, field) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// isAssigned returns a filter for changes that are not worth showing, because the server or a controller sets these fields on each new object.
func isAssigned(object *unstructured.Unstructured) func(schema.FieldChange) bool {
	kind := object.GroupVersionKind().GroupKind()
	_, addressed, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "clusterIP")
	return func(c schema.FieldChange) bool {
		switch {
		case strings.HasPrefix(c.Path, "spec.clusterIP") && addressed:
			return false
		case strings.HasPrefix(c.Path, "spec.clusterIP"), strings.HasSuffix(c.Path, ".nodePort"), c.Path == "spec.healthCheckNodePort":
			return kind.Kind == "Service"
		case strings.HasPrefix(c.Path, "spec.selector"), strings.HasPrefix(c.Path, "spec.template.metadata.labels"):
			return kind == jobKind
		default:
			return c.Path == "metadata.annotations[deployment.kubernetes.io/revision]"
		}
	}
}
