package environments

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DeleteOptions say which environment to delete.
type DeleteOptions struct {
	plan.Options
	Environment string
	Namespace   string // the only one of its namespaces to delete; "" stands for all of them
	// Data is RefuseData, which refuses while anything is used, or DeleteData, which removes the Solutions in the namespaces
	// and deletes every custom resource first.
	Data   plan.DataPolicy
	Export definitions.Export // where custom resources go before they are deleted
	// Others, of those that [survey.Survey.Others] lists, are deleted although they are not part of a Solution. Any other such object
	// refuses the deletion.
	Others []schema.ObjectRef
	// Release are objects whose finalizers are removed, of those that [Environments.Held] lists. What their controllers would have
	// cleaned up stays behind.
	Release []Held
}

// Delete deletes namespaces of an environment, in the order that lets operators clean up: custom resources, then the Solutions with their
// objects outside of the namespaces, then the namespaces. If a namespace was deleted by others, it removes the objects outside of it.
func (e *Environments) Delete(ctx context.Context, o DeleteOptions) (*schema.Operation, error) {
	run := e.begin(&o)
	done, err := run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error { return e.planDeletion(ctx, run, o) })
	if report.CodeOf(err) != report.NotFound {
		return done, err
	}
	namespace := cmp.Or(o.Namespace, o.Environment)
	left, gone, failure := e.leftBehind(ctx, namespace)
	switch {
	case failure != nil || !gone:
		return nil, cmp.Or(failure, err)
	case len(left) == 0: // an earlier run deleted it, and may have been interrupted
		if failure = e.discardLock(ctx, o, namespace); failure != nil {
			return nil, failure
		}
		return e.reportDeleted(ctx, o, err)
	}
	run = e.begin(&o)
	return run.Do(ctx, func(ctx context.Context) error { return o.planRemoval(ctx, run, left) }, cluster.LockOf(namespace))
}

func (e *Environments) begin(o *DeleteOptions) *plan.Run {
	run := e.Begin(schema.Operation{Operation: schema.VerbDelete, Environment: o.Environment, Namespace: o.Namespace}, o.Options)
	run.Ends = true
	return run
}

// discardLock deletes the Lease of a namespace that no longer exists. It stays when a deletion was interrupted at its end or did not wait.
func (e *Environments) discardLock(ctx context.Context, o DeleteOptions, namespace string) error {
	if o.DryRun || len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil
	}
	lease, err := e.Cluster.GetMetadata(ctx, cluster.LeaseKind, cluster.SystemNamespace, cluster.LockOf(namespace))
	if report.CodeOf(err) == report.Forbidden {
		return nil
	}
	if err != nil || lease == nil {
		return err
	}
	return e.Locked(ctx, func(ctx context.Context) error {
		cluster.DiscardLocks(ctx)
		return nil
	}, cluster.LockOf(namespace))
}

// reportDeleted reports that there is nothing to delete, with the names of the environments that exist.
func (e *Environments) reportDeleted(ctx context.Context, o DeleteOptions, why error) (*schema.Operation, error) {
	environments, err := e.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	run := e.begin(&o)
	run.Planned = o.DryRun
	run.Notice(why.Error())
	var names []string
	for _, e := range environments {
		names = append(names, e.Name)
	}
	if len(names) > 0 {
		run.Notice("the environments are " + strings.Join(names, ", "))
	}
	return run.Settle()
}

// leftBehind returns the records of the releases in a namespace that no longer exists.
func (e *Environments) leftBehind(ctx context.Context, namespace string) (left []*record.State, gone bool, err error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, true, nil // no namespace ever had this name
	}
	live, err := e.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
	if err != nil || live != nil {
		return nil, false, err
	}
	left, err = e.Records.StatesIn(ctx, []metalk8s.Namespace{{Name: namespace}})
	return left, true, err
}

