package definitions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Of returns the CustomResourceDefinitions of a Solution that the cluster has: with its label, and those that are its own
// without one.
func (g *Guard) Of(ctx context.Context, catalog *records.Catalog, solution string) ([]*unstructured.Unstructured, error) {
	unlabelled, err := g.Unlabelled(ctx, catalog, solution)
	if err != nil {
		return nil, err
	}
	payloads, err := g.Records.Payloads(ctx, catalog, solution)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(unlabelled)
	for _, p := range payloads {
		if err = addBrought(names, p); err != nil {
			return nil, err
		}
	}
	found, err := g.Existing(ctx, slices.Sorted(maps.Keys(names))...)
	return slices.DeleteFunc(found, func(definition *unstructured.Unstructured) bool {
		label := definition.GetLabels()[schema.LabelRelease]
		return label != record.Key{Name: solution}.ID() && (label != "" || !unlabelled[definition.GetName()])
	}), err
}

// Unlabelled returns the names of CustomResourceDefinitions that are a Solution's own also without its label: those on its
// record, and those of the active version, which MetalK8s may have applied. Archives can have copies of the definitions of
// others, and their manifests name what they need: neither makes a definition their own.
func (g *Guard) Unlabelled(ctx context.Context, catalog *records.Catalog, solution string) (map[string]bool, error) {
	names := map[string]bool{}
	state, err := g.Records.Engine.State(ctx, record.Key{Name: solution})
	if err != nil {
		return nil, err
	}
	for _, revision := range state.Recent() {
		for _, object := range revision.Objects {
			if object.Kind == cluster.DefinitionKind.Kind {
				names[object.Name] = true
			}
		}
	}
	active, err := g.Records.Active(ctx, solution)
	if err != nil {
		return nil, err
	}
	imported, ok := catalog.Get(solution + "-" + active)
	if !ok {
		return names, nil
	}
	p, err := g.Records.Payload(ctx, imported)
	if err != nil {
		return nil, err
	}
	return names, addBrought(names, p)
}

// addBrought adds the names of the definitions that an archive has.
func addBrought(names map[string]bool, p *render.Payload) error {
	brought, err := render.Definitions(p)
	for _, definition := range brought {
		names[definition.GetName()] = true
	}
	return err
}

// Instance is an object of a kind that a Solution brought.
type Instance struct {
	Kind   kube.GroupVersionKind
	Object *unstructured.Unstructured // its metadata
	digest [sha256.Size]byte          // of its content at the export
}

// Instances lists the objects of these definitions in a namespace, in the whole cluster for "".
func (g *Guard) Instances(ctx context.Context, definitions []*unstructured.Unstructured, namespace string) ([]Instance, error) {
	var found []Instance
	for _, object := range definitions {
		def, err := Parse(object)
		if err != nil {
			return nil, err
		}
		kind := kube.GroupVersionKind{Group: def.Spec.Group, Version: ServedVersion(def), Kind: def.Spec.Names.Kind}
		if namespace != "" && def.Spec.Scope != "Namespaced" {
			continue
		}
		for one, err := range g.objectsOf(ctx, object, kind, namespace, g.Cluster.ListMetadata) {
			if err != nil {
				return nil, err
			}
			found = append(found, Instance{Kind: kind, Object: one})
		}
	}
	return found, nil
}

// CountText counts custom resources by kind: "2 Websites, 1 Clock".
func CountText(list []Instance) string {
	counts := map[string]int{}
	for _, one := range list {
		counts[one.Kind.Kind]++
	}
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d of kind %s", counts[kind], kind))
	}
	return strings.Join(texts, ", ")
}

// Data counts custom resources by their definition, all of which have the same outcome.
func Data(definitions []*unstructured.Unstructured, list []Instance, outcome schema.DataOutcome) []schema.DataChange {
	var data []schema.DataChange
	for _, definition := range definitions {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		d := schema.DataChange{Definition: definition.GetName(), Kind: kind, Outcome: outcome}
		for _, one := range list {
			if one.Kind.Group == group && one.Kind.Kind == kind {
				d.Objects++
			}
		}
		if d.Objects > 0 {
			data = append(data, d)
		}
	}
	return data
}

// DeleteInstances writes custom resources to the export, asks for their deletion and waits until they are gone, while
// operators still serve their finalizers.
func (g *Guard) DeleteInstances(ctx context.Context, list []Instance, export Export, timeout time.Duration) error {
	list, err := g.Export(ctx, list, export)
	if err != nil {
		return err
	}
	return g.RemoveInstances(ctx, list, timeout)
}

// RemoveInstances asks for the deletion of custom resources that were exported and waits until they are gone.
func (g *Guard) RemoveInstances(ctx context.Context, list []Instance, timeout time.Duration) error {
	if len(list) == 0 {
		return nil
	}
	total := int64(len(list))
	event := report.Event{Step: "delete", Name: "custom resources", State: report.Started, Total: total, Unit: "objects"}
	g.Sink.Emit(event)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, one := range list {
		group.Go(func() error { return g.deleteExported(within, one) })
	}
	err := group.Wait()
	if err == nil {
		err = g.AwaitGone(ctx, list, timeout, func(left int, reason string) {
			event.State, event.Done, event.Note = report.Running, total-int64(left), reason
			g.Sink.Emit(event)
		})
	}
	event.State, event.Note = report.Done, ""
	if err != nil {
		event.State = report.Failed
	}
	g.Sink.Emit(event)
	return err
}

