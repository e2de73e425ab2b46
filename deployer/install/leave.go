package install

import (
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// sort puts each Solution before those that it needs.
func (p *UninstallPlan) sort(ctx context.Context) error {
	if len(p.leaving) < 2 {
		return nil
	}
	catalog, err := p.installer.Deployer.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	var list []schema.SolutionAt
	of := map[string]*leaving{}
	for _, l := range p.leaving {
		version := l.active
		if len(l.here) > 0 {
			version = l.here[0].Version
		}
		list = append(list, schema.SolutionAt{Solution: l.solution, Version: version})
		of[l.solution] = l
	}
	p.leaving = p.leaving[:0:0]
	for _, at := range slices.Backward(dependencies.InOrder(catalog, list, schema.ScopeEnvironment)) {
		p.leaving = append(p.leaving, of[at.Solution])
	}
	return nil
}

// before names the Solutions that leave before one.
func (p *UninstallPlan) before(l *leaving) (names []string) {
	for _, other := range p.leaving[:slices.Index(p.leaving, l)] {
		names = append(names, other.solution)
	}
	return names
}

func (p *UninstallPlan) export(name string) definitions.Export {
	if p.o.Export == nil {
		return nil
	}
	return p.o.Export(name)
}

// request returns a verb on a Solution that leaves after those that need it; export names the file with its custom resources.
func (p *UninstallPlan) request(verb string, l *leaving, export string) deployer.Request {
	return deployer.Request{
		Verb: verb, Options: p.o.Deploy, Solution: l.solution, Data: p.o.Data, Losses: definitions.Losses{Export: p.export(export)}, Going: p.before(l),
	}
}

// planRemoval plans to remove the Solutions from the environment.
func (p *UninstallPlan) planRemoval(ctx context.Context) error {
	for _, l := range p.leaving {
		r := p.request(schema.VerbRemove, l, l.solution+"-"+p.Environment)
		r.Environment = p.Environment
		step := schema.InstallStep{Step: "remove", Name: l.solution, Note: "from environment " + p.Environment}
		if err := p.operate(ctx, r, step, report.NotFound); err != nil {
			return err
		}
	}
	return nil
}

// operate adds the step of an operation. It is done if nothing is left to do for it, or if the plan of it fails with one of the codes.
func (p *UninstallPlan) operate(ctx context.Context, r deployer.Request, step schema.InstallStep, absent ...report.Code) error {
	dry := r
	dry.DryRun = true
	planned, err := p.installer.Deployer.Perform(ctx, dry)
	if err != nil && !slices.Contains(absent, report.CodeOf(err)) {
		return err
	}
	done := err != nil || planned.Empty()
	if !done {
		p.note(planned.Notices...)
	}
	step.State = stateOf(done)
	p.add(step, func(ctx context.Context) error { return p.noting(p.installer.Deployer.Perform(ctx, r)) })
	return nil
}

// noting takes the notices of an operation.
func (p *UninstallPlan) noting(done *schema.Operation, err error) error {
	if done != nil {
		p.note(done.Notices...)
	}
	return err
}

// planEnvironment plans to delete the environment, if that was asked for. What would refuse that is found before anything is removed.
func (p *UninstallPlan) planEnvironment(ctx context.Context) error {
	d := p.installer.Deployer
	namespaces, err := d.Records.Namespaces(ctx, p.Environment, "")
	exists := err == nil
	if !exists && report.CodeOf(err) != report.NotFound {
		return err
	}
	if !p.o.DeleteEnvironment {
		p.keepsEnvironment = exists
		return nil
	}
	if exists {
		states, err := d.Records.StatesIn(ctx, namespaces)
		if err != nil {
			return err
		}
		for _, s := range states {
			if _, deployed := records.DeployedVersion(s); deployed && !slices.ContainsFunc(p.leaving, func(l *leaving) bool { return l.solution == s.Name }) {
				return report.Errorf(report.InUse, "environment %s has Solution %s as well", p.Environment, s.Name).
					WithHint("name it, too, or leave the environment: without --delete-env")
			}
		}
		others, err := d.Survey.Others(ctx, survey.OthersOptions{Environment: p.Environment})
		if err != nil {
			return err
		}
		if len(others) > 0 {
			var names []string
			for _, other := range others {
				names = append(names, other.String())
			}
			return report.Errorf(report.InUse, "environment %s has objects that are not part of a Solution: %s", p.Environment, strings.Join(names, ", ")).
				WithHint("run it without --delete-env, then '%s'", report.Run("deploy env delete", p.Environment).With("delete-others"))
		}
	}
	p.add(schema.InstallStep{Step: "delete", Name: "environment " + p.Environment, State: stateOf(!exists)}, func(ctx context.Context) error {
		return p.noting(d.DeleteEnvironment(ctx, environments.DeleteOptions{
			Options: p.o.Deploy, Environment: p.Environment, Data: p.o.Data, Export: p.export(p.Environment),
		}))
	})
	return nil
}

// deadAPI returns an aggregated API that deactivation removes and whose server does not answer, such as "APIService v1.example.com", and ""
// for none. While there is one, the API server cannot list what a namespace contains, and never completes its deletion.
func (p *UninstallPlan) deadAPI(ctx context.Context) (string, error) {
	if !p.o.DeleteEnvironment {
		return "", nil
	}
	states, err := p.installer.Deployer.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return "", err
	}
	recorded := map[string]bool{}
	for _, l := range p.leaving {
		for _, s := range states {
			for _, o := range records.ObjectsOf(s) {
				if s.Name == l.solution && !l.stays() && o.Kind == "APIService" {
					recorded["APIService "+o.Name] = true
				}
			}
		}
	}
	if len(recorded) == 0 {
		return "", nil
	}
	dead, err := health.DeadAPIs(ctx, p.installer.Deployer.Cluster)
	for _, api := range dead {
		if recorded[api.Object] {
			return api.Object, err
		}
	}
	return "", err
}

// stays reports whether another environment has the Solution.
func (l *leaving) stays() bool { return len(l.others) > 0 }

// planDeactivation plans to deactivate the Solutions that no other environment has.
func (p *UninstallPlan) planDeactivation(ctx context.Context) error {
	for _, l := range p.leaving {
		if l.stays() {
			p.note("Solution " + l.solution + " stays active and imported: it is in " + l.others[0].String())
			continue
		}
		if l.version != "" && l.active != "" && l.active != l.version {
			continue
		}
		r := p.request(schema.VerbDeactivate, l, l.solution)
		r.Leaves = p.Environment
		step := schema.InstallStep{Step: "deactivate", Name: l.solution}
		if err := p.operate(ctx, r, step, report.NotFound, report.NotImported); err != nil {
			return err
		}
	}
	return nil
}

// planUnimport plans to remove the versions from the cluster's catalogue and from the store of this host.
func (p *UninstallPlan) planUnimport(context.Context) error {
	for _, l := range p.leaving {
		if l.stays() {
			continue
		}
		for _, version := range l.versions {
			p.add(schema.InstallStep{Step: "unimport", Name: l.solution + "-" + version, State: schema.StepPlanned}, func(ctx context.Context) error {
				done, err := p.installer.Host.Unimport(ctx, host.UnimportOptions{Archive: l.solution, Version: version})
				if done != nil {
					p.note(done.Notices...)
				}
				return err
			})
		}
		if len(l.versions) == 0 {
			p.add(schema.InstallStep{Step: "unimport", Name: l.solution, State: schema.StepUnchanged}, nil)
		}
	}
	return nil
}