// planRemoval plans to delete every recorded object, and then the records.
func (o *DeleteOptions) planRemoval(ctx context.Context, run *plan.Run, states []*record.State) error {
	run.After = func(ctx context.Context) error {
		var keys []record.Key
		for _, s := range states {
			keys = append(keys, s.Key)
		}
		return run.Records.Engine.DeleteRecords(ctx, keys...)
	}
	there := slices.DeleteFunc(slices.Clone(states), func(s *record.State) bool { return s.Pending == nil && len(records.ObjectsOf(s)) == 0 })
	releases := plan.Removals(there, run.Operation.Operation)
	for i, s := range there {
		for _, object := range records.ObjectsOf(s) {
			releases[i].Delete = append(releases[i].Delete, object.ObjectRef)
		}
	}
	return run.Plan(ctx, releases...)
}

func (e *Environments) planDeletion(ctx context.Context, run *plan.Run, o DeleteOptions) error {
	namespaces := run.Namespaces
	if err := metalk8s.Deletable(namespaces); err != nil {
		return err
	}
	states, err := e.Records.StatesIn(ctx, namespaces)
	if err != nil {
		return err
	}
	usage, claims, err := e.usage(ctx, namespaces, states)
	if err != nil {
		return err
	}
	others, err := e.Survey.OthersIn(ctx, namespaces, states)
	if err != nil {
		return err
	}
	if err = o.inUse(usage, others); err != nil {
		return err
	}
	if err = run.ReadCatalogIfIntact(ctx); err != nil {
		return err
	}
	if err = run.CheckDependencies(ctx, dependencies.Empty(namespaces)); err != nil {
		return err
	}
	lost := addDeleted(run, usage, others)
	for _, n := range namespaces {
		run.Deleted = append(run.Deleted, deleted(n.Name, usage, claims, others))
	}
	if run.Needs, err = definitions.DeletePermissions(ctx, e.Cluster, lost); err != nil {
		return err
	}
	for _, n := range namespaces {
		if len(n.Versions) > 0 && !n.Terminating {
			run.Needs = append(run.Needs, rights.UpdateDocument(n.Name, metalk8s.EnvironmentConfigMap)...)
		}
	}
	if err = o.planRemoval(ctx, run, states); err != nil {
		return err
	}
	if err = planRelease(ctx, run, o.Release); err != nil {
		return err
	}
	deleteRecords := run.After
	for _, n := range namespaces {
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: namespaceRef(n.Name)})
	}
	run.Before = func(ctx context.Context) error {
		exported, err := e.Definitions.Export(ctx, lost, o.Export)
		if err != nil {
			return err
		}
		if err := e.release(ctx, o.Release); err != nil {
			return err
		}
		if err := e.Definitions.RemoveInstances(ctx, exported, o.Timeout); err != nil {
			return o.hintForce(err)
		}
		return e.clearVersions(ctx, namespaces)
	}
	run.After = func(ctx context.Context) error {
		takesLong := len(lost) > 0 || len(o.Release) > 0 || slices.ContainsFunc(run.Plans, func(p *engine.Plan) bool { return !p.Idle() })
		if takesLong {
			if err := e.checkCreated(ctx, namespaces, states, usage, others); err != nil {
				return err
			}
		}
		if err := deleteRecords(ctx); err != nil {
			return err
		}
		return o.hintForce(e.Records.Documents.DeleteNamespaces(ctx, namespaces, metalk8s.DeleteOptions{Timeout: o.Timeout, NoWait: o.NoWait}))
	}
	return nil
}

// deleted counts what goes with a namespace: also the volumes of Solutions, which do not make the namespace one in use.
func deleted(namespace string, usage []metalk8s.Use, claims []*unstructured.Unstructured, others []schema.ObjectRef) schema.DeletedNamespace {
	n := schema.DeletedNamespace{Name: namespace}
	for _, claim := range claims {
		if claim.GetNamespace() == namespace {
			n.Volumes++
			n.Bytes += sizeOf(claim)
		}
	}
	for _, use := range usage {
		if use.Namespace == namespace && !use.IsClaim() {
			n.Applications += len(use.Objects)
		}
	}
	for _, ref := range others {
		if ref.Namespace == namespace && ref.Name != "" && !survey.IsSetting(ref) {
			n.Others++
		}
	}
	return n
}

