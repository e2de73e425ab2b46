package environments

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
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PurgeOptions say how to purge a cluster.
type PurgeOptions struct{ plan.Options }

// Purge removes what stays when every Solution was removed and every archive unimported: the namespaces of Solutions, the records, the
// catalogue, the locks, and their namespace. It refuses while anything is left that they describe, and while records must
// be rebuilt. Objects of others stay, with their namespace, and so do the documents of MetalK8s.
func (e *Environments) Purge(ctx context.Context, o PurgeOptions) (*schema.Operation, error) {
	if err := e.finishPurge(ctx, o); err != nil {
		return nil, err
	}
	head, dry := schema.Operation{Operation: "purge"}, o.Options
	dry.DryRun = true
	var names []string // of locks
	run := e.Begin(head, dry)
	done, err := run.Do(ctx, func(ctx context.Context) error {
		held, err := e.Cluster.Locks(ctx)
		if err != nil {
			return err
		}
		for _, lock := range held {
			names = append(names, lock.Name)
		}
		if !o.DryRun {
			held = nil // the run waits for them
		}
		return e.planPurge(ctx, run, held)
	})
	// To take a lock would make what a purged cluster does not have any more.
	if err != nil || o.DryRun || done.Empty() {
		if done != nil {
			done.Planned = o.DryRun
		}
		return done, err
	}
	// A dead process, such as an earlier run of this command, keeps no lock for long: taking the lock shows whether it lives.
	run = e.Begin(head, o.Options)
	return run.Do(ctx, func(ctx context.Context) error { return e.planPurge(ctx, run, nil) }, append(names, cluster.ClusterLock)...)
}

// finishPurge waits for the last step of a purge: no lock can be taken in the system namespace while it is deleted.
func (e *Environments) finishPurge(ctx context.Context, o PurgeOptions) error {
	if o.DryRun {
		return nil
	}
	live, err := e.Cluster.Get(ctx, cluster.NamespaceKind, "", cluster.SystemNamespace)
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return err
	}
	return e.Records.Documents.AwaitGone(ctx, live, metalk8s.DeleteOptions{Timeout: o.Timeout})
}

