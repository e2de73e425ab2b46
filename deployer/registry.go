package deployer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Registry returns where the nodes of the cluster find images, nil when nothing was recorded: before the first import.
func (d *Deployer) Registry(ctx context.Context) (*schema.ClusterRegistry, error) {
	registry, _, err := d.readRegistry(ctx)
	return registry, err
}

func (d *Deployer) readRegistry(ctx context.Context) (*schema.ClusterRegistry, *unstructured.Unstructured, error) {
	object, err := d.Cluster.Get(ctx, configMapKind, cluster.SystemNamespace, registryName)
	if err != nil || object == nil {
		return nil, nil, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", registryKey)
	registry, err := schema.ParseStored[schema.ClusterRegistry]("registry", "ConfigMap "+cluster.SystemNamespace+"/"+registryName, []byte(text))
	return registry, object, err
}

// RecordRegistry sets where nodes find images. The mode is chosen once: the references of everything that was deployed
// depend on it.
func (d *Deployer) RecordRegistry(ctx context.Context, registry schema.ClusterRegistry) (err error) {
	return d.locked(ctx, func(ctx context.Context) error { return d.recordRegistry(ctx, registry) }, clusterLock)
}

func (d *Deployer) recordRegistry(ctx context.Context, registry schema.ClusterRegistry) error {
	previous, object, err := d.readRegistry(ctx)
	if err != nil {
		return err
	}
	if previous != nil && (previous.Mode != registry.Mode || previous.Host != registry.Host) {
		return report.Errorf(report.Refused, "this cluster was set up for registry mode %s (%s), not %s (%s)",
			previous.Mode, previous.Host, registry.Mode, registry.Host).
			WithHint("everything that was deployed names its images by the first one; leave out --registry-mode")
	}
	if previous != nil && slices.Equal(previous.Endpoints, registry.Endpoints) && previous.CA == registry.CA {
		return nil
	}
	registry.Stamp = schema.NewStamp(d.Version)
	if registry.Endpoints == nil {
		registry.Endpoints = []string{}
	}
	data, err := schema.MarshalStored(registry)
	if err != nil {
		return err
	}
	exists := object != nil
	if !exists {
		object = systemObject(configMapKind, registryName)
	}
	if err := unstructured.SetNestedField(object.Object, string(data), "data", registryKey); err != nil {
		return err
	}
	return d.write(ctx, object, exists)
}
