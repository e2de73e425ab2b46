package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// activate makes versions active, or plans it: for a Solution in several environments, the highest version. A refusal
// of powers, then or when environments are planned, comes first.
func (l *Launcher) activate(ctx context.Context, p *prepared, dry bool) error {
	list, err := l.toActivate(ctx, p)
	if err != nil {
		return err
	}
	o := plan.Options{DryRun: true, Refuse: !dry, Timeout: time.Duration(p.parameters.Timeout) * time.Second}
	planned, err := l.Deployer.EnsureActive(ctx, o, list)
	if isUnapproved(err) || dry {
		p.Activate = append(p.Activate, planned...)
		return err
	}
	nothing := err == nil && len(planned) == 0
	if err = l.checkPowers(ctx, p, err != nil || activates(planned)); err != nil || nothing {
		return err
	}
	o.DryRun = false
	done, err := l.Deployer.EnsureActive(ctx, o, list)
	p.Activate = append(p.Activate, done...)
	return err
}

// activates reports whether versions become active in the cluster. Those that are only listed as active on this host are already.
func activates(planned []*schema.Operation) bool {
	return slices.ContainsFunc(planned, func(o *schema.Operation) bool { return !o.Empty() })
}

// toActivate are the versions that are to be active.
func (l *Launcher) toActivate(ctx context.Context, p *prepared) (list []plan.Wanted, err error) {
	for _, e := range p.parameters.Environments {
		wanted, err := l.Deployer.Wanted(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, w := range wanted {
			at := slices.IndexFunc(list, func(other plan.Wanted) bool { return other.Solution == w.Solution })
			switch {
			case at < 0:
				list = append(list, w)
			case records.DirectionTo(list[at].Version, schema.Import{Version: w.Version}) == records.Up && list[at].Version != w.Version:
				list[at] = w
			}
		}
	}
	return list, nil
}

// checkPowers refuses environments for their powers before anything changes. It checks those that do not exist yet, and
// all of them where versions are not active: the plans of the others check their powers. What cannot be rendered yet is
// checked at its turn.
func (l *Launcher) checkPowers(ctx context.Context, p *prepared, all bool) error {
	for _, e := range p.parameters.Environments {
		names, err := l.Deployer.Records.Documents.Outline(ctx, e.Name)
		if err != nil {
			return err
		}
		if !all && len(names) > 0 {
			continue
		}
		list, err := l.Deployer.Wanted(ctx, e)
		if err != nil {
			return err
		}
		_, err = l.Deployer.PreviewEnsure(ctx, deployer.EnsureOptions{Options: plan.Options{Refuse: true}, Environment: e.Name, Solutions: list})
		if isUnapproved(err) {
			return fmt.Errorf("environment %s: %w", e.Name, err)
		}
	}
	return ctx.Err()
}

// isUnapproved reports whether an error refuses powers that are not approved.
func isUnapproved(err error) bool {
	_, unapproved := errors.AsType[*plan.PowersError](err)
	return unapproved
}

// configurable adds to a refusal of powers that only the configuration of the loader can accept them.
func configurable(err error) error {
	refused, ok := errors.AsType[*plan.PowersError](err)
	if !ok || !refused.CanBeApproved() {
		return err
	}
	return report.Errorf(report.Refused, "%v", err).
		WithHint("if you trust it with that, write it to the Solution in the configuration: %s", plan.Accepting(refused.Powers))
}