func (e *Environments) planPurge(ctx context.Context, run *plan.Run, held []cluster.Held) error {
	states, err := e.Records.Engine.States(ctx)
	if err != nil {
		return err
	}
	if err = e.checkPurge(ctx, states, held); err != nil {
		return err
	}
	ours, err := e.solutionNamespaces(ctx)
	if err != nil {
		return err
	}
	stored, err := e.storedObjects(ctx)
	if err != nil {
		return err
	}
	system, err := e.Cluster.Get(ctx, cluster.NamespaceKind, "", cluster.SystemNamespace)
	if err != nil {
		return err
	}
	p := &purge{e, run, states, stored}
	if ours, err = p.free(ctx, ours); err != nil {
		return err
	}
	var home []*unstructured.Unstructured
	if system != nil {
		if home, err = p.free(ctx, []*unstructured.Unstructured{system}); err != nil {
			return err
		}
	}
	for _, namespace := range slices.Concat(ours, home) {
		run.Deleted = append(run.Deleted, schema.DeletedNamespace{Name: namespace.GetName()})
	}
	run.Purged = len(stored)
	for _, object := range slices.Concat(ours, stored, home) {
		kind := object.GroupVersionKind()
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: records.RefOf(kind, object)})
		if kind == cluster.ConfigMapKind {
			run.Needs = append(run.Needs, cluster.Permission{Verb: "delete", Resource: "configmaps", Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}
	run.After = func(ctx context.Context) error {
		waiting := metalk8s.DeleteOptions{Timeout: run.Timeout, NoWait: run.NoWait}
		// Records identify the namespaces of a Solution, so they stay until these are deleted. Locks go last: they guard every write.
		if err := e.deleteAndAwait(ctx, ours, waiting); err != nil {
			return err
		}
		if len(home) > 0 {
			stored = slices.DeleteFunc(stored, func(object *unstructured.Unstructured) bool { return object.GetKind() == cluster.LeaseKind.Kind })
		}
		for _, object := range stored {
			if err := e.Cluster.Delete(ctx, withoutVersion(object), cluster.DeleteOptions{}); err != nil {
				return err
			}
		}
		return e.deleteAndAwait(ctx, home, waiting)
	}
	return nil
}

// checkPurge refuses a purge while anything is left that the purged objects describe.
func (e *Environments) checkPurge(ctx context.Context, states []*record.State, held []cluster.Held) error {
	var things []string
	environments, err := e.Records.Documents.Environments(ctx)
	if err != nil {
		return err
	}
	for _, e := range environments {
		things = append(things, fmt.Sprintf("environment %s (%s)", e.Name, report.Run("deploy env delete", e.Name)))
	}
	catalog, err := e.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, i := range catalog.Imports() {
		things = append(things, fmt.Sprintf("%s is imported (%s)", i.ID(), report.Run("deploy unimport", i.Name, i.Version)))
	}
	found, err := e.recorded(ctx, states)
	if err != nil {
		return err
	}
	things = append(things, found...)
	broken, err := rebuild.Find(ctx, e.Planner, survey.Selection{})
	if err != nil {
		return err
	}
	for _, r := range broken {
		if !r.IsDamaged() { // e.recorded reports damaged records
			things = append(things, fmt.Sprintf("%s (%s)", r.Problem(), r.Remedy()))
		}
	}
	for _, lock := range held {
		if lock.Promised.After(e.Now()) {
			things = append(things, "lock "+lock.Name+" is held by "+lock.Person)
		}
	}
	if len(things) == 0 {
		return nil
	}
	return report.Errorf(report.InUse, "the cluster is in use:\n  %s", report.Some(things)).
		WithHint("a purge requires that everything was removed; '%s' shows the deployments", report.Run("deploy status"))
}

// recorded returns what is, or may be, in the cluster according to records, apart from namespaces of Solutions, which a purge deletes.
func (e *Environments) recorded(ctx context.Context, states []*record.State) ([]string, error) {
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
			there, err := e.stillThere(ctx, object)
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

func (e *Environments) stillThere(ctx context.Context, object schema.DeployedObject) (bool, error) {
	kind := kube.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	live, err := e.Cluster.GetMetadata(ctx, kind, object.Namespace, object.Name)
	return live != nil && string(live.GetUID()) == object.UID, err
}

// solutionNamespaces returns the namespaces that activations created: name and label are of the same Solution.
func (e *Environments) solutionNamespaces(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var ours []*unstructured.Unstructured
	for object, err := range e.Cluster.List(ctx, cluster.NamespaceKind, "", metav1.ListOptions{LabelSelector: schema.LabelRelease}) {
		if err != nil {
			return nil, err
		}
		solution := strings.TrimSuffix(object.GetName(), render.SystemNamespace(""))
		if object.GetName() == render.SystemNamespace(solution) && object.GetLabels()[schema.LabelRelease] == (record.Key{Name: solution}).ID() {
			ours = append(ours, object)
		}
	}
	return ours, nil
}

// storedObjects returns the objects of solutionctl in its own namespace in the order of their deletion: locks last, and of those the one
// that a purge holds.
func (e *Environments) storedObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var stored []*unstructured.Unstructured
	for _, of := range []struct {
		kind kube.GroupVersionKind
		ours func(*unstructured.Unstructured) bool
	}{
		{cluster.SecretKind, record.Stored},
		{cluster.SecretKind, managedNamed(records.ImportsName)},
		{cluster.ConfigMapKind, managedNamed(records.RegistryName)},
		{cluster.ConfigMapKind, managedNamed(records.MonitoringName)},
		{cluster.ConfigMapKind, managedNamed(records.ClusterName)},
		{cluster.ConfigMapKind, managedNamed(records.LoaderName)},
		{cluster.ConfigMapKind, managedNamed(records.PreloadName)},
		{cluster.LeaseKind, isLock},
	} {
		first := len(stored)
		for object, err := range e.Cluster.ListMetadata(ctx, of.kind, cluster.SystemNamespace, metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if of.ours(object) {
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

// managedNamed returns a function that reports whether an object is managed by solutionctl and has a name.
func managedNamed(name string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		return o.GetName() == name && o.GetLabels()["app.kubernetes.io/managed-by"] == cluster.FieldManager
	}
}

// purge is the plan of a purge with the records and the stored objects of solutionctl.
type purge struct {
	*Environments
	run    *plan.Run
	states []*record.State
	stored []*unstructured.Unstructured
}

// free returns the namespaces that have no objects of others, and reports the rest.
func (p *purge) free(ctx context.Context, ours []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var free []*unstructured.Unstructured
	for _, object := range ours {
		if object.GetDeletionTimestamp() != nil {
			free = append(free, object)
			continue
		}
		namespace := metalk8s.Namespace{Name: object.GetName()}
		others, err := p.Survey.OthersIn(ctx, []metalk8s.Namespace{namespace}, p.states)
		if err != nil {
			return nil, err
		}
		usage, _, err := p.usage(ctx, []metalk8s.Namespace{namespace}, nil)
		if err != nil {
			return nil, err
		}
		others = slices.DeleteFunc(others, func(ref schema.ObjectRef) bool {
			return slices.ContainsFunc(p.stored, func(o *unstructured.Unstructured) bool { return ref == records.RefOf(o.GroupVersionKind(), o) })
		})
		left := survey.OtherTexts(others)
		for _, use := range usage {
			left = append(left, use.String())
		}
		if len(left) == 0 {
			free = append(free, object)
			continue
		}
		p.run.Notice(fmt.Sprintf("namespace %s stays, for it has what this tool did not make:\n  %s", object.GetName(), report.Some(left)))
	}
	return free, nil
}

func (e *Environments) deleteAndAwait(ctx context.Context, namespaces []*unstructured.Unstructured, o metalk8s.DeleteOptions) error {
	for _, namespace := range namespaces {
		if err := e.Cluster.Delete(ctx, withoutVersion(namespace), cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	if o.NoWait {
		return nil
	}
	for _, namespace := range namespaces {
		if err := e.Records.Documents.AwaitGone(ctx, namespace, o); err != nil {
			return err
		}
	}
	return nil
}

// withoutVersion returns a copy that stands for the object in any later state.
func withoutVersion(object *unstructured.Unstructured) *unstructured.Unstructured {
	same := object.DeepCopy()
	same.SetResourceVersion("")
	return same
}
