package plan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Deactivation reports how r.Solution is deactivated.
type Deactivation struct {
	Data DataPolicy // KeepData keeps the CustomResourceDefinitions and every custom resource
	// Resumed allows to deactivate a Solution that environments have: an interrupted run was allowed to.
	Resumed bool
	// Leaves is an environment that the Solution leaves before.
	Leaves string
	// Later are the other activations of the run that this is a part of; version "" is a deactivation.
	Later []schema.SolutionAt
}

// deactivation is one on its way to a plan.
type deactivation struct {
	Deactivation
	*Run
	crds      []*unstructured.Unstructured
	protected bool
}

// Deactivate plans to remove the cluster-wide part of r.Solution.
func (r *Run) Deactivate(ctx context.Context, o Deactivation) (err error) {
	d := &deactivation{Deactivation: o, Run: r}
	if r.Version, err = r.Records.Active(ctx, r.Solution); err != nil {
		return err
	}
	if d.crds, err = r.Definitions.Of(ctx, r.Catalog, r.Solution); err != nil {
		return err
	}
	state, err := r.Records.Engine.State(ctx, record.Key{Name: r.Solution})
	if err != nil {
		return err
	}
	if r.Version == "" && state.Current == nil && state.Pending == nil {
		if len(r.Catalog.Of(r.Solution)) == 0 {
			_, _, err = r.Catalog.Find(r.Solution, "")
			return err
		}
		r.Notice("Solution " + r.Solution + " is not active")
		return nil
	}
	d.protected = definitions.IsProtected(state)
	if err = r.CheckDependencies(ctx, dependencies.Activate(o.Later, schema.SolutionAt{Solution: r.Solution})); err != nil {
		return err
	}
	if err = d.check(ctx); err != nil {
		return err
	}
	parts, err := r.componentStates(ctx, state)
	if err != nil {
		return err
	}
	if err = d.checkUnused(ctx, parts); err != nil {
		return err
	}
	releases := Removals(append([]*record.State{state}, parts...), r.Operation.Operation)
	if o.Data != KeepData {
		for _, object := range d.crds {
			releases[0].Delete = append(releases[0].Delete, definitions.Ref(object.GetName()))
		}
	}
	if err = r.Plan(ctx, releases...); err != nil {
		return err
	}
	r.Notice(keptNotices(r.Plans[0])...)
	if r.Changes, r.After, err = r.Records.SetActive(ctx, r.Solution, ""); err != nil {
		return err
	}
	if err := r.prepareDefinitions(ctx, r.Plans[0], nil); err != nil {
		return err
	}
	d.planEmptying()
	return nil
}

// planEmptying plans what becomes of custom resources before the definitions go, or that both stay.
func (d *deactivation) planEmptying() {
	prepare := d.Before
	d.Before = func(ctx context.Context) error {
		if err := prepare(ctx); err != nil {
			return err
		}
		if err := d.empty(ctx); err != nil || d.Data == KeepData || !d.protected {
			return err
		}
		return d.Definitions.AllowDeletion(ctx, d.crds)
	}
	if d.Data == KeepData && d.protected {
		d.Notice("the definitions are kept, and no longer protected from deletion")
	}
	if d.Data != KeepData && d.protected {
		d.Needs = append(d.Needs, cluster.Permission{Verb: "update", Group: cluster.DefinitionKind.Group, Resource: "customresourcedefinitions"})
	}
	if d.Data == DeleteData {
		for _, object := range d.crds {
			d.Needs = append(d.Needs, definitions.OnObjects(object, "list", "get", "delete", "watch")...)
		}
	}
}

// users lists where the Solution stays deployed.
func (d *deactivation) users(ctx context.Context) ([]records.Deployment, error) {
	deployed, err := d.Records.Deployments(ctx, d.Solution)
	return slices.DeleteFunc(deployed, func(there records.Deployment) bool {
		return d.Leaves != "" && there.Environment == d.Leaves
	}), err
}

// checkUnused refuses to take components of the cluster away while environments have the Solution, which may need them.
func (d *deactivation) checkUnused(ctx context.Context, parts []*record.State) error {
	if len(parts) == 0 {
		return nil
	}
	users, err := d.users(ctx)
	if err != nil || len(users) == 0 {
		return err
	}
	return report.Errorf(report.InUse, "component %s of %s lives in the cluster, and %s has the Solution", parts[0].Component, d.Solution, users[0]).
		WithHint("%s", report.Run("deploy remove", users[0].Environment, d.Solution))
}

// empty makes sure that deleting the definitions deletes nothing else: custom resources are exported and deleted if the user wants that.
func (d *deactivation) empty(ctx context.Context) error {
	if d.Data == KeepData {
		return nil
	}
	if d.Data == DeleteData {
		list, err := d.Definitions.Instances(ctx, d.crds, "")
		if err != nil {
			return err
		}
		if err := d.Definitions.DeleteInstances(ctx, list, d.Export, d.Timeout); err != nil {
			return err
		}
	}
	left, err := d.Definitions.Instances(ctx, d.crds, "")
	if err == nil && len(left) > 0 {
		err = report.Errorf(report.Conflict, "custom resources were created at the same time: %s", definitions.CountText(left)).WithHint("run the command again")
	}
	return err
}

// check judges what would go with the definitions.
func (d *deactivation) check(ctx context.Context) error {
	if d.Data == KeepData {
		return nil
	}
	list, err := d.Definitions.Instances(ctx, d.crds, "")
	if err != nil {
		return err
	}
	counts, err := d.countByEnvironment(ctx, list)
	if err != nil {
		return err
	}
	if len(list) > 0 && d.Data == RefuseData {
		return report.Errorf(report.DataLoss, "deactivating Solution %s would delete every custom resource of it: %s",
			d.Solution, strings.Join(counts, "; ")).
			WithHint("%s keeps the definitions and the data, %s exports and deletes it", report.Accept("keep-crds"), report.Accept("delete-data").About(counts...))
	}
	if len(list) > 0 {
		d.data = definitions.Data(d.crds, list, schema.DataDeleted)
		d.Notice("custom resources are deleted: " + strings.Join(counts, "; "))
	}
	deployed, err := d.users(ctx)
	if err != nil || len(deployed) == 0 {
		return err
	}
	var users []string
	for _, there := range deployed {
		users = append(users, there.String())
	}
	text := strings.Join(slices.Compact(users), ", ")
	if d.Data == RefuseData && !d.Resumed {
		return report.Errorf(report.InUse, "Solution %s is deployed: %s", d.Solution, text).
			WithHint("remove it there first ('%s'), or keep the definitions with %s", report.Run("deploy remove", "ENVIRONMENT", d.Solution), report.Accept("keep-crds"))
	}
	d.Notice("operators are left without their definitions: " + text)
	return nil
}

// countByEnvironment counts custom resources for each environment they are in.
func (p *Planner) countByEnvironment(ctx context.Context, list []definitions.Instance) ([]string, error) {
	environments, err := p.Records.Documents.Environments(ctx)
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
