package deployer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// CreateEnvironment creates an environment, or adds a namespace to it.
func (d *Deployer) CreateEnvironment(ctx context.Context, o metalk8s.CreateOptions) (*schema.Operation, error) {
	o, err := o.Check()
	if err != nil {
		return nil, err
	}
	if err = d.Cluster.Require(ctx, rights.Lock()); err != nil {
		return nil, err
	}
	if err = d.Cluster.Require(ctx, rights.CreateNamespace(o.Namespace, o.Adopt)); err != nil {
		return nil, err
	}
	if err = d.checkNobodys(ctx, o.Namespace); err != nil {
		return nil, err
	}
	var result metalk8s.Creation
	err = d.Locked(ctx, func(ctx context.Context) (err error) {
		result, err = d.Records.Documents.CreateEnvironment(ctx, o)
		return err
	}, cluster.LockOf(o.Namespace))
	if err != nil {
		return nil, err
	}
	action := map[metalk8s.Creation]schema.Action{
		metalk8s.Created: schema.ActionCreate, metalk8s.Adopted: schema.ActionAdopt, metalk8s.Changed: schema.ActionUpdate,
	}[result]
	if action == "" {
		action = schema.ActionNone
	}
	return &schema.Operation{
		Operation: "create", Environment: o.Name, Notices: []string{},
		Parts: []schema.OperationPart{{Namespace: o.Namespace, Changes: []schema.Change{{Action: action, Object: namespaceRef(o.Namespace)}}}},
	}, nil
}

// checkNobodys refuses a namespace that belongs to a Solution, with what it has for the whole cluster: who deletes the environment
// would delete that.
func (d *Deployer) checkNobodys(ctx context.Context, namespace string) error {
	refused := func(solution string) error {
		return report.Errorf(report.Refused, "namespace %s is that of Solution %s, for what it has for the whole cluster", namespace, solution).
			WithHint("name another namespace with --namespace")
	}
	live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
	if err != nil {
		return err
	}
	if live != nil && live.GetLabels()[engine.LabelRelease] != "" {
		return refused(live.GetLabels()["app.kubernetes.io/part-of"])
	}
	solution, system := strings.CutSuffix(namespace, render.SystemNamespace(""))
	if !system {
		return nil
	}
	catalog, err := d.Records.Catalog(ctx)
	if err == nil && len(catalog.Of(solution)) > 0 {
		return refused(solution)
	}
	if report.CodeOf(err) == report.Forbidden { // who may not know is stopped by the activation
		return nil
	}
	return err
}

func namespaceRef(name string) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: name}
}

// DeleteEnvironmentOptions say which environment to delete.
type DeleteEnvironmentOptions struct {
	plan.Options
	Environment string
	Namespace   string // the only one of its namespaces to delete; "" stands for all of them
	// Data is RefuseData, which refuses while anything is used, or DeleteData, which removes the Solutions in the namespaces
	// and deletes every custom resource first.
	Data   plan.DataPolicy
	Export definitions.Export // where custom resources go before they are deleted
	// Others may be deleted although they are not part of a Solution: what [survey.Survey.Others] lists. While there is anything else
	// that is not, nothing is done.
	Others []schema.ObjectRef
	// Release are objects whose finalizers are removed, of those that [Deployer.Held] lists. What their operators would have
	// cleaned up stays behind.
	Release []Held
}

// DeleteEnvironment deletes namespaces of an environment. What is used in them is deleted in the order that lets its
// operators serve it: custom resources, then the Solutions with what they have outside of the namespaces, then the
// namespaces. Of a namespace that somebody else has deleted it removes what is left outside of it.
func (d *Deployer) DeleteEnvironment(ctx context.Context, o DeleteEnvironmentOptions) (*schema.Operation, error) {
	run := o.begin(d)
	done, err := run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error { return d.planDeletion(ctx, run, o) })
	if report.CodeOf(err) != report.NotFound {
		return done, err
	}
	namespace := cmp.Or(o.Namespace, o.Environment)
	left, gone, failure := d.leftBehind(ctx, namespace)
	switch {
	case failure != nil || !gone:
		return nil, cmp.Or(failure, err)
	case len(left) == 0: // the command was run before, perhaps by somebody who was interrupted
		if failure = d.discardLock(ctx, o, namespace); failure != nil {
			return nil, failure
		}
		return d.deletedBefore(ctx, o, err)
	}
	run = o.begin(d)
	return run.Do(ctx, func(ctx context.Context) error { return o.planForgetting(ctx, run, left) }, cluster.LockOf(namespace))
}

