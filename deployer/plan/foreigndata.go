package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// dataKinds are the kinds of data that pods read in their namespace, with their resources.
var dataKinds = map[string]struct {
	kind     kube.GroupVersionKind
	resource string
}{
	cluster.SecretKind.Kind:    {cluster.SecretKind, "secrets"},
	cluster.ConfigMapKind.Kind: {cluster.ConfigMapKind, "configmaps"},
	cluster.ClaimKind.Kind:     {cluster.ClaimKind, "persistentvolumeclaims"},
}

// foreignData finds which other Solutions have the data that planned pods, or controllers for planned objects, read. It reads only objects that the archive does not bring.
type foreignData struct {
	*Run
	ctx     context.Context //nolint:containedctx // the judge of powers has none
	key     record.Key
	known   map[string]string                       // the Solution of each object, by kind, namespace and name
	hidden  map[string]bool                         // kinds that the user has no permission to read, by kind and namespace
	failure error                                   // the first one
	listed  map[string][]*unstructured.Unstructured // by kind and namespace
	former  map[string][]formerSet                  // by namespace
}

// formerSet is a StatefulSet of another Solution in a recorded revision.
type formerSet struct {
	solution string
	prefixes []string // of its claims
}

func (r *Run) foreignData(ctx context.Context, key record.Key) *foreignData {
	return &foreignData{Run: r, ctx: ctx, key: key, known: map[string]string{}, hidden: map[string]bool{}, listed: map[string][]*unstructured.Unstructured{}, former: map[string][]formerSet{}}
}

// solution returns the other Solution that has an object, "" if there is none.
func (d *foreignData) solution(kind, namespace, name string) string {
	id := strings.Join([]string{kind, namespace, name}, "/")
	solution, ok := d.known[id]
	if !ok && d.failure == nil {
		solution, d.failure = d.read(kind, namespace, name)
		d.known[id] = solution
	}
	return solution
}

func (d *foreignData) read(kind, namespace, name string) (string, error) {
	data, ok := dataKinds[kind]
	if !ok || namespace == "" || d.hidden[kind+"/"+namespace] {
		return "", nil
	}
	missing, err := d.Cluster.Missing(d.ctx, cluster.Permission{Verb: "get", Resource: data.resource, Namespace: namespace, One: name})
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		d.hidden[kind+"/"+namespace] = true
		d.Notice("you do not have permission to get the " + data.resource + " of namespace " + namespace + ": those that pods read were not compared with those of others")
		return "", nil
	}
	object, err := d.Cluster.Get(d.ctx, data.kind, namespace, name)
	switch {
	case err != nil:
		return "", err
	case kind == cluster.ClaimKind.Kind && (object == nil || object.GetLabels()[schema.LabelRelease] == ""):
		asked := func(prefix string) bool { return powers.IsNumbered(name, prefix) }
		if maker, err := d.makerOf(namespace, asked); maker != "" || err != nil || object == nil {
			return maker, err
		}
		return d.formerMakerOf(namespace, asked)
	case object == nil:
		return "", nil
	}
	return d.otherOwner(object), nil
}

// otherOwner returns the other Solution that an object was deployed with, "" if there is none.
func (d *foreignData) otherOwner(object *unstructured.Unstructured) string {
	if solution, _, _ := strings.Cut(object.GetLabels()[schema.LabelRelease], "."); solution != d.key.Name {
		return solution
	}
	return ""
}

// claims returns the other Solution that has a claim with a name of a prefix and a number, or a StatefulSet that makes such claims, or that had one
// whose claims are left.
func (d *foreignData) claims(namespace, prefix string) (solution string) {
	asked := func(other string) bool { return other == prefix }
	if d.failure == nil {
		solution, d.failure = d.makerOf(namespace, asked)
	}
	if solution != "" || d.failure != nil {
		return solution
	}
	var claims []*unstructured.Unstructured
	claims, d.failure = d.list(cluster.ClaimKind, "persistentvolumeclaims", namespace)
	claims = slices.DeleteFunc(slices.Clone(claims), func(claim *unstructured.Unstructured) bool { return !powers.IsNumbered(claim.GetName(), prefix) })
	for _, claim := range claims {
		if solution = d.otherOwner(claim); solution != "" {
			return solution
		}
	}
	if len(claims) > 0 {
		solution, d.failure = d.formerMakerOf(namespace, asked)
	}
	return solution
}

