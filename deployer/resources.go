package deployer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DataPolicy says what to do with custom resources that would be left without their operator or definition.
type DataPolicy int

// The policies. Without one, nothing is done while there are custom resources.
const (
	RefuseData DataPolicy = iota
	KeepData              // leave them as they are
	DeleteData            // write them to the export, delete them and wait until they are gone
)

// definitions returns the CustomResourceDefinitions of a Solution that the cluster has: those of all imported versions,
// and those that any version left behind.
func (d *Deployer) definitions(ctx context.Context, catalog *Catalog, solution string) ([]*unstructured.Unstructured, error) {
	names := map[string]bool{}
	payloads, err := d.payloads(ctx, catalog, solution)
	if err != nil {
		return nil, err
	}
	for _, p := range payloads {
		var required []schema.CRDRequirement
		if required, err = render.RequiredCRDs(p); err != nil {
			return nil, err
		}
		for _, r := range required {
			names[r.Name] = true
		}
	}
	state, err := d.engine().State(ctx, engine.Key{Solution: solution})
	if err != nil {
		return nil, err
	}
	for _, revision := range []*schema.DeploymentRevision{state.Current, state.Pending} {
		if revision == nil {
			continue
		}
		for _, object := range revision.Objects {
			if object.Kind == crdKind.Kind {
				names[object.Name] = true
			}
		}
	}
	var found []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(names)) {
		object, err := d.Cluster.Get(ctx, crdKind, "", name)
		if err != nil {
			return nil, err
		}
		if object != nil {
			found = append(found, object)
		}
	}
	return found, nil
}

// customResource is an object of a kind that a Solution brought.
type customResource struct {
	kind   kube.GroupVersionKind
	object *unstructured.Unstructured // its metadata
}

// customResources lists the objects of these definitions in a namespace, in the whole cluster for "".
func (d *Deployer) customResources(ctx context.Context, definitions []*unstructured.Unstructured, namespace string) ([]customResource, error) {
	var found []customResource
	for _, object := range definitions {
		def, err := definition(object)
		if err != nil {
			return nil, err
		}
		kind := kube.GroupVersionKind{Group: def.Spec.Group, Version: servedVersion(def), Kind: def.Spec.Names.Kind}
		if kind.Version == "" || namespace != "" && def.Spec.Scope != "Namespaced" {
			continue
		}
		for one, err := range d.Cluster.ListMetadata(ctx, kind, namespace, metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			found = append(found, customResource{kind, one})
		}
	}
	return found, nil
}

// countText counts custom resources by kind: "2 Websites, 1 Clock".
func countText(list []customResource) string {
	counts := map[string]int{}
	for _, one := range list {
		counts[one.kind.Kind]++
	}
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d of kind %s", counts[kind], kind))
	}
	return strings.Join(texts, ", ")
}

// Export makes the place where custom resources are written before they are deleted. It is called when there are any.
type Export func() (io.WriteCloser, error)

// deleteResources writes custom resources to the export, asks for their deletion and waits until they are gone, while
// operators still serve their finalizers.
func (d *Deployer) deleteResources(ctx context.Context, list []customResource, export Export, timeout time.Duration) error {
	if err := d.exportResources(ctx, list, export); err != nil {
		return err
	}
	return d.removeResources(ctx, list, timeout)
}

func (d *Deployer) exportResources(ctx context.Context, list []customResource, export Export) error {
	switch {
	case len(list) == 0:
		return nil
	case export == nil:
		return report.Errorf(report.DataLoss, "%s would be deleted without an export", countText(list))
	}
	if err := d.export(ctx, list, export); err != nil {
		return fmt.Errorf("export of custom resources: %w", err)
	}
	return nil
}

