package plan

import (
	"context"
	"strings"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
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
	known   map[string]string // the Solution of each object, by kind, namespace and name
	hidden  map[string]bool   // kinds that the user has no permission to read, by kind and namespace
	failure error             // the first one
}

func (r *Run) foreignData(ctx context.Context, key record.Key) *foreignData {
	return &foreignData{Run: r, ctx: ctx, key: key, known: map[string]string{}, hidden: map[string]bool{}}
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
	if err != nil || object == nil {
		return "", err
	}
	solution, _, deployed := strings.Cut(object.GetLabels()[schema.LabelRelease], ".")
	if !deployed || solution == d.key.Name {
		return "", nil
	}
	return solution, nil
}
