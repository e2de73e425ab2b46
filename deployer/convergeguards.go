package deployer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// convergence is a run of Converge.
type convergence struct {
	*Deployer
	ConvergeOptions
}

// check refuses a plan with a step that would be refused, and returns notices about the effect of the activations on stored objects.
func (c *convergence) check(ctx context.Context) ([]string, error) {
	if err := c.checkActiveAfter(ctx); err != nil {
		return nil, err
	}
	notices, err := c.checkDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	unapproved, err := c.checkActivations(ctx)
	if err != nil {
		return nil, err
	}
	notices = append(notices, unapproved...)
	for _, s := range c.Plan.Deactivate {
		if _, err = c.Deactivate(ctx, DeactivateOptions{Options: plan.Options{DryRun: true}, Solution: s.Solution, later: activeAfter(c.Plan)}); err != nil {
			return nil, fmt.Errorf("deactivate %s: %w", s.ID(), err)
		}
	}
	stored, err := c.Host.Stored()
	if err != nil {
		return nil, err
	}
	for _, s := range c.Plan.Unimport {
		if !slices.Contains(stored, s) {
			return nil, report.Errorf(report.Refused, "%s is not in the file any more, and was imported on another host", s.ID()).
				WithHint("run there: %s", report.Run("deploy unimport", s.Solution, s.Version))
		}
		deployed, err := c.Records.Deployments(ctx, s.Solution)
		if err != nil {
			return nil, err
		}
		var users []string
		for _, there := range deployed {
			if there.Version == s.Version {
				users = append(users, there.String())
			}
		}
		if len(users) > 0 {
			return nil, report.Errorf(report.InUse, "version %s of Solution %s is not in the file any more, and in use: %s",
				s.Version, s.Solution, strings.Join(slices.Compact(users), ", ")).
				WithHint("remove it there first: %s", report.Run("deploy remove", "ENVIRONMENT", s.Solution))
		}
	}
	return notices, nil
}

// activeAfter returns the activations of a plan, and its deactivations with the version "".
func activeAfter(p *schema.Convergence) []schema.SolutionAt {
	after := slices.Clone(p.Activate)
	for _, s := range p.Deactivate {
		after = append(after, schema.SolutionAt{Solution: s.Solution})
	}
	return after
}

// checkActiveAfter refuses a plan that leaves a Solution without another one that it needs. Some versions are not imported yet.
func (c *convergence) checkActiveAfter(ctx context.Context) error {
	run := c.begin(schema.Operation{}, c.Options)
	if err := run.ReadCatalog(ctx); err != nil {
		return err
	}
	for _, i := range c.Plan.Import {
		manifest, err := c.Host.Identify(i.Path)
		if err != nil {
			return err
		}
		run.Catalog.Put(schema.Import{Name: i.Solution, Version: i.Version, DependsOn: manifest.Spec.DependsOn})
	}
	return run.CheckDependencies(ctx, dependencies.Activate(activeAfter(c.Plan)))
}

// checkDefinitions judges the CRDs of all versions that become active together, some of which are not imported yet, and returns notices about
// their effect on stored objects.
func (c *convergence) checkDefinitions(ctx context.Context) ([]string, error) {
	catalog, err := c.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var notices []string
	var all []*unstructured.Unstructured
	for _, at := range c.Plan.Activate {
		var p *render.Payload
		if p, err = c.payload(ctx, catalog, at); err != nil {
			return nil, err
		}
		var own []*unstructured.Unstructured
		if own, err = render.Definitions(p); err != nil {
			return nil, err
		}
		var kept []string
		if kept, err = c.Definitions.KeepServed(ctx, catalog, p, own); err != nil {
			return nil, fmt.Errorf("activate %s: %w", at.ID(), err)
		}
		notices, all = append(notices, kept...), append(all, own...)
	}
	judged, err := c.Definitions.Judge(ctx, all, definitions.Losses{AcceptDataLoss: c.AcceptDataLoss, AcceptInvalid: c.AcceptInvalid})
	if err != nil {
		return nil, err
	}
	return append(notices, judged.Notices...), nil
}

// payload returns the payload of a version that a plan activates.
func (c *convergence) payload(ctx context.Context, catalog *records.Catalog, at schema.SolutionAt) (*render.Payload, error) {
	for _, i := range c.Plan.Import {
		if i.SolutionAt == at {
			return c.Host.Payload(i.Path)
		}
	}
	found, _ := catalog.Get(at.ID())
	return c.Records.Payload(ctx, found)
}

// checkActivations refuses a plan with an activation that would be refused, for its powers above all. In a dry run it returns a notice about
// those that are not approved. An activation that cannot be planned before an earlier one is judged when its turn comes.
func (c *convergence) checkActivations(ctx context.Context) ([]string, error) {
	catalog, err := c.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range c.Plan.Import {
		payload, err := c.Host.Payload(i.Path)
		if err != nil {
			return nil, err
		}
		if catalog, err = c.Records.Foresee(ctx, catalog, records.ImportRecord{Payload: payload, Path: i.Path}); err != nil {
			return nil, err
		}
	}
	var ids []string
	var missing []schema.Power
	for n, at := range c.Plan.Activate {
		a := c.activation(at)
		a.DryRun, a.Refuse = true, true
		run := c.begin(schema.Operation{Operation: schema.VerbActivate}, a.Options)
		run.Catalog = catalog
		err := a.plan(ctx, run)
		refused, ok := errors.AsType[*plan.PowersError](err)
		switch {
		case ok && !refused.CanBeApproved(), !ok && err != nil && n == 0:
			return nil, fmt.Errorf("activate %s: %w", at.ID(), err)
		case ok:
			ids, missing = append(ids, at.ID()), append(missing, refused.Powers...)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	who := strings.Join(ids, ", ")
	if c.DryRun {
		return []string{fmt.Sprintf("%s needs powers that are not approved: %s; to approve them: %s", who,
			strings.Join((&plan.PowersError{Powers: missing}).Lines(), "; "), plan.Approving(missing))}, nil
	}
	return nil, report.Errorf(report.Refused, "activate %s: there are powers that are not approved:\n  %w", who, &plan.PowersError{Powers: missing}).
		WithHint("if you trust it with that: %s", plan.Approving(missing))
}
