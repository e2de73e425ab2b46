package deployer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PurgeOptions say how to purge a cluster.
type PurgeOptions struct{ plan.Options }

// Purge removes what stays when every Solution was removed and every archive unimported: the namespaces of Solutions, the
// records, the catalogue, the locks, and the namespace of all these. It refuses while anything is left that they are about. What
// somebody else made stays, and the namespace with it, and so do the documents that are shared with MetalK8s.
func (d *Deployer) Purge(ctx context.Context, o PurgeOptions) (*schema.Operation, error) {
	if err := d.finishPurge(ctx, o); err != nil {
		return nil, err
	}
	head, dry := schema.Operation{Operation: "purge"}, o.Options
	dry.DryRun = true
	var names []string // of locks
	run := d.begin(head, dry)
	done, err := run.Do(ctx, func(ctx context.Context) error {
		held, err := d.Cluster.Locks(ctx)
		if err != nil {
			return err
		}
		for _, lock := range held {
			names = append(names, lock.Name)
		}
		if !o.DryRun {
			held = nil // they are waited for
		}
		return d.planPurge(ctx, run, held)
	})
	// To take a lock would make what a purged cluster does not have any more.
	if err != nil || o.DryRun || done.Empty() {
		if done != nil {
			done.Planned = o.DryRun
		}
		return done, err
	}
	// Who was at work and died, this command before it was run again perhaps, keeps no lock for long: whether somebody lives shows
	// when it is taken.
	run = d.begin(head, o.Options)
	return run.Do(ctx, func(ctx context.Context) error { return d.planPurge(ctx, run, nil) }, append(names, cluster.ClusterLock)...)
}

// finishPurge waits for the last thing that a purge does: while our own namespace goes away nobody can take a lock in it.
func (d *Deployer) finishPurge(ctx context.Context, o PurgeOptions) error {
	if o.DryRun {
		return nil
	}
	live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", cluster.SystemNamespace)
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return err
	}
	return d.Records.Documents.AwaitGone(ctx, live, metalk8s.DeleteOptions{Timeout: o.Timeout})
}

