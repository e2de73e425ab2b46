package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Migration is a definition in the cluster whose objects have to be stored in one version.
type Migration struct {
	Definition *unstructured.Unstructured
	version    string
	added      map[string]any // the version, when the definition does not have it yet
	through    string         // the version to read and write objects in
	judge      *lossJudge
	accepted   bool // objects may lose data
}

// Migrate stores every object of these CRDs again in one version, then sets status.storedVersions to that version only.
// The API server allows a version to be removed only after that. Since the status is written last, an interrupted run
// starts again from the beginning, which is harmless.
func (g *Guard) Migrate(ctx context.Context, migrations []Migration) error {
	for _, m := range migrations {
		// The CRD was read during planning; only its present state must be changed.
		live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", m.Definition.GetName())
		if err != nil {
			return err
		}
		if live == nil || live.GetUID() != m.Definition.GetUID() {
			return report.Errorf(report.Conflict, "custom resource definition %s was deleted meanwhile", m.Definition.GetName()).
				WithHint("run the command again")
		}
		event := report.Event{Step: "migrate", Name: live.GetName(), State: report.Started, Unit: "objects"}
		g.Sink.Emit(event)
		event.Done, err = g.migrateObjects(ctx, live, m)
		event.State = report.Done
		if err != nil {
			event.State = report.Failed
		}
		g.Sink.Emit(event)
		if err != nil {
			return fmt.Errorf("store the objects of %s again: %w", live.GetName(), err)
		}
	}
	return nil
}

// migrateObjects returns how many objects it has stored.
func (g *Guard) migrateObjects(ctx context.Context, live *unstructured.Unstructured, m Migration) (stored int64, err error) {
	def, err := Parse(live)
	if err != nil {
		return 0, err
	}
	if m.added != nil && converts(def) {
		// The webhook does not know the version that is added: it converts for the last time.
		present := Migration{Definition: live, version: def.StorageVersion(), through: m.through, judge: m.judge, accepted: true}
		if live, _, err = g.storeAll(ctx, live, present); err != nil {
			return 0, err
		}
	}
	live, stored, err = g.storeAll(ctx, live, m)
	if err != nil {
		return stored, err
	}
	return stored, g.onlyStored(ctx, live, m.version)
}

// onlyStored sets status.storedVersions to one version. It fails on a conflict: if the CRD was changed meanwhile, the
// API server may store objects in another version.
func (g *Guard) onlyStored(ctx context.Context, migrated *unstructured.Unstructured, version string) error {
	live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", migrated.GetName())
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != migrated.GetUID() || live.GetGeneration() != migrated.GetGeneration() {
		return report.Errorf(report.Conflict, "custom resource definition %s was changed meanwhile", migrated.GetName()).WithHint("run the command again")
	}
	if err = unstructured.SetNestedStringSlice(live.Object, []string{version}, "status", "storedVersions"); err != nil {
		return err
	}
	_, err = g.Cluster.UpdateStatus(ctx, live, cluster.WriteOptions{})
	return err
}

// storeAll stores every object of a definition in a version; it returns the definition as it is then.
func (g *Guard) storeAll(ctx context.Context, live *unstructured.Unstructured, m Migration) (*unstructured.Unstructured, int64, error) {
	live, err := g.storeIn(ctx, live, m)
	if err != nil {
		return nil, 0, err
	}
	def := m.judge.listed
	kind := kube.GroupVersionKind{Group: def.Group, Version: m.through, Kind: def.Kind}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	var stored int64
	for object, failure := range g.Cluster.List(within, kind, "", metav1.ListOptions{}) {
		if err = failure; err != nil {
			break
		}
		stored++
		group.Go(func() error { return g.storeAgain(within, object, m) })
	}
	if failure := group.Wait(); failure != nil {
		err = failure // the list ends with it
	}
	return live, stored, err
}

// settle is the time that API servers need to notice a changed CRD. They do not report when they have, and until then
// they store objects in the former version.
const settle = 2 * time.Second

// storeIn makes a definition store a version.
func (g *Guard) storeIn(ctx context.Context, live *unstructured.Unstructured, m Migration) (*unstructured.Unstructured, error) {
	changed, err := setStorage(live, m)
	if err != nil {
		return nil, err
	}
	if changed {
		if live, err = g.Cluster.Update(ctx, live, cluster.WriteOptions{}); err != nil {
			return nil, err
		}
	}
	if live, err = g.dropUpdateEntry(ctx, live); err != nil {
		return nil, err
	}
	return live, cluster.Sleep(ctx, settle) // also where an earlier run has changed it: that may be a moment ago
}

// dropUpdateEntry removes our entry for the operation Update from managedFields. The API server keeps updates and
// applies apart, so the next apply would take these fields for those of another field manager.
func (g *Guard) dropUpdateEntry(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kept := slices.DeleteFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == cluster.FieldManager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == ""
	})
	if len(kept) == len(live.GetManagedFields()) {
		return live, nil
	}
	live.SetManagedFields(kept)
	return g.Cluster.Update(ctx, live, cluster.WriteOptions{})
}

