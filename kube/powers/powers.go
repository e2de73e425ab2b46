// Package powers judges the effects of a Solution's objects on a cluster.
//
// [Judge] takes objects as they will be applied and returns their powers: all effects that need an approval. Without an approval, a
// Solution may create objects in its own namespaces that pass the Pod Security level baseline, give its own accounts rights on
// its own API groups and on the workloads and data of its namespaces, define CRDs of its own groups and be called for these
// groups. Effects count, not notation: a pod is the same power in a Deployment, a CronJob, an item of a List or a custom
// resource with a pod template. A role counts for the rights that its bindings grant.
//
// [Uncovered] compares approved powers with the powers of a plan, and [Summarize] describes powers to administrators. The list
// follows "RBAC Good Practices" and "Pod Security Standards" of the Kubernetes documentation (docs/adr/0030-powers.md). Only
// this package judges the rules of roles; package kube/rbac checks their form.
package powers

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// Owner is the Solution that objects are judged for.
type Owner struct {
	Solution string
	// Namespaces are its own: <solution>-system and those of the environment in which it is added. The latter it
	// shares with other Solutions.
	Namespaces []string
	// Groups are the API groups of the Solution: those of its manifest and of its CRDs. Groups of Kubernetes are never its own, even
	// if it lists them.
	Groups []string
	// Claimed are the groups of its manifest. Those of well-known controllers are its own only with a CRD among the objects.
	Claimed []string
	// Definitions are its CRDs, beside those among the objects. In the groups of well-known controllers, it has only their kinds.
	Definitions []Definition
	// ForeignGroup returns the other owner of a group in the cluster; "" if there is none. If nil (no cluster), only Groups counts.
	ForeignGroup func(group string) (owner string)
	// ForeignHost names what else in the cluster answers for a host of an object, "" for nothing. Nil stands for no cluster.
	ForeignHost func(o *unstructured.Unstructured, host string) (object string)
	// ForeignData names the Solution that has a Secret, a ConfigMap or a claim of the cluster, "" for no other. Nil stands for no cluster.
	ForeignData func(kind, namespace, name string) (solution string)
	// ForeignClaims names the Solution that has claims, or a StatefulSet that makes claims, with names of a prefix and a number; "" for no other.
	// Nil stands for no cluster.
	ForeignClaims func(namespace, prefix string) (solution string)
}

// Object is one object and the file of the archive that it is from, if that is known.
type Object struct {
	File string
	*unstructured.Unstructured
}

// Judge returns the powers of objects, widest reach first, always in the same order. Objects have the namespaces in which they will
// be applied. A binding, its role and its account have to be judged together: objects that are not passed do not belong to the
// Solution.
func Judge(owner Owner, objects []Object) []schema.Power {
	j := newJudgement(owner, objects)
	j.claims()
	j.rights()
	for _, o := range j.objects {
		if j.tooLarge != nil {
			break
		}
		j.object(o)
	}
	return j.result()
}

type judgement struct {
	owner         Owner
	objects       []Object // without lists
	own           map[string]bool
	groups        map[string]bool
	partly        map[string]bool             // groups of which only the kinds of its CRDs are its own
	kinds         map[kube.GroupKind]bool     // of its CRDs
	resources     map[kube.GroupResource]bool // of its CRDs
	present       map[string]bool             // objects by [objectKey]
	podLabels     map[string][]labels.Set     // of the pods of workloads, by namespace
	claimPrefixes []string                    // of the claims of StatefulSets: namespace/name
	parameters    map[string][]kube.GroupKind // of admission policies that have parameters, by [objectKey]
	powers        []schema.Power
	work          int               // what was judged so far, see [judgement.spend]
	tooLarge      *schema.ObjectRef // the object with which it became too much
}

func newJudgement(owner Owner, objects []Object) *judgement {
	j := &judgement{owner: owner, own: map[string]bool{}, present: map[string]bool{}, podLabels: map[string][]labels.Set{}, parameters: map[string][]kube.GroupKind{}}
	for _, namespace := range owner.Namespaces {
		j.own[namespace] = true
	}
	for _, o := range objects {
		if o.Unstructured != nil && o.Object != nil {
			j.unpack(o, 0)
		}
	}
	j.groups = j.ownGroups()
	j.define()
	for _, o := range j.objects {
		j.index(o)
	}
	return j
}

// index records what references of other objects are compared with.
func (j *judgement) index(o Object) {
	namespace := o.GetNamespace()
	key := objectKey(groupOf(o), o.GetKind(), namespace, o.GetName())
	j.present[key] = true
	if kind := nestedMap(o.Object, "spec", "paramKind"); kind != nil && isKind(o, admissionGroup, "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy") {
		j.parameters[key] = append(j.parameters[key], kube.FromAPIVersionAndKind(stringIn(kind, "apiVersion"), stringIn(kind, "kind")).GroupKind())
	}
	if pods.Spec(o.Object) != nil {
		set := labels.Set{}
		for key, value := range pods.Labels(o.Object) {
			set[key], _ = value.(string)
		}
		j.podLabels[namespace] = append(j.podLabels[namespace], set)
	}
	if isKind(o, "apps", "StatefulSet") {
		for _, prefix := range ClaimPrefixes(o.Unstructured) {
			j.claimPrefixes = append(j.claimPrefixes, namespace+"/"+prefix)
		}
	}
}