func (o *DeleteEnvironmentOptions) begin(d *Deployer) *plan.Run {
	run := d.begin(schema.Operation{Operation: schema.VerbDelete, Environment: o.Environment, Namespace: o.Namespace}, o.Options)
	run.Ends = true
	return run
}

// discardLock deletes the Lease of a namespace that is gone, which stays when a deletion was interrupted at its end or did not wait.
func (d *Deployer) discardLock(ctx context.Context, o DeleteEnvironmentOptions, namespace string) error {
	if o.DryRun || len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil
	}
	lease, err := d.Cluster.GetMetadata(ctx, cluster.LeaseKind, cluster.SystemNamespace, cluster.LockOf(namespace))
	if report.CodeOf(err) == report.Forbidden {
		return nil
	}
	if err != nil || lease == nil {
		return err
	}
	return d.Locked(ctx, func(ctx context.Context) error {
		cluster.DiscardLocks(ctx)
		return nil
	}, cluster.LockOf(namespace))
}

// deletedBefore tells that there is nothing to delete, and what is there, in case that it was meant.
func (d *Deployer) deletedBefore(ctx context.Context, o DeleteEnvironmentOptions, why error) (*schema.Operation, error) {
	environments, err := d.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	run := o.begin(d)
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

// leftBehind returns the records of what was in a namespace that is gone.
func (d *Deployer) leftBehind(ctx context.Context, namespace string) (left []*engine.State, gone bool, err error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, true, nil // no namespace ever had this name
	}
	live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
	if err != nil || live != nil {
		return nil, false, err
	}
	left, err = d.Records.StatesIn(ctx, []metalk8s.Namespace{{Name: namespace}})
	return left, true, err
}

// planForgetting plans to remove everything that is on records, and then the records.
func (o *DeleteEnvironmentOptions) planForgetting(ctx context.Context, run *plan.Run, states []*engine.State) error {
	run.After = func(ctx context.Context) error {
		var keys []engine.Key
		for _, s := range states {
			keys = append(keys, s.Key)
		}
		return run.Records.Engine.Forget(ctx, keys...)
	}
	there := slices.DeleteFunc(slices.Clone(states), func(s *engine.State) bool { return s.Pending == nil && len(records.ObjectsOf(s)) == 0 })
	releases := plan.Removals(there, run.Operation.Operation)
	for i, s := range there {
		for _, object := range records.ObjectsOf(s) {
			releases[i].Delete = append(releases[i].Delete, object.ObjectRef)
		}
	}
	return run.Plan(ctx, releases...)
}

