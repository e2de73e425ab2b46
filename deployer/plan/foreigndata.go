package plan

import (
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
}

func (r *Run) foreignData(ctx context.Context, key record.Key) *foreignData {
	return &foreignData{Run: r, ctx: ctx, key: key, known: map[string]string{}, hidden: map[string]bool{}, listed: map[string][]*unstructured.Unstructured{}}
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
		return d.makerOf(namespace, func(prefix string) bool { return powers.IsNumbered(name, prefix) })
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

// claims returns the other Solution that has a claim with a name of a prefix and a number, or a StatefulSet that makes such claims.
func (d *foreignData) claims(namespace, prefix string) (solution string) {
	if d.failure == nil {
		solution, d.failure = d.makerOf(namespace, func(other string) bool { return other == prefix })
	}
	if solution != "" || d.failure != nil {
		return solution
	}
	var claims []*unstructured.Unstructured
	claims, d.failure = d.list(cluster.ClaimKind, "persistentvolumeclaims", namespace)
	for _, claim := range claims {
		if solution = d.otherOwner(claim); solution != "" && powers.IsNumbered(claim.GetName(), prefix) {
			return solution
		}
	}
	return ""
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
