package records

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

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