// deleteExported deletes an object that is still as it was exported. Its operator may have written its status since.
func (g *Guard) deleteExported(ctx context.Context, one Instance) error {
	object := one.Object
	for {
		err := g.Cluster.Delete(ctx, object, cluster.DeleteOptions{})
		if !errors.Is(err, cluster.ErrChanged) {
			return err
		}
		now, err := g.Cluster.Get(ctx, one.Kind, object.GetNamespace(), object.GetName())
		if err != nil || now == nil || now.GetUID() != object.GetUID() {
			return err
		}
		digest, err := digestOf(now)
		if err != nil {
			return err
		}
		if digest != one.digest {
			return report.Errorf(report.Conflict, "%s was changed after it was exported, and was not deleted", cluster.NameOf(now)).
				WithHint("run the same command again: it exports the remaining objects")
		}
		object = now
	}
}

// AwaitGone follows the objects until none remains. Remaining objects are named with the reason, from time to time and
// in the end.
func (g *Guard) AwaitGone(ctx context.Context, list []Instance, timeout time.Duration, left func(count int, reason string)) error {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(timeout, records.DefaultTimeout))
	defer cancel()
	count := len(list)
	for _, group := range groups(list) {
		objects := map[string]*unstructured.Unstructured{}
		for _, one := range list {
			if uid := string(one.Object.GetUID()); one.Kind == group.Kind && group.uids[uid] {
				objects[uid] = one.Object
			}
		}
		for round := 1; len(objects) > 0; round++ {
			there := map[string]*unstructured.Unstructured{}
			for one, err := range g.Cluster.ListMetadata(waiting, group.Kind, group.Namespace, metav1.ListOptions{}) {
				if err != nil {
					return g.stuck(ctx, waiting, objects, err)
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
			if round%quietRounds == 0 {
				reason = g.holder(waiting, objects)
			}
			left(count, reason)
			if len(objects) == 0 {
				break
			}
			if err := g.awaitChange(waiting, group, objects); err != nil {
				return g.stuck(ctx, waiting, objects, err)
			}
		}
	}
	return nil
}

// awaitChange returns when one of the objects is gone.
func (g *Guard) awaitChange(ctx context.Context, group instanceGroup, objects map[string]*unstructured.Unstructured) error {
	watching, cancel := context.WithTimeout(ctx, relist)
	defer cancel()
	for change, err := range g.Cluster.Watch(watching, group.Kind, group.Namespace, metav1.ListOptions{}) {
		switch {
		case err != nil:
			return err
		case change.Type == "DELETED" && objects[string(change.Object.GetUID())] != nil:
			return nil
		}
	}
	return ctx.Err()
}

// relist bounds how long an object that went between a list and the watch behind it is waited for.
const relist = 2 * time.Second

// quietRounds is the number of polls before a waiting user is shown the reason.
const quietRounds = 5

// holder returns the reason why one of the objects is still there.
func (g *Guard) holder(ctx context.Context, objects map[string]*unstructured.Unstructured) string {
	for _, uid := range slices.Sorted(maps.Keys(objects)) {
		if reasons := health.Explain(ctx, g.Cluster, objects[uid]); len(reasons) > 0 {
			return reasons[0]
		}
	}
	return ""
}

// stuck returns an error with the reasons why deleted objects still exist.
func (g *Guard) stuck(ctx, waiting context.Context, objects map[string]*unstructured.Unstructured, err error) error {
	if ctx.Err() != nil {
		return report.Errorf(report.Interrupted, "interrupted while custom resources were deleted: %w", ctx.Err()).
			WithHint("run the same command again to finish")
	}
	if waiting.Err() == nil {
		return err
	}
	var lines []string
	for i, uid := range slices.Sorted(maps.Keys(objects)) {
		if i == report.MaxSome {
			lines = append(lines, fmt.Sprintf("and %d more", len(objects)-i))
			break
		}
		lines = append(lines, g.stays(ctx, objects[uid])...)
	}
	text := "custom resources were not gone in time"
	if len(lines) > 0 {
		text += ":\n  " + strings.Join(lines, "\n  ")
	}
	return report.Errorf(report.Timeout, "%s", text).
		WithHint("remove the named obstacle, then run the same command again")
}

// stays describes an object that still exists and the known reasons for it; nothing once it is deleted.
func (g *Guard) stays(ctx context.Context, object *unstructured.Unstructured) []string {
	if object.GetDeletionTimestamp() == nil { // it was read before it was deleted
		now, err := g.Cluster.GetMetadata(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		switch {
		case err == nil && (now == nil || now.GetUID() != object.GetUID()):
			return nil
		case err == nil:
			object = now
		}
	}
	if reasons := health.Explain(ctx, g.Cluster, object); len(reasons) > 0 {
		return reasons
	}
	return []string{cluster.NameOf(object)}
}

// MayMigrate returns the permissions that storing the objects of a definition again takes.
func MayMigrate(definition *unstructured.Unstructured) []cluster.Permission {
	crds := cluster.Permission{Group: cluster.DefinitionKind.Group, Resource: "customresourcedefinitions"}
	status := crds
	status.Subresource = "status"
	return slices.Concat(crds.Each("get", "update"), status.Each("update"), OnObjects(definition, "list", "get", "update"))
}

// OnObjects are permissions on the objects of a definition.
func OnObjects(definition *unstructured.Unstructured, verbs ...string) []cluster.Permission {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	resource, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return cluster.Permission{Group: group, Resource: resource}.Each(verbs...)
}
