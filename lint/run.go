package lint

import (
	"context"
	"runtime"

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

// Result has the findings of a run. Paths are relative to the archive; [target.Target.SourcePath] translates them.
type Result struct {
	Findings   []report.Finding
	Suppressed []schema.SuppressedFinding
	Fixes      []Fix // corrections for some of the findings
}

// Run judges the target by every rule that the options choose.
func Run(ctx context.Context, t *target.Target, o Options) (*Result, error) {
	rules, err := choose(o)
	if err != nil {
		return nil, err
	}
	t.Objects() // reads every manifest, on all processors; the rules would do it one after the other
	s := newSubject(t, o)
	reporters := make([]*reporter, len(rules))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, rule := range rules {
		reporters[i] = &reporter{rule: rule}
		if rule.check != nil && s.judgeable(rule.Group) {
			group.Go(func() error {
				rule.check(running, s, reporters[i])
				return running.Err()
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []*Found
	for _, r := range reporters {
		found = append(found, r.findings()...)
	}
	return s.suppress(ctx, found, rules), ctx.Err()
}

// judgeable reports whether enough of the target could be read for the rules of a group.
func (t *subject) judgeable(group Group) bool {
	switch group {
	case GroupArchive, GroupDocuments:
		return true
	case GroupUpgrade:
		return t.Solution != nil && t.against != nil && t.against.Solution != nil
	case GroupKubernetes:
		return t.Broken == nil
	default:
		return t.Solution != nil && t.Broken == nil
	}
}
