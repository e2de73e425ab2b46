package lint

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options choose rules.
type Options struct {
	Enable  []string       // identifiers or groups; these rules run although they are optional or their group is disabled
	Disable []string       // identifiers or groups
	Deep    bool           // read every blob
	Against *target.Target // the older version, or nil
}

// Result is what a run found. Paths are those of the archive; [target.Target.SourcePath] translates them.
type Result struct {
	Findings   []report.Finding
	Suppressed []schema.SuppressedFinding
	Fixes      []Fix // what would mend some of the findings
}

// Run judges the target by every rule that the options choose.
func Run(ctx context.Context, t *target.Target, o Options) (*Result, error) {
	rules, err := choose(o)
	if err != nil {
		return nil, err
	}
	t.Objects() // reads every manifest, on all processors; the rules would do it one after the other
	s := newSubject(t, o)
	reporters := make([]*Reporter, len(rules))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, rule := range rules {
		reporters[i] = &Reporter{rule: rule}
		if s.judgeable(rule.Group) {
			group.Go(func() error {
				rule.check(ctx, s, reporters[i])
				return ctx.Err()
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []*Found
	for _, r := range reporters {
		found = append(found, r.bounded()...)
	}
	return s.suppress(found, rules), nil
}

// judgeable tells whether there is enough of the target for the rules of a group.
func (t *subject) judgeable(group Group) bool {
	switch group {
	case GroupArchive, GroupDocuments:
		return true
	case GroupUpgrade:
		return t.Solution != nil && t.older() != nil
	case GroupKubernetes:
		return t.Broken == nil
	default:
		return t.Solution != nil && t.Broken == nil
	}
}

// maxFindings is how many findings of one rule are worth reading.
const maxFindings = 200

// bounded returns the findings of a rule, so many of them at most.
func (r *Reporter) bounded() []*Found {
	if len(r.found) <= maxFindings {
		return r.found
	}
	more := len(r.found) - maxFindings
	r.found = r.found[:maxFindings]
	r.Report(target.Place{}, "", "%d more findings of this rule are not shown", more)
	return r.found
}

func choose(o Options) ([]Rule, error) {
	for _, name := range slices.Concat(o.Enable, o.Disable) {
		if !known(name) {
			return nil, report.Errorf(report.Usage, "there is no rule or group %q", name).
				WithHint("'solutionctl lint --rules' lists them")
		}
	}
	names := func(list []string, rule Rule) (byID, byGroup bool) {
		return slices.Contains(list, rule.ID), slices.Contains(list, string(rule.Group))
	}
	return slices.DeleteFunc(Rules(), func(rule Rule) bool {
		enabled, groupEnabled := names(o.Enable, rule)
		disabled, groupDisabled := names(o.Disable, rule)
		switch {
		case enabled || disabled:
			return !enabled
		case groupDisabled:
			return true
		default:
			return rule.Optional && !groupEnabled
		}
	}), nil
}

// known tells whether a name is that of a rule or a group.
func known(name string) bool {
	return slices.Contains(Groups(), Group(name)) || slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == name })
}

// Find returns a rule by its identifier.
func Find(id string) (Rule, error) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, report.Errorf(report.Usage, "there is no rule %s", id).WithHint("%s", fmt.Sprintf("the rules are %s to %s; 'solutionctl lint --rules' lists them", rules[0].ID, rules[len(rules)-1].ID))
	}
	return rules[i], nil
}

// Known returns those of the names that are rules or groups. A rule reports the others when they come from a project.
func Known(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !known(name) })
}
