package records

import (
	"bytes"
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// readDocument returns the document in the ConfigMap of this name in [cluster.SystemNamespace], and the ConfigMap; nil where there is none. The
// kind of the document is the name, and its key is NAME.json.
func readDocument[T any](ctx context.Context, r *Records, name string) (*T, *unstructured.Unstructured, error) {
	object, err := r.Cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, name)
	if err != nil || object == nil {
		return nil, nil, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", name+".json")
	document, err := schema.ParseStored[T](name, "ConfigMap "+cluster.SystemNamespace+"/"+name, []byte(text))
	return document, object, err
}

// recordAgain adds a hint to the error about a document that is damaged. Where is the end of "then record it again".
func recordAgain(err error, name, where string, remedy report.Remedy) error {
	if report.CodeOf(err) != report.Corrupt {
		return err
	}
	return report.As(report.Corrupt, err).WithHint("delete it (kubectl delete configmap -n %s %s), then record it again%s: %s", cluster.SystemNamespace, name, where, remedy)
}

// compactDocument returns a document without the spaces for readers if it has more bytes than it is to have.
func compactDocument(data []byte, most int) ([]byte, error) {
	if len(data) <= most {
		return data, nil
	}
	var short bytes.Buffer
	err := json.Compact(&short, data)
	return short.Bytes(), err
}

// writeDocument stores a document in the ConfigMap that was read, nil for a new one.
func (r *Records) writeDocument(ctx context.Context, name string, object *unstructured.Unstructured, document []byte) error {
	exists := object != nil
	if !exists {
		object = systemObject(cluster.ConfigMapKind, name)
	}
	if err := unstructured.SetNestedField(object.Object, string(document), "data", name+".json"); err != nil {
		return err
	}
	if size := cluster.DataSize(object); size > cluster.MaxData {
		return report.Errorf(report.Refused, "ConfigMap %s/%s would have %d KiB, and can have %d", cluster.SystemNamespace, name, size>>10, cluster.MaxData>>10)
	}
	return r.write(ctx, object, exists)
}
