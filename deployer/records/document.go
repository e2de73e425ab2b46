package records

import (
	"context"
	"reflect"

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

// writeDocument stores a document in the ConfigMap that was read, nil for a new one.
func (r *Records) writeDocument(ctx context.Context, name string, object *unstructured.Unstructured, document []byte) error {
	exists := object != nil
	if !exists {
		object = systemObject(cluster.ConfigMapKind, name)
	}
	if err := unstructured.SetNestedField(object.Object, string(document), "data", name+".json"); err != nil {
		return err
	}
	return r.write(ctx, object, exists)
}

// ClusterName is the ConfigMap with the name of the cluster.
const ClusterName = "clustername"

// NameOfCluster returns the recorded name of the cluster; nil where none is recorded.
func (r *Records) NameOfCluster(ctx context.Context) (*schema.ClusterName, error) {
	name, _, err := r.readClusterName(ctx)
	return name, err
}

func (r *Records) readClusterName(ctx context.Context) (*schema.ClusterName, *unstructured.Unstructured, error) {
	stored, object, err := readDocument[schema.StoredClusterName](ctx, r, ClusterName)
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("remove it (%s), then record it again: %s",
			report.Run("deploy cluster name", "--remove"), report.Run("deploy cluster name", "NAME"))
	}
	if err != nil || stored == nil {
		return nil, object, err
	}
	return &stored.ClusterName, object, nil
}

// SetClusterName records the name of the cluster. The caller holds the lock of the cluster.
func (r *Records) SetClusterName(ctx context.Context, name *schema.ClusterName) error {
	known, object, err := r.readClusterName(ctx)
	if err != nil || known != nil && *known == *name {
		return err
	}
	data, err := schema.MarshalStored(schema.StoredClusterName{Stamp: schema.NewStamp("clustername", r.Version), ClusterName: *name})
	if err != nil {
		return err
	}
	return r.writeDocument(ctx, ClusterName, object, data)
}

// RemoveClusterName removes the record, if there is one. The caller holds the lock of the cluster.
func (r *Records) RemoveClusterName(ctx context.Context) error {
	_, object, err := r.readClusterName(ctx)
	if object == nil {
		return err
	}
	return r.Cluster.Delete(ctx, object, cluster.DeleteOptions{})
}

// Monitoring returns the labels that the site's Prometheus and Grafana select; the zero value where none are recorded.
func (r *Records) Monitoring(ctx context.Context) (schema.Monitoring, error) {
	monitoring, _, err := r.readMonitoring(ctx)
	return monitoring, err
}

func (r *Records) readMonitoring(ctx context.Context) (schema.Monitoring, *unstructured.Unstructured, error) {
	stored, object, err := readDocument[schema.ClusterMonitoring](ctx, r, MonitoringName)
	if err != nil || stored == nil {
		return schema.Monitoring{}, nil, recordAgain(err, MonitoringName, "", report.Run("deploy monitoring config"))
	}
	return stored.Monitoring, object, nil
}

// SetMonitoring records the labels that the site's Prometheus and Grafana select. The caller holds the lock of the
// cluster.
func (r *Records) SetMonitoring(ctx context.Context, next schema.Monitoring) error {
	known, object, err := r.readMonitoring(ctx)
	if err != nil || reflect.DeepEqual(known, next) {
		return err
	}
	data, err := schema.MarshalStored(schema.ClusterMonitoring{Stamp: schema.NewStamp("monitoring", r.Version), Monitoring: next})
	if err != nil {
		return err
	}
	return r.writeDocument(ctx, MonitoringName, object, data)
}
