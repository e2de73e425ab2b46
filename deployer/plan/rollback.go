package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RollBack plans to bring back an earlier revision of r.Solution, with the Solutions that changed in the same run; 0 stands for the one
// before.
func (r *Run) RollBack(ctx context.Context, revision int64) error {
	there, err := r.deployed(ctx, r.Solution)
	if err != nil {
		return err
	}
	var list []downgrade
	for _, i := range there {
		some, failure := r.downgrades(ctx, i, revision)
		if failure != nil {
			return failure
		}
		list = append(list, some...)
	}
	r.Version = list[0].release.Version
	if err = r.checkDowngrades(ctx, list); err != nil {
		return err
	}
	releases := make([]engine.Release, len(list))
	var parts []engine.Release
	var judge []judged
	for i, d := range list {
		releases[i], parts = d.release, append(parts, d.parts...)
		r.Changes = append(r.Changes, records.EntryChange(d.Name, metalk8s.EnvironmentConfigMap, "data."+d.release.Name, d.Versions[d.release.Name], d.release.Version)...)
		judge = append(judge, judged{key: d.release.Key, payload: d.payload, archive: d.imported.Archive.SHA256, consent: consentOf(r.Options, Rendering{}), ran: d.ran})
	}
	if err = r.Plan(ctx, append(releases, parts...)...); err != nil {
		return err
	}
	if err = r.judgePowers(ctx, judge...); err != nil {
		return err
	}
	r.Before = func(ctx context.Context) error {
		earlier := entries{}
		for _, d := range list {
			earlier.add(d.release.Name, d.release.Version, []metalk8s.Namespace{d.Namespace})
		}
		return r.setVersions(ctx, earlier)
	}
	return recordComponents(r.Plans)
}

// downgrade is an earlier release that a namespace gets back.
type downgrade struct {
	metalk8s.Namespace
	release  engine.Release
	parts    []engine.Release // its components
	imported schema.Import
	payload  *render.Payload
	ran      bool // it was deployed here completely, without objects whose kind the cluster lacked, and not removed since
}

// downgrades returns that of a Solution in a namespace, and those of all that changed in the same run as it did.
func (r *Run) downgrades(ctx context.Context, i Installation, number int64) ([]downgrade, error) {
	installations := []Installation{i}
	if number == 0 {
		companions, err := r.companions(ctx, i)
		if err != nil {
			return nil, err
		}
		installations = append(installations, companions...)
	}
	list := make([]downgrade, len(installations))
	together := make([]schema.SolutionAt, len(installations))
	for at, one := range installations {
		var err error
		if list[at], err = r.downgrade(ctx, one, number); err != nil {
			return nil, err
		}
		together[at] = schema.SolutionAt{Solution: list[at].release.Name, Version: list[at].release.Version}
	}
	for at := range list {
		list[at].release.Together = slices.Delete(slices.Clone(together), at, at+1)
	}
	return list, nil
}

// companions returns the Solutions of the namespace that go back with this one: those that the run to take back has changed. One that the
// run had not changed yet when it was interrupted stays as it is.
func (p *Planner) companions(ctx context.Context, i Installation) ([]Installation, error) {
	last := LastRevision(i.State)
	if last == nil {
		return nil, nil
	}
	var list []Installation
	for _, at := range last.Together {
		there, err := p.Installed(ctx, at.Solution, []metalk8s.Namespace{i.Namespace})
		if err != nil {
			return nil, err
		}
		for _, other := range there {
			begun := other.State.Pending != nil
			changed := other.State.Current != nil && other.State.Current.Version == at.Version && last.Operation != schema.VerbRollback
			if begun || changed || last == i.State.Pending && last.Operation == schema.VerbRollback {
				list = append(list, other)
			}
		}
	}
	return list, nil
}

// downgrade returns the earlier revision of one Solution.
func (r *Run) downgrade(ctx context.Context, i Installation, number int64) (downgrade, error) {
	d := downgrade{Namespace: i.Namespace, release: engine.Release{
		Key: i.State.Key, Operation: r.Operation.Operation, Back: true, Confined: i.Name != "",
	}}
	revision, err := i.earlier(number)
	if err != nil {
		return d, err
	}
	if d.imported, _, err = r.Catalog.Find(i.State.Name, revision.Version); err != nil {
		return d, err
	}
	if d.payload, err = r.Records.Payload(ctx, d.imported); err != nil {
		return d, err
	}
	d.release.Version, d.release.Settings = revision.Version, revision.Settings
	what := ""
	if i.State.Name != r.Solution {
		what = "Solution " + i.State.Name + " in "
	}
	if revision == i.State.Current && i.State.Pending == nil {
		r.Notice(fmt.Sprintf("%snamespace %s was rolled back to version %s already; --revision goes to another", what, i.Name, revision.Version))
	} else {
		r.Notice(fmt.Sprintf("%snamespace %s goes back to revision %d: %s %s", what, i.Name, revision.Number, revision.Operation, revision.Version))
	}
	content, err := r.Records.Engine.Content(ctx, i.State.Key, revision)
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("or go there without it: %s", records.ChangeTo(i.Environment, i.Version, d.imported).In(r.only))
	}
	if err != nil {
		return d, err
	}
	d.ran = revision.Outcome == schema.DeploymentDone && len(revision.Waiting) == 0 && !removedSince(i.State, revision)
	d.release.Objects, d.release.Tasks = content.Objects, content.Tasks
	return d, r.addComponents(ctx, &d, i.State, revision)
}