// sizeOf returns the size of the volume of a claim in bytes: the requested one while it has none.
func sizeOf(claim *unstructured.Unstructured) int64 {
	for _, path := range [][]string{{"status", "capacity", "storage"}, {"spec", "resources", "requests", "storage"}} {
		text, found, err := unstructured.NestedString(claim.Object, path...)
		if !found || err != nil {
			continue
		}
		if size, err := resource.ParseQuantity(text); err == nil {
			return size.Value()
		}
	}
	return 0
}

// addDeleted reports what is deleted with namespaces besides the Solutions, and returns the custom resources among it.
func addDeleted(run *plan.Run, usage []metalk8s.Use, others []schema.ObjectRef) (lost []definitions.Instance) {
	for _, use := range usage {
		if use.IsClaim() {
			run.Notice("data is deleted: " + use.String())
			continue
		}
		for _, object := range use.Objects {
			lost = append(lost, definitions.Instance{Kind: use.Kind, Object: object})
			apiVersion, kind := use.Kind.ToAPIVersionAndKind()
			run.Changes = append(run.Changes, schema.Change{
				Action: schema.ActionDelete,
				Object: schema.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: use.Namespace, Name: object.GetName()},
			})
		}
	}
	if len(lost) > 0 {
		run.Notice("custom resources are deleted: " + definitions.CountText(lost))
	}
	for _, ref := range others {
		if ref.Name == "" {
			run.Notice("also deleted: " + survey.OtherText(ref))
			continue
		}
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: ref, Note: "not part of a Solution"})
	}
	return lost
}

// inUse refuses a deletion of objects that the options do not accept.
func (o *DeleteOptions) inUse(usage []metalk8s.Use, others []schema.ObjectRef) error {
	var things []string
	remedy := o.remedy()
	if o.Data != plan.DeleteData && len(usage) > 0 {
		for _, use := range usage {
			things = append(things, use.String())
		}
		remedy = remedy.With("delete-data").About(things...)
	}
	more := slices.DeleteFunc(slices.Clone(others), func(ref schema.ObjectRef) bool { return survey.IsSetting(ref) || slices.Contains(o.Others, ref) })
	if len(more) > 0 {
		things = append(things, "not part of a Solution:\n  "+report.Some(survey.OtherTexts(more)))
		remedy = remedy.With("delete-others").About(survey.OtherTexts(more)...)
	}
	if len(things) == 0 {
		return nil
	}
	return report.Errorf(report.InUse, "environment %s is in use: %s", o.Environment, strings.Join(things, "; ")).
		WithHint("move away what is still needed; to delete everything: %s", remedy)
}

// remedy returns the command again, with what it accepts so far.
func (o *DeleteOptions) remedy() report.Remedy {
	remedy := report.Run("deploy env delete", o.Environment).In(o.Namespace)
	if o.Data == plan.DeleteData {
		remedy = remedy.With("delete-data")
	}
	if len(o.Others) > 0 {
		remedy = remedy.With("delete-others").About(survey.OtherTexts(o.Others)...)
	}
	return remedy
}

// clearVersions removes the versions of Solutions from the documents of MetalK8s, so that it deploys none again.
func (e *Environments) clearVersions(ctx context.Context, namespaces []metalk8s.Namespace) error {
	for _, n := range namespaces {
		for _, solution := range slices.Sorted(maps.Keys(n.Versions)) {
			err := e.Records.Documents.SetVersion(ctx, n.Name, solution, "")
			if n.Terminating && report.CodeOf(err) == report.Conflict {
				continue // the ConfigMap is gone
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
