package deployer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RollbackOptions say what to take back.
type RollbackOptions struct {
	Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for what was there before
	// AcceptDataLoss, AcceptInvalid and Export are as in [ChangeOptions].
	AcceptDataLoss []string
	AcceptInvalid  []string
	Export         definitions.Export
}

// Rollback brings back the objects of an earlier revision, as they were rendered then: of the one before an operation that
// was not completed, else of the one before the last. Solutions that changed in the same run go back together, unless a
// revision is named. Definitions of custom resources belong to the whole cluster and are not touched; whether they serve the
// earlier version is checked first. After a rollback that was completed it changes nothing, unless a revision is named.
func (d *Deployer) Rollback(ctx context.Context, o RollbackOptions) (*schema.Operation, error) {
	return d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planRollback(ctx, o, namespaces)
	})
}

func (d *Deployer) planRollback(ctx context.Context, o RollbackOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: schema.VerbRollback, Solution: o.Solution, Environment: o.Environment}, export: o.Export}
	there, err := d.installed(ctx, o.Solution, namespaces)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, notThere(o.Solution, o.Environment, namespaces)
	}
	var list []retreat
	for _, i := range there {
		var some []retreat
		if some, err = d.retreats(ctx, t, catalog, i, o.Revision); err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	t.Version = list[0].release.Version
	if err = d.checkRetreats(ctx, t, catalog, list, definitions.Accepted{Loss: o.AcceptDataLoss, Invalid: o.AcceptInvalid}); err != nil {
		return nil, err
	}
	releases := make([]engine.Release, len(list))
	var parts []engine.Release
	for i, r := range list {
		releases[i], parts = r.release, append(parts, r.parts...)
		t.records = append(t.records, records.EntryChange(r.Name, metalk8s.EnvironmentConfigMap, "data."+r.release.Name, r.Versions[r.release.Name], r.release.Version)...)
	}
	if t.plans, err = d.Records.Engine.PlanAll(ctx, append(releases, parts...), o.plan()); err != nil {
		return nil, err
	}
	var judge []judged
	for _, r := range list {
		judge = append(judge, judged{key: r.release.Key, payload: r.payload, archive: r.imported.Archive.SHA256, ran: r.ran})
	}
	if err = d.judgePowers(ctx, t, o.Options, judge...); err != nil {
		return nil, err
	}
	if err = noteComponents(t.plans); err != nil {
		return nil, err
	}
	t.before = func(ctx context.Context) error {
		for _, r := range list {
			if err := d.Records.Documents.SetVersion(ctx, r.Name, r.release.Name, r.release.Version); err != nil {
				return err
			}
		}
		return nil
	}
	return t, nil
}

// retreat is an earlier release on its way back into a namespace.
type retreat struct {
	metalk8s.Namespace
	release  engine.Release
	parts    []engine.Release // its components
	imported schema.Import
	payload  *render.Payload
	ran      bool // it was deployed here completely
}

// retreats returns that of a Solution in a namespace, and those of all that changed in the same run as it did.
func (d *Deployer) retreats(ctx context.Context, t *task, catalog *records.Catalog, i installation, number int64) ([]retreat, error) {
	installations := []installation{i}
	if number == 0 {
		companions, err := d.companions(ctx, i)
		if err != nil {
			return nil, err
		}
		installations = append(installations, companions...)
	}
	list := make([]retreat, len(installations))
	together := make([]schema.SolutionAt, len(installations))
	for at, one := range installations {
		var err error
		if list[at], err = d.retreat(ctx, t, catalog, one, number); err != nil {
			return nil, err
		}
		together[at] = schema.SolutionAt{Solution: list[at].release.Name, Version: list[at].release.Version}
	}
	for at := range list {
		list[at].release.Together = slices.Delete(slices.Clone(together), at, at+1)
	}
	return list, nil
}

// companions are the Solutions of the namespace that go back with this one: those that changed in the run that is taken back.
// One that the run did not come to, because it was interrupted, stays as it is.
func (d *Deployer) companions(ctx context.Context, i installation) ([]installation, error) {
	last := cmp.Or(i.state.Pending, i.state.Current)
	if last == nil {
		return nil, nil
	}
	var list []installation
	for _, at := range last.Together {
		there, err := d.installed(ctx, at.Solution, []metalk8s.Namespace{i.Namespace})
		if err != nil {
			return nil, err
		}
		for _, other := range there {
			begun := other.state.Pending != nil
			changed := other.state.Current != nil && other.state.Current.Version == at.Version && last.Operation != schema.VerbRollback
			if begun || changed || last == i.state.Pending && last.Operation == schema.VerbRollback {
				list = append(list, other)
			}
		}
	}
	return list, nil
}