// makerOf returns the other Solution with a StatefulSet whose claims have a prefix that is asked for. Such claims have no label of a release.
func (d *foreignData) makerOf(namespace string, asked func(prefix string) bool) (string, error) {
	sets, err := d.list(statefulSetKind, "statefulsets", namespace)
	for _, set := range sets {
		if solution := d.otherOwner(set); solution != "" && slices.ContainsFunc(powers.ClaimPrefixes(set), asked) {
			return solution, err
		}
	}
	return "", err
}

// formerMakerOf is [foreignData.makerOf] for StatefulSets that were deployed before: their claims stay. Those of a StatefulSet of this Solution that
// runs are its own.
func (d *foreignData) formerMakerOf(namespace string, asked func(prefix string) bool) (string, error) {
	sets, err := d.list(statefulSetKind, "statefulsets", namespace)
	for _, set := range sets {
		if owner, _, _ := strings.Cut(set.GetLabels()[schema.LabelRelease], "."); owner == d.key.Name && slices.ContainsFunc(powers.ClaimPrefixes(set), asked) {
			return "", nil
		}
	}
	if _, read := d.former[namespace]; !read && err == nil {
		d.former[namespace], err = d.formerSets(namespace)
	}
	for _, set := range d.former[namespace] {
		if slices.ContainsFunc(set.prefixes, asked) {
			return set.solution, err
		}
	}
	return "", err
}

// formerSets reads the StatefulSets of other Solutions in all their recorded revisions. A notice names records that cannot be read.
func (d *foreignData) formerSets(namespace string) (list []formerSet, err error) {
	states, err := d.Records.Engine.StatesIn(d.ctx, namespace)
	removed := map[string]string{} // by Solution
	for _, s := range states {
		if s.Component == "" && s.Damage == nil && !s.Installed() {
			removed[s.Name] = ", which was removed"
		}
	}
	for _, s := range states {
		if s.Name == d.key.Name {
			continue
		}
		failure := s.Damage
		read := map[string]bool{"": true}
		for _, r := range s.Revisions() {
			if read[r.Content] {
				continue
			}
			read[r.Content] = true
			objects, unread := d.Records.Engine.Objects(d.ctx, s.Key, r)
			if unread != nil && report.CodeOf(unread) != report.Corrupt {
				return nil, unread
			}
			failure = cmp.Or(failure, unread)
			for _, object := range objects {
				if object.GroupVersionKind().GroupKind() == statefulSetKind.GroupKind() {
					list = append(list, formerSet{s.Name + removed[s.Name], powers.ClaimPrefixes(object)})
				}
			}
		}
		if failure != nil {
			d.Notice("the record of " + s.String() + " cannot be read: claims that it left were not compared")
		}
	}
	return list, err
}

var statefulSetKind = kube.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}

// list returns the objects of a namespace, none without permission.
func (d *foreignData) list(kind kube.GroupVersionKind, resource, namespace string) ([]*unstructured.Unstructured, error) {
	id := kind.Kind + "/" + namespace
	if objects, ok := d.listed[id]; ok {
		return objects, nil
	}
	d.listed[id] = nil
	missing, err := d.Cluster.Missing(d.ctx, cluster.Permission{Verb: "list", Group: kind.Group, Resource: resource, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		d.Notice("you do not have permission to list the " + resource + " of namespace " + namespace + ": claims of StatefulSets were not compared with those of others")
		return nil, nil
	}
	d.listed[id], err = cluster.Collect(d.Cluster.List(d.ctx, kind, namespace, metav1.ListOptions{}))
	return d.listed[id], err
}