func (d *Deployer) planPurge(ctx context.Context, run *plan.Run, held []cluster.Held) error {
	states, err := d.Records.Engine.States(ctx)
	if err != nil {
		return err
	}
	if err = d.checkPurge(ctx, states, held); err != nil {
		return err
	}
	ours, err := d.solutionNamespaces(ctx)
	if err != nil {
		return err
	}
	stored, err := d.storedObjects(ctx)
	if err != nil {
		return err
	}
	system, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", cluster.SystemNamespace)
	if err != nil {
		return err
	}
	if ours, err = d.purgeable(ctx, run, ours, states, stored); err != nil {
		return err
	}
	var home []*unstructured.Unstructured
	if system != nil {
		if home, err = d.purgeable(ctx, run, []*unstructured.Unstructured{system}, states, stored); err != nil {
			return err
		}
	}
	for _, object := range slices.Concat(ours, stored, home) {
		kind := object.GroupVersionKind()
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: records.RefOf(kind, object)})
		if kind == cluster.ConfigMapKind {
			run.Needs = append(run.Needs, cluster.Permission{Verb: "delete", Resource: "configmaps", Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}
	run.After = func(ctx context.Context) error {
		waiting := metalk8s.DeleteOptions{Timeout: run.Timeout, NoWait: run.NoWait}
		// Records tell what a namespace of a Solution is, so they stay until it is gone. Locks go last: they guard every write.
		if err := d.deleteAndAwait(ctx, ours, waiting); err != nil {
			return err
		}
		if len(home) > 0 {
			stored = slices.DeleteFunc(stored, func(object *unstructured.Unstructured) bool { return object.GetKind() == cluster.LeaseKind.Kind })
		}
		for _, object := range stored {
			if err := d.Cluster.Delete(ctx, withoutVersion(object), cluster.DeleteOptions{}); err != nil {
				return err
			}
		}
		return d.deleteAndAwait(ctx, home, waiting)
	}
	return nil
}

// checkPurge refuses while there is anything that what a purge removes is about.
func (d *Deployer) checkPurge(ctx context.Context, states []*engine.State, held []cluster.Held) error {
	var things []string
	environments, err := d.Records.Documents.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range environments {
		things = append(things, fmt.Sprintf("environment %s (%s)", e.Name, report.Run("deploy env delete", e.Name)))
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, i := range catalog.Imports() {
		things = append(things, fmt.Sprintf("%s is imported (%s)", i.ID(), report.Run("deploy unimport", i.Name, i.Version)))
	}
	recorded, err := d.onRecords(ctx, states)
	if err != nil {
		return err
	}
	things = append(things, recorded...)
	broken, err := d.brokenRecords(ctx, RepairOptions{})
	if err != nil {
		return err
	}
	for _, r := range broken {
		if r.state.Damage != nil { // told already
			continue
		}
		things = append(things, fmt.Sprintf("record of %s: %s (%s)", r.key, r.why, survey.Rebuilding("", r.key)))
	}
	for _, lock := range held {
		if lock.Promised.After(d.Now()) {
			things = append(things, "lock "+lock.Name+" is held by "+lock.Person)
		}
	}
	if len(things) == 0 {
		return nil
	}
	return report.Errorf(report.InUse, "the cluster is in use:\n  %s", report.Some(things)).
		WithHint("a purge is for a cluster of which everything was removed; '%s' shows what is there", report.Run("deploy status"))
}

// onRecords tells what is, or may be, in the cluster of what records list. Namespaces of Solutions go with the purge.
func (d *Deployer) onRecords(ctx context.Context, states []*engine.State) ([]string, error) {
	var things []string
	for _, s := range states {
		version, deployed := records.DeployedVersion(s)
		what := strings.TrimSpace(s.Name + " " + version)
		switch {
		case s.Damage != nil:
			things = append(things, fmt.Sprintf("Secret %s cannot be read (%s)", s.Secret(), survey.Rebuilding("", s.Key)))
			continue
		case deployed && s.Namespace == "":
			things = append(things, fmt.Sprintf("%s is active (%s)", what, report.Run("deploy deactivate", s.Name)))
			continue
		case deployed:
			things = append(things, fmt.Sprintf("%s is deployed in namespace %s", what, s.Namespace))
			continue
		case s.Pending != nil:
			things = append(things, fmt.Sprintf("%s of %s is not finished (%s)", s.Pending.Operation, s.Key, report.Run("deploy resume")))
			continue
		}
		for _, object := range records.ObjectsOf(s) {
			if s.Namespace == "" && object.Kind == cluster.NamespaceKind.Kind && object.Name == render.SystemNamespace(s.Name) {
				continue
			}
			there, err := d.stillThere(ctx, object)
			if err != nil {
				return nil, err
			}
			if there {
				things = append(things, fmt.Sprintf("%s was kept when %s was removed", object.ObjectRef, s.Name))
			}
		}
	}
	return things, nil
}

func (d *Deployer) stillThere(ctx context.Context, object schema.DeployedObject) (bool, error) {
	kind := kube.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	live, err := d.Cluster.GetMetadata(ctx, kind, object.Namespace, object.Name)
	return live != nil && string(live.GetUID()) == object.UID, err
}

// solutionNamespaces are those that activations made: the label is that of the very Solution that the name tells.
func (d *Deployer) solutionNamespaces(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var ours []*unstructured.Unstructured
	for object, err := range d.Cluster.List(ctx, cluster.NamespaceKind, "", metav1.ListOptions{LabelSelector: engine.LabelRelease}) {
		if err != nil {
			return nil, err
		}
		solution := strings.TrimSuffix(object.GetName(), render.SystemNamespace(""))
		if object.GetName() == render.SystemNamespace(solution) && object.GetLabels()[engine.LabelRelease] == (engine.Key{Name: solution}).ID() {
			object.SetGroupVersionKind(cluster.NamespaceKind)
			ours = append(ours, object)
		}
	}
	return ours, nil
}

// storedObjects returns the objects that this tool keeps in its own namespace, in the order in which they can go: locks last, and
// of those the one that a purge holds.
func (d *Deployer) storedObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var stored []*unstructured.Unstructured
	for _, of := range []struct {
		kind kube.GroupVersionKind
		ours func(*unstructured.Unstructured) bool
	}{
		{cluster.SecretKind, engine.Stored},
		{cluster.SecretKind, ourNamed(records.ImportsName)},
		{cluster.ConfigMapKind, ourNamed(records.RegistryName)},
		{cluster.ConfigMapKind, ourNamed(records.MonitoringName)},
		{cluster.ConfigMapKind, ourNamed(records.LoaderName)},
		{cluster.LeaseKind, isLock},
	} {
		first := len(stored)
		for object, err := range d.Cluster.ListMetadata(ctx, of.kind, cluster.SystemNamespace, metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if of.ours(object) {
				object.SetGroupVersionKind(of.kind)
				stored = append(stored, object)
			}
		}
		slices.SortStableFunc(stored[first:], heldLast)
	}
	return stored, nil
}

func isLock(lease *unstructured.Unstructured) bool {
	return lease.GetName() == cluster.ClusterLock || strings.HasPrefix(lease.GetName(), cluster.LockPrefix)
}

// heldLast sorts the lock that a purge holds behind all others.
func heldLast(a, b *unstructured.Unstructured) int {
	rank := map[string]int{cluster.ClusterLock: 1}
	return cmp.Compare(rank[a.GetName()], rank[b.GetName()])
}

// ourNamed finds an object of this tool by its name.
func ourNamed(name string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		return o.GetName() == name && o.GetLabels()["app.kubernetes.io/managed-by"] == cluster.FieldManager
	}
}

