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
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkConvergence refuses what would be refused in the middle, and tells what the activations mean for stored objects.
func (d *Deployer) checkConvergence(ctx context.Context, o ConvergeOptions) ([]string, error) {
	plan, host := o.Plan, o.Host
	if err := d.checkActiveAfter(ctx, plan, host); err != nil {
		return nil, err
	}
	notices, err := d.checkDefinitions(ctx, plan, host, definitions.Accepted{Loss: o.AcceptDataLoss, Invalid: o.AcceptInvalid})
	if err != nil {
		return nil, err
	}
	unapproved, err := d.checkActivations(ctx, o)
	if err != nil {
		return nil, err
	}
	notices = append(notices, unapproved...)
	for _, s := range plan.Deactivate {
		if _, err = d.Deactivate(ctx, DeactivateOptions{Options: Options{DryRun: true}, Solution: s.Solution, later: activeAfter(plan)}); err != nil {
			return nil, fmt.Errorf("deactivate %s: %w", s.ID(), err)
		}
	}
	stored, err := host.Stored()
	if err != nil {
		return nil, err
	}
	for _, s := range plan.Unimport {
		if !slices.Contains(stored, s) {
			return nil, report.Errorf(report.Refused, "%s is not in the file any more, and was imported on another host", s.ID()).
				WithHint("run there: %s", report.Run("deploy unimport", s.Solution, s.Version))
		}
		deployed, err := d.Records.Deployments(ctx, s.Solution)
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

// activeAfter are the changes by a plan of the versions that are active.
func activeAfter(plan *schema.Convergence) []schema.SolutionAt {
	after := slices.Clone(plan.Activate)
	for _, s := range plan.Deactivate {
		after = append(after, schema.SolutionAt{Solution: s.Solution})
	}
	return after
}

// checkActiveAfter refuses a plan whose active versions lack what they, or others, need. Some of them are not imported yet.
func (d *Deployer) checkActiveAfter(ctx context.Context, plan *schema.Convergence, host Host) error {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, i := range plan.Import {
		manifest, err := host.Identify(i.Path)
		if err != nil {
			return err
		}
		catalog.Put(schema.Import{Name: i.Solution, Version: i.Version, DependsOn: manifest.Spec.DependsOn})
	}
	return d.checkDependencies(ctx, catalog, dependencies.Activate(activeAfter(plan)))
}

// checkDefinitions judges the definitions of all versions that are to be active together, and tells what they mean for stored
// objects. Some of them are not imported yet.
func (d *Deployer) checkDefinitions(ctx context.Context, plan *schema.Convergence, host Host, a definitions.Accepted) ([]string, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var notices []string
	var all []*unstructured.Unstructured
	for _, at := range plan.Activate {
		var p *render.Payload
		if p, err = d.payloadFor(ctx, plan, catalog, host, at); err != nil {
			return nil, err
		}
		var own []*unstructured.Unstructured
		if own, err = render.Definitions(p); err != nil {
			return nil, err
		}
		var kept []string
		if kept, err = d.Definitions.KeepServed(ctx, catalog, p, own); err != nil {
			return nil, fmt.Errorf("activate %s: %w", at.ID(), err)
		}
		notices, all = append(notices, kept...), append(all, own...)
	}
	judged, err := d.Definitions.Judge(ctx, all, a)
	if err != nil {
		return nil, err
	}
	return append(notices, judged.Notices...), nil
}

// payloadFor is that of a version that a plan activates.
func (d *Deployer) payloadFor(ctx context.Context, plan *schema.Convergence, catalog *records.Catalog, host Host, at schema.SolutionAt) (*render.Payload, error) {
	for _, i := range plan.Import {
		if i.SolutionAt == at {
			return host.Payload(i.Path)
		}
	}
	found, _ := catalog.Get(at.ID())
	return d.Records.Payload(ctx, found)
}

// checkActivations refuses a plan with an activation that would be refused, for its powers above all. In a dry run it returns a notice about
// those that are not approved. An activation that cannot be planned before an earlier one is judged when its turn comes.
func (d *Deployer) checkActivations(ctx context.Context, o ConvergeOptions) ([]string, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range o.Plan.Import {
		payload, err := o.Host.Payload(i.Path)
		if err != nil {
			return nil, err
		}
		if catalog, err = d.Records.Foresee(ctx, catalog, records.ImportRecord{Payload: payload, Path: i.Path}); err != nil {
			return nil, err
		}
	}
	var ids []string
	var missing []schema.Power
	for n, at := range o.Plan.Activate {
		a := o.activation(o.Plan, at)
		a.DryRun, a.Refuse = true, true
		_, err := d.planActivationOf(ctx, a, catalog)
		refused, ok := errors.AsType[*PowersError](err)
		switch {
		case ok && !refused.Askable(), !ok && err != nil && n == 0:
			return nil, fmt.Errorf("activate %s: %w", at.ID(), err)
		case ok:
			ids, missing = append(ids, at.ID()), append(missing, refused.Powers...)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	who := strings.Join(ids, ", ")
	if o.DryRun {
		return []string{fmt.Sprintf("%s can do what is not approved: %s; to approve of it: %s", who,
			strings.Join((&PowersError{Powers: missing}).Lines(), "; "), Approving(missing))}, nil
	}
	return nil, report.Errorf(report.Refused, "activate %s: there are powers that are not approved:\n  %w", who, &PowersError{Powers: missing}).
		WithHint("if you trust it with that: %s", Approving(missing))
}
