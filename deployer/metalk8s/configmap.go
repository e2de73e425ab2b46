package metalk8s

import (
	"context"
	"errors"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema/report"
)

// attempts bounds the retries of a change after conflicts. Each conflict means that another client succeeded, so only a
// client in an endless loop exhausts them.
const attempts = 100

// editData changes the data of a ConfigMap that others write as well. A ConfigMap that is not there is made, unless
// nothing is to be in it. Known is the ConfigMap as it was read before, nil to read it now: if it has changed since, or needs no change, it is
// read again.
func (d *Documents) editData(ctx context.Context, namespace, name string, known *unstructured.Unstructured, edit func(data map[string]string) error) error {
	for range attempts {
		object, recent := known.DeepCopy(), known == nil
		if known = nil; recent {
			var err error
			if object, err = d.Cluster.Get(ctx, cluster.ConfigMapKind, namespace, name); err != nil {
				return err
			}
		}
		before := dataOf(object)
		data := map[string]string{}
		maps.Copy(data, before)
		if err := edit(data); err != nil {
			return err
		}
		if sizeOf(data) > max(cluster.MaxData, sizeOf(before)) {
			return report.Errorf(report.Refused, "ConfigMap %s/%s would have %d KiB, and can have %d", namespace, name, sizeOf(data)>>10, cluster.MaxData>>10).
				WithHint("remove unused entries: kubectl edit configmap -n %s %s", namespace, name)
		}
		if maps.Equal(before, data) {
			if recent {
				return nil
			}
			continue
		}
		if err := d.writeData(ctx, object, namespace, name, data); !isOutdated(err) {
			return d.explainTerminating(ctx, err, namespace)
		}
	}
	return report.Errorf(report.Conflict, "ConfigMap %s/%s: another client changes it again and again", namespace, name).
		WithHint("find out who: kubectl get configmap -n %s %s -o yaml --show-managed-fields", namespace, name)
}

// writeData replaces the data of the object that was read, or creates the ConfigMap when object is nil.
func (d *Documents) writeData(ctx context.Context, object *unstructured.Unstructured, namespace, name string, data map[string]string) error {
	exists := object != nil
	if !exists {
		object = cluster.NewObject(cluster.ConfigMapKind, namespace, name)
	}
	if len(data) == 0 {
		unstructured.RemoveNestedField(object.Object, "data")
	} else if err := unstructured.SetNestedStringMap(object.Object, data, "data"); err != nil {
		return err
	}
	var err error
	if exists {
		_, err = d.Cluster.Update(ctx, object, cluster.WriteOptions{})
	} else {
		_, err = d.Cluster.Create(ctx, object, cluster.WriteOptions{})
	}
	return err
}

func sizeOf(data map[string]string) int {
	size := 0
	for _, value := range data {
		size += len(value)
	}
	return size
}

// dataOf is the data of a ConfigMap, nil when it is absent, has none, or has something that no API server would store.
func dataOf(object *unstructured.Unstructured) map[string]string {
	if object == nil {
		return nil
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil || len(data) == 0 {
		return nil
	}
	return data
}

// isOutdated reports whether an object was changed after it was read.
func isOutdated(err error) bool {
	return errors.Is(err, cluster.ErrChanged) || errors.Is(err, cluster.ErrExists)
}

// explainTerminating translates the refusal to write into a namespace that is being deleted.
func (d *Documents) explainTerminating(ctx context.Context, err error, namespace string) error {
	if err != nil && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return d.Terminating(ctx, namespace)
	}
	return err
}

// Terminating returns the error for a namespace that is being deleted, with the objects that hold it.
func (d *Documents) Terminating(ctx context.Context, namespace string) error {
	reasons := ""
	if live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace); err == nil && live != nil {
		reasons = ": " + strings.Join(health.Explain(ctx, d.Cluster, live), "; ")
	}
	return report.Errorf(report.Conflict, "namespace %s is being deleted%s", namespace, reasons).
		WithHint("remove what holds it, wait until it is gone, and run the command again")
}