// purgeable are those of our namespaces that have nothing but what is ours; the others are told.
func (d *Deployer) purgeable(ctx context.Context, run *plan.Run, ours []*unstructured.Unstructured, states []*engine.State, stored []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var free []*unstructured.Unstructured
	for _, object := range ours {
		if object.GetDeletionTimestamp() != nil {
			free = append(free, object)
			continue
		}
		namespace := metalk8s.Namespace{Name: object.GetName()}
		others, err := d.Survey.OthersIn(ctx, []metalk8s.Namespace{namespace}, states)
		if err != nil {
			return nil, err
		}
		usage, err := d.usage(ctx, []metalk8s.Namespace{namespace}, nil)
		if err != nil {
			return nil, err
		}
		others = slices.DeleteFunc(others, func(ref schema.ObjectRef) bool {
			return slices.ContainsFunc(stored, func(o *unstructured.Unstructured) bool { return ref == records.RefOf(o.GroupVersionKind(), o) })
		})
		var left []string
		for _, ref := range others {
			left = append(left, survey.OtherText(ref))
		}
		for _, use := range usage {
			left = append(left, use.String())
		}
		if len(left) == 0 {
			free = append(free, object)
			continue
		}
		run.Notice(fmt.Sprintf("namespace %s stays, for it has what this tool did not make:\n  %s", object.GetName(), report.Some(left)))
	}
	return free, nil
}

func (d *Deployer) deleteAndAwait(ctx context.Context, namespaces []*unstructured.Unstructured, o metalk8s.DeleteOptions) error {
	for _, namespace := range namespaces {
		if err := d.Cluster.Delete(ctx, withoutVersion(namespace), cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	if o.NoWait {
		return nil
	}
	for _, namespace := range namespaces {
		if err := d.Records.Documents.AwaitGone(ctx, namespace, o); err != nil {
			return err
		}
	}
	return nil
}

// withoutVersion is an object that was read, in whatever state it is now.
func withoutVersion(object *unstructured.Unstructured) *unstructured.Unstructured {
	same := object.DeepCopy()
	same.SetResourceVersion("")
	return same
}