// brings reports whether an object is among the objects.
func (j *judgement) brings(group, kind, namespace, name string) bool {
	return j.present[objectKey(group, kind, namespace, name)]
}

// hasAccount reports whether a ServiceAccount is among the objects.
func (j *judgement) hasAccount(namespace, name string) bool {
	return j.brings("", "ServiceAccount", namespace, name)
}

func objectKey(group, kind, namespace, name string) string {
	return strings.Join([]string{group, kind, namespace, name}, "\x00")
}

// maxDepth bounds lists in lists.
const maxDepth = 32

// unpack adds an object or, of a list, what is in it.
func (j *judgement) unpack(o Object, depth int) {
	kind, isList := strings.CutSuffix(o.GetKind(), "List")
	items, hasItems := o.Object["items"].([]any)
	switch {
	case !isList || !hasItems || kind != "" && !isBuiltIn(groupOf(o)): // a CRD can define a kind with such a name
		j.objects = append(j.objects, o)
		return
	case depth == maxDepth:
		j.unreadable(o, fmt.Errorf("lists in lists, more than %d", maxDepth))
		return
	}
	for _, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if content["kind"] == nil { // of a list of one kind the API server knows it
			content = withKind(content, o.GetAPIVersion(), kind)
		}
		j.unpack(Object{o.File, &unstructured.Unstructured{Object: content}}, depth+1)
	}
}

func withKind(content map[string]any, apiVersion, kind string) map[string]any {
	full := map[string]any{"apiVersion": apiVersion, "kind": kind}
	maps.Copy(full, content)
	return full
}

// place is the field of an object at which powers are recorded.
type place struct {
	*judgement
	o  Object
	at string
}

func (j *judgement) place(o Object, field string) place { return place{j, o, field} }

// below returns the place of a field of this one.
func (p place) below(suffix string) place { return p.place(p.o, p.at+suffix) }

// add records a power that an approval can allow.
func (p place) add(name schema.PowerName, reach schema.Reach, why string, effects ...string) {
	p.record(schema.Power{
		Name: name, Reach: reach, Need: schema.NeedApproval, Object: refOf(p.o), File: p.o.File, Field: p.at, Why: why, Effects: set(effects),
	})
}

// show records a power that plans show without asking.
func (p place) show(name schema.PowerName, reach schema.Reach, why string, effects ...string) {
	p.add(name, reach, why, effects...)
	p.powers[len(p.powers)-1].Need = schema.NeedShown
}

// refuse records a power that no approval can allow.
func (p place) refuse(name schema.PowerName, reach schema.Reach, why string, effects ...string) {
	p.add(name, reach, why, effects...)
	p.powers[len(p.powers)-1].Need = schema.NeedRefused
}

// record adds a power. An object with more powers than are judged in all has those that were found first.
func (j *judgement) record(p schema.Power) {
	j.spend(p.Object, workOfPower)
	j.powers = append(j.powers, p)
}

func refOf(o Object) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func groupOf(o Object) string {
	group, _, found := strings.Cut(o.GetAPIVersion(), "/")
	if !found {
		return ""
	}
	return group
}

func isKind(o Object, group string, kinds ...string) bool {
	return groupOf(o) == group && slices.Contains(kinds, o.GetKind())
}

// set returns a list sorted and without repetitions, nil when it is empty.
func set(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// sorted orders powers: refused ones first, then by reach, name, object and subject.
func sorted(powers []schema.Power) []schema.Power {
	order := func(p schema.Power) []string {
		return []string{nameRank(p), refKey(p.Object), p.Subject, p.File, p.Field, p.Why}
	}
	slices.SortStableFunc(powers, func(a, b schema.Power) int {
		return cmp.Or(needRank(a)-needRank(b), reachRank(a)-reachRank(b), slices.Compare(order(a), order(b)))
	})
	return slices.CompactFunc(powers, func(a, b schema.Power) bool { return reflect.DeepEqual(a, b) })
}

func needRank(p schema.Power) int {
	return slices.Index([]schema.Need{schema.NeedRefused, schema.NeedApproval, schema.NeedShown}, p.Need)
}

// nameRank puts the power of all rights before the others of its reach.
func nameRank(p schema.Power) string {
	if p.Name == schema.PowerAllRights {
		return ""
	}
	return string(p.Name)
}

func reachRank(p schema.Power) int { return slices.Index(schema.Reaches(), p.Reach) }

func refKey(r schema.ObjectRef) string {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		group = ""
	}
	return objectKey(group, r.Kind, r.Namespace, r.Name)
}