// retreat is the earlier revision of one Solution.
func (d *Deployer) retreat(ctx context.Context, t *task, catalog *records.Catalog, i installation, number int64) (retreat, error) {
	r := retreat{Namespace: i.Namespace, release: engine.Release{Key: i.state.Key, Operation: t.Operation.Operation, Back: true}}
	revision, err := i.earlier(number)
	if err != nil {
		return r, err
	}
	found, _, err := catalog.Find(i.state.Name, revision.Version)
	if err != nil {
		return r, err
	}
	r.imported = found
	if r.payload, err = d.Records.Payload(ctx, found); err != nil {
		return r, err
	}
	r.release.Version, r.release.Settings = revision.Version, revision.Settings
	what := ""
	if i.state.Name != t.Solution {
		what = "Solution " + i.state.Name + " in "
	}
	if revision == i.state.Current && i.state.Pending == nil {
		t.notice(fmt.Sprintf("%snamespace %s was rolled back to version %s already; --revision goes to another", what, i.Name, revision.Version))
	} else {
		t.notice(fmt.Sprintf("%snamespace %s goes back to revision %d: %s %s", what, i.Name, revision.Number, revision.Operation, revision.Version))
	}
	content, err := d.Records.Engine.Content(ctx, i.state.Key, revision)
	if report.CodeOf(err) == report.Corrupt {
		err = report.Errorf(report.Corrupt, "%w", err).WithHint("or go there without it: %s", records.ChangeTo(i.Environment, i.version, found))
	}
	if err != nil {
		return r, err
	}
	r.ran = revision.Outcome == schema.DeploymentDone
	r.release.Objects, r.release.Tasks = content.Objects, content.Tasks
	r.parts, err = d.componentsOf(ctx, i.state, revision, r.payload, &r.release)
	return r, err
}

// componentsOf are the components of an earlier revision, as they were then. Those that came later are removed.
func (d *Deployer) componentsOf(ctx context.Context, state *engine.State, revision *schema.DeploymentRevision, p *render.Payload, main *engine.Release) ([]engine.Release, error) {
	var parts []engine.Release
	graph, err := components.New(p.Solution, p.Parts()...)
	if err != nil {
		return nil, err
	}
	for _, node := range graph.Nodes() {
		at := slices.IndexFunc(revision.Components, func(c schema.ComponentRevision) bool { return node.Component != nil && c.Name == node.Name })
		if at < 0 {
			continue
		}
		part, err := partOf(main, node)
		if err != nil {
			return nil, err
		}
		then := &schema.DeploymentRevision{Number: revision.Number, Content: revision.Components[at].Content}
		content, err := d.Records.Engine.Content(ctx, part.Key, then)
		if err != nil {
			return nil, err
		}
		part.Objects, part.Tasks, part.Memory, part.Stay = content.Objects, content.Tasks, content.Memory, render.Staying(content.Objects)
		parts = append(parts, part)
		main.Closes = append(main.Closes, part.Key)
	}
	gone, err := d.unselected(ctx, state, parts, main)
	return append(parts, gone...), err
}

// checkRetreats refuses to go back to versions that the cluster's definitions, custom resources or other Solutions are past.
func (d *Deployer) checkRetreats(ctx context.Context, t *task, catalog *records.Catalog, list []retreat, a definitions.Accepted) error {
	var payloads []*render.Payload
	var imports []schema.Import
	for _, r := range list {
		payloads, imports = append(payloads, r.payload), append(imports, r.imported)
	}
	if err := d.checkImages(ctx, t, imports...); report.CodeOf(err) == report.Refused {
		t.notice(err.Error()) // nodes that ran the version have its images, and what is there now may do harm
	} else if err != nil {
		return err
	}
	if err := a.CheckAll(payloads...); err != nil {
		return err
	}
	for _, r := range list {
		if err := d.checkKubernetes(ctx, r.payload); err != nil {
			return err
		}
		if err := d.checkActive(ctx, r.payload); err != nil {
			return err
		}
		notices, exported, err := d.Definitions.JudgeInstances(ctx, r.payload, []metalk8s.Namespace{r.Namespace}, a)
		if err != nil {
			return err
		}
		t.notice(notices...)
		t.exported = append(t.exported, exported...)
	}
	return d.checkDependencies(ctx, catalog, func(h dependencies.Holdings) {
		for _, r := range list {
			dependencies.Put(r.release.Name, r.release.Version, r.Namespace)(h)
		}
	})
}

// earlier returns the revision to go back to.
func (i *installation) earlier(number int64) (*schema.DeploymentRevision, error) {
	current, pending := i.state.Current, i.state.Pending
	if pending != nil && pending.Operation == schema.VerbRollback && number == 0 {
		return pending, nil // an earlier rollback was not completed
	}
	if pending == nil && current != nil && current.Operation == schema.VerbRollback && number == 0 {
		return current, nil // it was completed: the same command again must not go back and forth
	}
	if pending != nil && current != nil && current.Version != "" && (number == 0 || number == current.Number) {
		return current, nil
	}
	for at := range i.state.History {
		old := &i.state.History[at]
		complete := old.Outcome == schema.DeploymentDone && old.Version != ""
		if number == 0 && complete && (current == nil || old.Content != current.Content || !slices.Equal(old.Components, current.Components)) || number == old.Number && old.Version != "" {
			return old, nil
		}
	}
	if number != 0 {
		return nil, report.Errorf(report.NotFound, "there is no revision %d of Solution %s in namespace %s to go back to", number, i.state.Name, i.Name).
			WithHint("see: %s", report.Run("deploy history", i.Environment, i.state.Name))
	}
	return nil, report.Errorf(report.Refused, "there is nothing before what is in namespace %s of Solution %s", i.Name, i.state.Name).
		WithHint("see: %s", report.Run("deploy history", i.Environment, i.state.Name))
}