// removeResources asks for the deletion of custom resources and waits until they are gone.
func (d *Deployer) removeResources(ctx context.Context, list []customResource, timeout time.Duration) error {
	if len(list) == 0 {
		return nil
	}
	total := int64(len(list))
	event := report.Event{Step: "delete", Name: "custom resources", State: report.Started, Total: total, Unit: "objects"}
	d.sink().Emit(event)
	for _, one := range list {
		if err := d.Cluster.Delete(ctx, one.object, cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	err := d.awaitGone(ctx, list, timeout, func(left int, reason string) {
		event.State, event.Done, event.Note = report.Running, total-int64(left), reason
		d.sink().Emit(event)
	})
	event.State, event.Note = report.Done, ""
	if err != nil {
		event.State = report.Failed
	}
	d.sink().Emit(event)
	return err
}

// export writes complete objects, without what only the API server may set, as one List that kubectl can create again.
func (d *Deployer) export(ctx context.Context, list []customResource, open Export) (err error) {
	out, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = io.WriteString(out, `{"apiVersion": "v1", "kind": "List", "items": [`); err != nil {
		return err
	}
	separator := "\n"
	for _, one := range list {
		var object *unstructured.Unstructured
		if object, err = d.Cluster.Get(ctx, one.kind, one.object.GetNamespace(), one.object.GetName()); err != nil {
			return err
		}
		if object == nil {
			continue
		}
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		data, err := json.Marshal(object.Object)
		if err != nil {
			return err
		}
		if _, err := out.Write(append([]byte(separator), data...)); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err = io.WriteString(out, "\n]}\n")
	return err
}

// awaitGone follows the objects until none is left. What stays is named with what holds it, from time to time and in the
// end.
func (d *Deployer) awaitGone(ctx context.Context, list []customResource, timeout time.Duration, left func(count int, reason string)) error {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(timeout, defaultTimeout))
	defer cancel()
	remaining := map[kube.GroupVersionKind]map[string]*unstructured.Unstructured{}
	for _, one := range list {
		if remaining[one.kind] == nil {
			remaining[one.kind] = map[string]*unstructured.Unstructured{}
		}
		remaining[one.kind][string(one.object.GetUID())] = one.object
	}
	count := len(list)
	for kind, objects := range remaining {
		for round := 1; len(objects) > 0; round++ {
			there := map[string]*unstructured.Unstructured{}
			for one, err := range d.Cluster.ListMetadata(waiting, kind, "", metav1.ListOptions{}) {
				if err != nil {
					return d.stuck(ctx, waiting, objects, err)
				}
				there[string(one.GetUID())] = one
			}
			for uid := range objects {
				if there[uid] == nil {
					delete(objects, uid)
					count--
				} else {
					objects[uid] = there[uid]
				}
			}
			reason := ""
			if round%patientRounds == 0 {
				reason = d.holder(waiting, objects)
			}
			left(count, reason)
			if len(objects) == 0 {
				break
			}
			if err := d.awaitChange(waiting, kind, objects); err != nil {
				return d.stuck(ctx, waiting, objects, err)
			}
		}
	}
	return nil
}

// awaitChange returns when one of the objects is gone.
func (d *Deployer) awaitChange(ctx context.Context, kind kube.GroupVersionKind, objects map[string]*unstructured.Unstructured) error {
	watching, cancel := context.WithTimeout(ctx, relist)
	defer cancel()
	for change, err := range d.Cluster.Watch(watching, kind, "", metav1.ListOptions{}) {
		switch {
		case err != nil:
			return err
		case change.Type == "DELETED" && objects[string(change.Object.GetUID())] != nil:
			return nil
		}
	}
	return ctx.Err()
}

const (
	defaultTimeout = 10 * time.Minute
	// relist bounds how long an object that went between a list and the watch behind it is waited for.
	relist = 2 * time.Second
	// patientRounds is after how many lists somebody who waits is told why.
	patientRounds = 5
)

// holder tells what holds one of the objects.
func (d *Deployer) holder(ctx context.Context, objects map[string]*unstructured.Unstructured) string {
	for _, uid := range slices.Sorted(maps.Keys(objects)) {
		if reasons := health.Explain(ctx, d.Cluster, objects[uid]); len(reasons) > 0 {
			return reasons[0]
		}
	}
	return ""
}

// stuck says what keeps objects that were deleted from going away.
func (d *Deployer) stuck(ctx, waiting context.Context, objects map[string]*unstructured.Unstructured, err error) error {
	if ctx.Err() != nil {
		return report.Errorf(report.Interrupted, "interrupted while custom resources were deleted: %w", ctx.Err()).
			WithHint("run the same command again to finish")
	}
	if waiting.Err() == nil {
		return err
	}
	var lines []string
	for i, uid := range slices.Sorted(maps.Keys(objects)) {
		if i == maxLosses {
			lines = append(lines, fmt.Sprintf("and %d more", len(objects)-i))
			break
		}
		lines = append(lines, health.Explain(ctx, d.Cluster, objects[uid])...)
	}
	return report.Errorf(report.Timeout, "custom resources were not gone in time:\n  %s", strings.Join(lines, "\n  ")).
		WithHint("remove what is in the way, and run the same command again")
}