// setStorage makes a version the one that objects are stored in, and adds it where it is not there.
func setStorage(definition *unstructured.Unstructured, m Migration) (changed bool, err error) {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return false, err
	}
	if versionIndex(versions, m.version) < 0 {
		versions = append(versions, m.added)
		if err := unstructured.SetNestedMap(definition.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
			return false, err
		}
	}
	for _, v := range versions {
		one, _ := v.(map[string]any)
		wanted := one["name"] == m.version
		changed = changed || one["storage"] != wanted
		one["storage"] = wanted
	}
	if !changed {
		return false, nil
	}
	return true, unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
}

// storeAgain writes an object unchanged, so that the API server stores it in the present version. All entries of
// managedFields are moved to that version, because entries for a version that is not served any more cannot be read.
func (g *Guard) storeAgain(ctx context.Context, object *unstructured.Unstructured, m Migration) error {
	apiVersion := kube.GroupVersion{Group: object.GroupVersionKind().Group, Version: m.version}.String()
	for {
		if lost, _, err := m.judge.judge(ctx, object); err != nil || len(lost) > 0 && !m.accepted {
			// It was made or changed after everything had been judged.
			return cmp.Or(err, error(report.Errorf(report.DataLoss, "%s would lose data: %s", cluster.NameOf(object), strings.Join(lost, ", ")).
				WithHint("change these fields first, and run the command again")))
		}
		if !m.accepted {
			if err := g.tryAgain(ctx, m.judge, object); err != nil {
				return err
			}
		}
		owners, err := ownersIn(apiVersion, object.GetManagedFields())
		if err != nil {
			return fmt.Errorf("%s: who manages it: %w", cluster.NameOf(object), err)
		}
		object.SetManagedFields(owners)
		_, err = g.Cluster.Update(ctx, object, cluster.WriteOptions{})
		if !errors.Is(err, cluster.ErrChanged) {
			return err
		}
		now, err := g.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil || now == nil || now.GetUID() != object.GetUID() {
			return err // gone, or a new one, which is stored in the present version
		}
		object = now
	}
}

// ownersIn moves entries of managedFields to one version. Entries of one manager for several versions are merged: the
// API server distinguishes entries by version, and would keep only the last one.
func ownersIn(apiVersion string, entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var owners []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		entry.APIVersion = apiVersion
		at := slices.IndexFunc(owners, func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == entry.Manager && o.Operation == entry.Operation && o.Subresource == entry.Subresource
		})
		if at < 0 {
			owners = append(owners, entry)
			continue
		}
		both := &fieldpath.Set{}
		for _, one := range []metav1.ManagedFieldsEntry{owners[at], entry} {
			fields := &fieldpath.Set{}
			if one.FieldsV1 != nil {
				if err := fields.FromJSON(one.FieldsV1.GetRawReader()); err != nil {
					return nil, err
				}
			}
			both = both.Union(fields)
		}
		raw, err := both.ToJSON()
		if err != nil {
			return nil, err
		}
		owners[at].FieldsV1 = metav1.NewFieldsV1(string(raw))
		if owners[at].Time.Before(entry.Time) {
			owners[at].Time = entry.Time
		}
	}
	return owners, nil
}

// StandAlone makes definitions do without their webhook while it still answers: every object is stored in one version, and
// no other one is served. Activating a version again brings the others back.
func (g *Guard) StandAlone(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, object := range definitions {
		def, err := Parse(object)
		if err != nil {
			return err
		}
		judge, err := newLossJudge(def, def)
		if err != nil {
			return err
		}
		m := Migration{Definition: object, version: def.StorageVersion(), through: judge.listed.Version, judge: judge, accepted: true}
		if !slices.Equal(def.Status.StoredVersions, []string{m.version}) {
			if err = g.Migrate(ctx, []Migration{m}); err != nil {
				return err
			}
		}
		if err = g.serveOnly(ctx, object, m.version); err != nil {
			return fmt.Errorf("custom resource definition %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// serveOnly makes a definition serve one version, which nothing converts.
func (g *Guard) serveOnly(ctx context.Context, object *unstructured.Unstructured, version string) error {
	live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", object.GetName())
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != object.GetUID() {
		return report.Errorf(report.Conflict, "it was deleted meanwhile").WithHint("run the command again")
	}
	versions, _, err := unstructured.NestedSlice(live.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		if one, ok := v.(map[string]any); ok {
			one["served"] = one["name"] == version
		}
	}
	if err = unstructured.SetNestedSlice(live.Object, versions, "spec", "versions"); err != nil {
		return err
	}
	if err = unstructured.SetNestedMap(live.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
		return err
	}
	if live, err = g.Cluster.Update(ctx, live, cluster.WriteOptions{}); err != nil {
		return err
	}
	_, err = g.dropUpdateEntry(ctx, live)
	return err
}