func (d *Deployer) planDeletion(ctx context.Context, run *plan.Run, o DeleteEnvironmentOptions) error {
	namespaces := run.Namespaces
	if err := metalk8s.Deletable(namespaces); err != nil {
		return err
	}
	states, err := d.Records.StatesIn(ctx, namespaces)
	if err != nil {
		return err
	}
	usage, err := d.usage(ctx, namespaces, states)
	if err != nil {
		return err
	}
	others, err := d.Survey.OthersIn(ctx, namespaces, states)
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
	lost := noteDeleted(run, usage, others)
	if run.Needs, err = definitions.DeletePermissions(ctx, d.Cluster, lost); err != nil {
		return err
	}
	for _, n := range namespaces {
		if len(n.Versions) > 0 && !n.Terminating {
			run.Needs = append(run.Needs, rights.UpdateDocument(n.Name, metalk8s.EnvironmentConfigMap)...)
		}
	}
	if err = o.planForgetting(ctx, run, states); err != nil {
		return err
	}
	if err = planLettingGo(ctx, run, o.Release); err != nil {
		return err
	}
	forget := run.After
	for _, n := range namespaces {
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: namespaceRef(n.Name)})
	}
	run.Before = func(ctx context.Context) error {
		exported, err := d.Definitions.Export(ctx, lost, o.Export)
		if err != nil {
			return err
		}
		if err := d.letGo(ctx, o.Release); err != nil {
			return err
		}
		if err := d.Definitions.RemoveInstances(ctx, exported, o.Timeout); err != nil {
			return o.orForce(err)
		}
		return d.clearVersions(ctx, namespaces)
	}
	run.After = func(ctx context.Context) error {
		if err := forget(ctx); err != nil {
			return err
		}
		return o.orForce(d.Records.Documents.DeleteNamespaces(ctx, namespaces, metalk8s.DeleteOptions{Timeout: o.Timeout, NoWait: o.NoWait}))
	}
	return nil
}

// noteDeleted tells what goes with namespaces beside the Solutions, and returns the custom resources among it.
func noteDeleted(run *plan.Run, usage []metalk8s.Use, others []schema.ObjectRef) (lost []definitions.Instance) {
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

// inUse refuses what would delete things that nobody has agreed to.
func (o *DeleteEnvironmentOptions) inUse(usage []metalk8s.Use, others []schema.ObjectRef) error {
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
		things = append(things, "not part of a Solution:\n  "+survey.OthersText(more))
		remedy = remedy.With("delete-others").About(otherTexts(more)...)
	}
	if len(things) == 0 {
		return nil
	}
	return report.Errorf(report.InUse, "environment %s is in use: %s", o.Environment, strings.Join(things, "; ")).
		WithHint("move away what is still needed; to delete everything: %s", remedy)
}

// remedy is to give the command once more, as far as it says what is to be deleted.
func (o *DeleteEnvironmentOptions) remedy() report.Remedy {
	remedy := report.Run("deploy env delete", o.Environment)
	if o.Namespace != "" {
		remedy = remedy.With("namespace", o.Namespace)
	}
	if o.Data == plan.DeleteData {
		remedy = remedy.With("delete-data")
	}
	if len(o.Others) > 0 {
		remedy = remedy.With("delete-others").About(otherTexts(o.Others)...)
	}
	return remedy
}

// usage is what MetalK8s' documents, our records and the cluster say is used in namespaces. What a Solution brought itself
// is part of the Solution.
func (d *Deployer) usage(ctx context.Context, namespaces []metalk8s.Namespace, states []*engine.State) ([]metalk8s.Use, error) {
	usage, err := d.Records.Documents.Usage(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	brought := map[string]bool{}
	for _, s := range states {
		for _, object := range records.ObjectsOf(s) {
			if !object.Kept {
				brought[object.UID] = true
			}
		}
	}
	for i := range usage {
		usage[i].Objects = slices.DeleteFunc(usage[i].Objects, func(o *unstructured.Unstructured) bool { return brought[string(o.GetUID())] })
	}
	usage = slices.DeleteFunc(usage, func(u metalk8s.Use) bool { return u.Solution == "" && len(u.Objects) == 0 })
	for _, s := range states {
		version, deployed := records.DeployedVersion(s)
		listed := slices.ContainsFunc(usage, func(u metalk8s.Use) bool { return u.Namespace == s.Namespace && u.Solution == s.Name })
		if deployed && !listed {
			usage = append(usage, metalk8s.Use{Namespace: s.Namespace, Solution: s.Name, Version: version})
		}
	}
	return usage, nil
}

// clearVersions tells MetalK8s that no Solution is to be in the namespaces any more, so that it deploys none again.
func (d *Deployer) clearVersions(ctx context.Context, namespaces []metalk8s.Namespace) error {
	for _, n := range namespaces {
		for _, solution := range slices.Sorted(maps.Keys(n.Versions)) {
			err := d.Records.Documents.SetVersion(ctx, n.Name, solution, "")
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
