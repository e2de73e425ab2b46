package deployer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DeactivateOptions say what to deactivate.
type DeactivateOptions struct {
	Options
	Solution string
	Data     DataPolicy         // KeepData keeps the definitions and every custom resource
	Export   definitions.Export // where custom resources go before they are deleted

	begun bool                // by somebody who was told who has the Solution, and whose data was to go
	later []schema.SolutionAt // what else becomes active, or with the version "" no longer is, in the run that this is a part of
}

// Deactivate removes the cluster-wide part of a Solution. Deleting a CustomResourceDefinition deletes every object of its
// kind, so it is refused while there are any, or while an environment has the Solution, unless the definitions are kept or
// the data is to go.
func (d *Deployer) Deactivate(ctx context.Context, o DeactivateOptions) (*schema.Operation, error) {
	return d.perform(ctx, o.Options, []string{clusterLock}, func(ctx context.Context) (*task, error) { return d.planDeactivation(ctx, o) })
}

func (d *Deployer) planDeactivation(ctx context.Context, o DeactivateOptions) (*task, error) {
	t := &task{Operation: schema.Operation{Operation: schema.VerbDeactivate, Solution: o.Solution}}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if t.Version, err = d.Records.Active(ctx, o.Solution); err != nil {
		return nil, err
	}
	crds, err := d.Definitions.Of(ctx, catalog, o.Solution)
	if err != nil {
		return nil, err
	}
	state, err := d.Records.Engine.State(ctx, engine.Key{Name: o.Solution})
	if err != nil {
		return nil, err
	}
	if t.Version == "" && state.Current == nil && state.Pending == nil {
		if len(catalog.Of(o.Solution)) == 0 {
			_, _, err = catalog.Find(o.Solution, "")
			return nil, err
		}
		t.notice("Solution " + o.Solution + " is not active")
		return t, nil
	}
	if err = d.checkDependencies(ctx, catalog, dependencies.Activate(o.later, schema.SolutionAt{Solution: o.Solution})); err != nil {
		return nil, err
	}
	if err = d.checkDeactivation(ctx, t, o, crds); err != nil {
		return nil, err
	}
	parts, err := d.componentStates(ctx, state)
	if err != nil {
		return nil, err
	}
	if err = d.checkUnused(ctx, o.Solution, parts); err != nil {
		return nil, err
	}
	releases := removals(append([]*engine.State{state}, parts...), t.Operation.Operation)
	if o.Data != KeepData {
		for _, object := range crds {
			releases[0].Delete = append(releases[0].Delete, definitions.Ref(object.GetName()))
		}
	}
	if t.plans, err = d.Records.Engine.PlanAll(ctx, releases, o.plan()); err != nil {
		return nil, err
	}
	plan := t.plans[0]
	t.notice(keptNotices(plan)...)
	if t.records, t.after, err = d.Records.SetActive(ctx, o.Solution, ""); err != nil {
		return nil, err
	}
	if err := d.prepareDefinitions(ctx, t, plan, nil); err != nil {
		return nil, err
	}
	d.planEmptying(t, o, crds, definitions.IsProtected(state))
	return t, nil
}

// planEmptying plans what becomes of custom resources before the definitions go, or that both stay.
func (d *Deployer) planEmptying(t *task, o DeactivateOptions, crds []*unstructured.Unstructured, protected bool) {
	prepare := t.before
	t.before = func(ctx context.Context) error {
		if err := prepare(ctx); err != nil {
			return err
		}
		if err := d.emptyDefinitions(ctx, o, crds); err != nil || o.Data == KeepData || !protected {
			return err
		}
		return d.Definitions.AllowDeletion(ctx, crds)
	}
	if o.Data == KeepData && protected {
		t.notice("the definitions are kept, and no longer protected from deletion")
	}
	if o.Data != KeepData && protected {
		t.needs = append(t.needs, cluster.Permission{Verb: "update", Group: cluster.DefinitionKind.Group, Resource: "customresourcedefinitions"})
	}
	if o.Data == DeleteData {
		for _, object := range crds {
			t.needs = append(t.needs, definitions.OnObjects(object, "list", "get", "delete", "watch")...)
		}
	}
}

