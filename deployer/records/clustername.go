package records

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Cluster's name, in namespace [cluster.SystemNamespace].
const (
	ClusterName    = "clustername" // ConfigMap
	clusterNameKey = "clustername.json"
)

// NameOfCluster returns the recorded name of the cluster; nil where none is recorded.
func (r *Records) NameOfCluster(ctx context.Context) (*schema.ClusterName, error) {
	name, _, err := r.readClusterName(ctx)
	return name, err
}

func (r *Records) readClusterName(ctx context.Context) (*schema.ClusterName, *unstructured.Unstructured, error) {
	object, err := r.Cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, ClusterName)
	if err != nil || object == nil {
		return nil, nil, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", clusterNameKey)
	stored, err := schema.ParseStored[schema.StoredClusterName]("clustername", "ConfigMap "+cluster.SystemNamespace+"/"+ClusterName, []byte(text))
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("remove it (%s), then record it again: %s",
			report.Run("deploy cluster name", "--remove"), report.Run("deploy cluster name", "NAME"))
	}
	if err != nil {
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
	exists := object != nil
	if !exists {
		object = systemObject(cluster.ConfigMapKind, ClusterName)
	}
	if err := unstructured.SetNestedField(object.Object, string(data), "data", clusterNameKey); err != nil {
		return err
	}
	return r.write(ctx, object, exists)
}

// RemoveClusterName removes the record, if there is one. The caller holds the lock of the cluster.
func (r *Records) RemoveClusterName(ctx context.Context) error {
	_, object, err := r.readClusterName(ctx)
	if object == nil {
		return err
	}
	return r.Cluster.Delete(ctx, object, cluster.DeleteOptions{})
}
