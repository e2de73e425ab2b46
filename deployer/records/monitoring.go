package records

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Monitoring returns the labels that the site's Prometheus and Grafana select; the zero value where none are recorded.
func (r *Records) Monitoring(ctx context.Context) (schema.Monitoring, error) {
	monitoring, _, err := r.readMonitoring(ctx)
	return monitoring, err
}

func (r *Records) readMonitoring(ctx context.Context) (schema.Monitoring, *unstructured.Unstructured, error) {
	object, err := r.Cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, MonitoringName)
	if err != nil || object == nil {
		return schema.Monitoring{}, nil, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", monitoringKey)
	stored, err := schema.ParseStored[schema.ClusterMonitoring]("monitoring", "ConfigMap "+cluster.SystemNamespace+"/"+MonitoringName, []byte(text))
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("delete it (kubectl delete configmap -n %s %s), then record it again: %s",
			cluster.SystemNamespace, MonitoringName, report.Run("deploy monitoring config"))
	}
	if err != nil {
		return schema.Monitoring{}, nil, err
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
	exists := object != nil
	if !exists {
		object = systemObject(cluster.ConfigMapKind, MonitoringName)
	}
	if err := unstructured.SetNestedField(object.Object, string(data), "data", monitoringKey); err != nil {
		return err
	}
	return r.write(ctx, object, exists)
}
