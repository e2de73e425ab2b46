package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// planDeployment plans the activation, the environment and what is deployed in it.
func (p *Plan) planDeployment(ctx context.Context) error {
	active, err := p.planActivation(ctx)
	if err != nil {
		return err
	}
	created, err := p.planEnvironment(ctx)
	if err != nil {
		return err
	}
	step := schema.InstallStep{Step: "deploy", Name: p.names(), State: schema.StepPlanned, Note: "in environment " + p.o.Environment}
	if active && created {
		dry := p.ensure()
		dry.DryRun = true
		plan, err := p.installer.Deployer.Ensure(ctx, dry)
		if err != nil {
			return err
		}
		step.State = stateOf(plan.Empty())
		p.Powers = []schema.Power{} // what they can do was judged when they were deployed
		if plan.Empty() {
			err = p.findAddresses(ctx)
		} else {
			err = p.addPowers(ctx, plan)
		}
		if err != nil {
			return err
		}
	}
	p.add(step, func(ctx context.Context) error {
		done, err := p.installer.Deployer.Ensure(ctx, p.ensure())
		if done != nil {
			p.Notices = append(p.Notices, done.Notices...)
		}
		if err != nil {
			return err
		}
		return p.findAddresses(ctx)
	})
	return nil
}

// addPowers adds those powers of a plan in the cluster that were not approved before. Those that this run allows stay, so that the digest is that of
// the same plan without --allow.
func (p *Plan) addPowers(ctx context.Context, planned *schema.Operation) error {
	for _, w := range p.wanted {
		var list []schema.Power
		for _, power := range planned.Powers {
			if power.Solution == w.Solution && (!power.Approved || len(p.o.Deploy.Unallowed([]schema.Power{power.Power})) == 0) {
				list = append(list, power.Power)
			}
		}
		unapproved, err := p.installer.Deployer.Unapproved(ctx, w.Solution, list, p.o.Environment)
		if err != nil {
			return err
		}
		p.Powers = append(p.Powers, unapproved...)
	}
	return nil
}

func (p *Plan) ensure() deployer.EnsureOptions {
	return deployer.EnsureOptions{Options: p.o.Deploy, Environment: p.o.Environment, Solutions: p.wanted, Others: plan.LeaveOthers}
}

func (p *Plan) names() string {
	var names []string
	for _, w := range p.wanted {
		names = append(names, w.Solution+"-"+w.Version)
	}
	return strings.Join(names, ", ")
}

// planActivation plans to make the versions the active ones, and reports whether the cluster has them. An activation that was interrupted is not
// done, although its version is the active one already. One that is only not listed on this host is.
func (p *Plan) planActivation(ctx context.Context) (active bool, err error) {
	unchanged := false
	if p.imported {
		dry := p.o.Deploy
		dry.DryRun = true
		planned, err := p.installer.Deployer.EnsureActive(ctx, dry, p.wanted)
		if err != nil {
			return false, err
		}
		unchanged = len(planned) == 0
		active = !slices.ContainsFunc(planned, func(o *schema.Operation) bool { return !o.Empty() })
	}
	p.add(schema.InstallStep{Step: "activate", Name: p.names(), State: stateOf(unchanged)}, func(ctx context.Context) error {
		done, err := p.installer.Deployer.EnsureActive(ctx, p.o.Deploy, p.wanted)
		for _, one := range done {
			p.Notices = append(p.Notices, one.Notices...)
		}
		return err
	})
	return active, nil
}

// planEnvironment plans to create the environment, and reports whether it exists.
func (p *Plan) planEnvironment(ctx context.Context) (exists bool, err error) {
	_, err = p.installer.Deployer.Records.Namespaces(ctx, p.o.Environment, "")
	if exists = err == nil; !exists && report.CodeOf(err) != report.NotFound {
		return false, err
	}
	p.add(schema.InstallStep{Step: "create", Name: "environment " + p.o.Environment, State: stateOf(exists)}, func(ctx context.Context) error {
		_, err := p.installer.Deployer.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: p.o.Environment})
		return err
	})
	return exists, nil
}

// findAddresses finds the URLs of what was deployed.
func (p *Plan) findAddresses(ctx context.Context) error {
	p.Addresses = nil
	for _, w := range p.wanted {
		found, err := p.installer.Deployer.Survey.Addresses(ctx, p.o.Environment, w.Solution)
		if err != nil {
			return fmt.Errorf("addresses of %s: %w", w.Solution, err)
		}
		p.Addresses = append(p.Addresses, found...)
	}
	return nil
}