// checkUnused refuses to take components of the cluster away while environments have the Solution, which may need them.
func (d *Deployer) checkUnused(ctx context.Context, solution string, parts []*engine.State) error {
	if len(parts) == 0 {
		return nil
	}
	users, err := d.Records.Deployments(ctx, solution)
	if err != nil || len(users) == 0 {
		return err
	}
	return report.Errorf(report.InUse, "component %s of %s lives in the cluster, and %s has the Solution", parts[0].Component, solution, users[0]).
		WithHint("%s", report.Run("deploy remove", users[0].Environment, solution))
}

// emptyDefinitions makes sure that deleting the definitions deletes nothing else: what there is, is exported and deleted if
// that was asked for.
func (d *Deployer) emptyDefinitions(ctx context.Context, o DeactivateOptions, crds []*unstructured.Unstructured) error {
	if o.Data == KeepData {
		return nil
	}
	if o.Data == DeleteData {
		list, err := d.Definitions.Instances(ctx, crds, "")
		if err != nil {
			return err
		}
		if err := d.Definitions.DeleteInstances(ctx, list, o.Export, o.Timeout); err != nil {
			return err
		}
	}
	left, err := d.Definitions.Instances(ctx, crds, "")
	if err == nil && len(left) > 0 {
		err = report.Errorf(report.Conflict, "custom resources were created at the same time: %s", definitions.CountText(left)).WithHint("run the command again")
	}
	return err
}

// checkDeactivation judges what would go with the definitions.
func (d *Deployer) checkDeactivation(ctx context.Context, t *task, o DeactivateOptions, definitions []*unstructured.Unstructured) error {
	if o.Data == KeepData {
		return nil
	}
	list, err := d.Definitions.Instances(ctx, definitions, "")
	if err != nil {
		return err
	}
	counts, err := d.countByEnvironment(ctx, list)
	if err != nil {
		return err
	}
	if len(list) > 0 && o.Data == RefuseData {
		return report.Errorf(report.DataLoss, "deactivating Solution %s would delete every custom resource of it: %s",
			o.Solution, strings.Join(counts, "; ")).
			WithHint("%s keeps the definitions and the data, %s exports and deletes it", report.Accept("keep-crds"), report.Accept("delete-data").About(counts...))
	}
	if len(list) > 0 {
		t.notice("custom resources are deleted: " + strings.Join(counts, "; "))
	}
	deployed, err := d.Records.Deployments(ctx, o.Solution)
	if err != nil || len(deployed) == 0 {
		return err
	}
	var users []string
	for _, there := range deployed {
		users = append(users, there.String())
	}
	text := strings.Join(slices.Compact(users), ", ")
	if o.Data == RefuseData && !o.begun {
		return report.Errorf(report.InUse, "Solution %s is deployed: %s", o.Solution, text).
			WithHint("remove it there first ('%s'), or keep the definitions with %s", report.Run("deploy remove", "ENVIRONMENT", o.Solution), report.Accept("keep-crds"))
	}
	t.notice("operators are left without their definitions: " + text)
	return nil
}

// countByEnvironment counts custom resources for each environment they are in.
func (d *Deployer) countByEnvironment(ctx context.Context, list []definitions.Instance) ([]string, error) {
	environments, err := d.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	of := records.EnvironmentsByNamespace(environments)
	groups := map[string][]definitions.Instance{}
	for _, one := range list {
		namespace := one.Object.GetNamespace()
		switch {
		case namespace == "":
			groups["outside of namespaces"] = append(groups["outside of namespaces"], one)
		case of[namespace] != "":
			place := "in environment " + of[namespace]
			groups[place] = append(groups[place], one)
		default:
			place := "in namespace " + namespace
			groups[place] = append(groups[place], one)
		}
	}
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(groups)) {
		counts = append(counts, definitions.CountText(groups[place])+" "+place)
	}
	return counts, nil
}