// removedSince reports whether a Solution was removed after a revision, which ended its approvals.
func removedSince(state *record.State, revision *schema.DeploymentRevision) bool {
	return slices.ContainsFunc(state.Revisions(), func(r *schema.DeploymentRevision) bool {
		return r.Version == "" && r.Outcome == schema.DeploymentDone && r.Number > revision.Number
	})
}

// addComponents adds the components of an earlier revision, as they were then. Those that came later are removed.
func (p *Planner) addComponents(ctx context.Context, d *downgrade, state *record.State, revision *schema.DeploymentRevision) error {
	graph, err := components.New(d.payload.Solution, d.payload.Parts()...)
	if err != nil {
		return err
	}
	for _, node := range graph.Nodes() {
		at := slices.IndexFunc(revision.Components, func(c schema.ComponentRevision) bool { return node.Component != nil && c.Name == node.Name })
		if at < 0 {
			continue
		}
		part, failure := PartOf(&d.release, node)
		if failure != nil {
			return failure
		}
		then := &schema.DeploymentRevision{Number: revision.Number, Content: revision.Components[at].Content}
		content, failure := p.Records.Engine.Content(ctx, part.Key, then)
		if failure != nil {
			return failure
		}
		part.Objects, part.Tasks, part.GeneratedValues, part.Stay = content.Objects, content.Tasks, content.GeneratedValues, render.Staying(content.Objects)
		own, failure := p.Records.Engine.State(ctx, part.Key)
		if failure != nil {
			return failure
		}
		d.ran = d.ran && !slices.ContainsFunc(own.Revisions(), func(r *schema.DeploymentRevision) bool { return r.Content == then.Content && len(r.Waiting) > 0 })
		d.parts = append(d.parts, part)
		d.release.Parts = append(d.release.Parts, part.Key)
	}
	gone, err := p.unselected(ctx, state, d.parts, &d.release)
	d.parts = append(d.parts, gone...)
	return err
}

// checkDowngrades refuses to go back to versions that do not go with the cluster's CustomResourceDefinitions, custom resources or other
// Solutions.
func (r *Run) checkDowngrades(ctx context.Context, list []downgrade) error {
	var payloads []*render.Payload
	var imports []schema.Import
	for _, d := range list {
		payloads, imports = append(payloads, d.payload), append(imports, d.imported)
	}
	if err := r.checkImages(ctx, imports...); report.CodeOf(err) == report.Refused {
		r.Notice(err.Error()) // the images are on nodes that ran the version, and the present version may do harm
	} else if err != nil {
		return err
	}
	if err := r.CheckLossesIn(payloads...); err != nil {
		return err
	}
	for _, d := range list {
		if err := r.checkKubernetes(ctx, d.payload); err != nil {
			return err
		}
		if err := r.checkActive(ctx, d.payload); err != nil {
			return err
		}
		if err := r.judgeInstances(ctx, d.payload, []metalk8s.Namespace{d.Namespace}); err != nil {
			return err
		}
	}
	return r.CheckDependencies(ctx, func(h dependencies.Holdings) {
		for _, d := range list {
			dependencies.Put(d.release.Name, d.release.Version, d.Namespace)(h)
		}
	})
}

// earlier returns the revision to go back to.
func (i *Installation) earlier(number int64) (*schema.DeploymentRevision, error) {
	current, pending := i.State.Current, i.State.Pending
	if pending != nil && pending.Operation == schema.VerbRollback && number == 0 {
		return pending, nil // an earlier rollback was not completed
	}
	if pending == nil && current != nil && current.Operation == schema.VerbRollback && number == 0 {
		return current, nil // it was completed: the same command again must not go back and forth
	}
	if pending != nil && current != nil && current.Version != "" && (number == 0 || number == current.Number) {
		return current, nil
	}
	for at := range i.State.History {
		old := &i.State.History[at]
		complete := old.Outcome == schema.DeploymentDone && old.Version != ""
		if number == 0 && complete && (current == nil || old.Content != current.Content || !slices.Equal(old.Components, current.Components)) || number == old.Number && old.Version != "" {
			return old, nil
		}
	}
	if number != 0 {
		return nil, report.Errorf(report.NotFound, "there is no revision %d of Solution %s in namespace %s to go back to", number, i.State.Name, i.Name).
			WithHint("see: %s", report.Run("deploy history", i.Environment, i.State.Name))
	}
	return nil, report.Errorf(report.Refused, "there is nothing before what is in namespace %s of Solution %s", i.Name, i.State.Name).
		WithHint("see: %s", report.Run("deploy history", i.Environment, i.State.Name))
}
