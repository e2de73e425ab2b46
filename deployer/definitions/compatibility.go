package definitions

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// CompatibilityOptions name the Solution whose versions are compared.
type CompatibilityOptions struct{ Solution string }

// Compatibility reports which imported versions of a Solution can be active beside the deployed ones, and what each
// would do to the stored objects. It changes nothing.
func (g *Guard) Compatibility(ctx context.Context, o CompatibilityOptions) (*schema.Compatibility, error) {
	catalog, err := g.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if len(catalog.Of(o.Solution)) == 0 {
		_, _, err = catalog.Find(o.Solution, "")
		return nil, err
	}
	operators, err := g.operators(ctx, catalog, o.Solution)
	if err != nil {
		return nil, err
	}
	payloads, err := g.Records.Payloads(ctx, catalog, o.Solution)
	if err != nil {
		return nil, err
	}
	return g.compare(ctx, o.Solution, payloads, operators)
}

// compare reports the effect of each of some versions of a Solution.
func (g *Guard) compare(ctx context.Context, solution string, payloads []*render.Payload, operators []operator) (c *schema.Compatibility, err error) {
	c = &schema.Compatibility{Solution: solution}
	if c.Active, err = g.Records.Active(ctx, solution); err != nil {
		return nil, err
	}
	for _, p := range payloads {
		one, err := g.compatibility(ctx, p, operators)
		if err != nil {
			return nil, err
		}
		c.Versions = append(c.Versions, *one)
	}
	return c, nil
}

// IncompatibleError refuses to activate a version with which the operators of environments do not work.
type IncompatibleError struct {
	// Compatibility is the result of [Guard.Compatibility], with the refused version; nil when it could not be
	// computed.
	Compatibility *schema.Compatibility

	refusal error
}

func (e *IncompatibleError) Error() string { return e.refusal.Error() }

// Unwrap returns the error with the code and the hint.
func (e *IncompatibleError) Unwrap() error { return e.refusal }

// incompatible adds to the refusal of a version how all versions go together with the cluster. The version need not be imported.
func (a *activation) incompatible(ctx context.Context, refusal error) error {
	e, solution := &IncompatibleError{refusal: refusal}, a.payload.Solution
	payloads, err := a.Records.Payloads(ctx, a.catalog, solution.Metadata.Name)
	if err != nil {
		return e // the refusal is the more important error
	}
	if _, known := a.catalog.Get(solution.ID()); !known {
		payloads = append(payloads, a.payload)
	}
	if c, err := a.compare(ctx, solution.Metadata.Name, payloads, a.operators); err == nil {
		e.Compatibility = c
	}
	return e
}

func (g *Guard) compatibility(ctx context.Context, p *render.Payload, operators []operator) (*schema.VersionCompatibility, error) {
	objects, err := render.Definitions(p)
	if err != nil {
		return nil, err
	}
	definitions := ByName(objects)
	fits, err := g.unite(ctx, definitions, operators)
	if err != nil {
		return nil, err
	}
	judged, err := g.judgeAll(ctx, definitions, Losses{})
	if err != nil {
		return nil, err
	}
	one := &schema.VersionCompatibility{
		Version: p.Solution.Spec.Version, Verdict: schema.CompatibilityYes, Operators: []schema.OperatorCompatibility{},
		Losses: orNone(judged.losses), Notices: orNone(judged.Notices),
		Refusals: append(judged.impossible, judged.invalid...),
	}
	for _, f := range fits {
		one.Operators = append(one.Operators, f.verdict())
	}
	one.Verdict = overall(one)
	return one, nil
}

func (f *fit) verdict() schema.OperatorCompatibility {
	o := schema.OperatorCompatibility{
		Environment: f.Environment, Namespace: f.Namespace, Version: f.Version, Verdict: schema.CompatibilityYes,
		Kept: orNone(f.kept), Missing: orNone(f.missing), Reasons: orNone(f.reasons),
	}
	switch {
	case len(f.missing) > 0:
		o.Verdict = schema.CompatibilityNo
	case len(f.kept) > 0:
		o.Verdict = schema.CompatibilityKeeps
	}
	return o
}

// overall is the worst that a version would do.
func overall(v *schema.VersionCompatibility) schema.CompatibilityVerdict {
	has := map[schema.CompatibilityVerdict]bool{}
	for _, o := range v.Operators {
		has[o.Verdict] = true
	}
	switch {
	case has[schema.CompatibilityNo], len(v.Refusals) > 0:
		return schema.CompatibilityNo
	case len(v.Losses) > 0:
		return schema.CompatibilityLoss
	case has[schema.CompatibilityKeeps]:
		return schema.CompatibilityKeeps
	}
	return schema.CompatibilityYes
}

// orNone replaces nil by an empty list, so that JSON shows [].
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
