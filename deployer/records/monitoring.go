package records

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

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
