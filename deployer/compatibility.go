package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Compatibility tells which imported versions of a Solution can be active beside what is deployed, and what would become of
// the objects that are stored. It changes nothing.
func (d *Deployer) Compatibility(ctx context.Context, solution string) (*schema.Compatibility, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if len(catalog.Of(solution)) == 0 {
		_, _, err = catalog.Find(solution, "")
		return nil, err
	}
	c := &schema.Compatibility{Solution: solution}
	if c.Active, err = d.active(ctx, solution); err != nil {
		return nil, err
	}
	operators, err := d.operators(ctx, catalog, solution)
	if err != nil {
		return nil, err
	}
	for _, i := range catalog.Of(solution) {
		one, err := d.compatibility(ctx, i, operators)
		if err != nil {
			return nil, err
		}
		c.Versions = append(c.Versions, *one)
	}
	return c, nil
}

func (d *Deployer) compatibility(ctx context.Context, i schema.Import, operators []operator) (*schema.VersionCompatibility, error) {
	p, err := d.payload(ctx, i)
	if err != nil {
		return nil, err
	}
	objects, err := render.Definitions(p)
	if err != nil {
		return nil, err
	}
	definitions := byName(objects)
	fits, err := d.unite(ctx, definitions, operators)
	if err != nil {
		return nil, err
	}
	judged, err := d.judgeDefinitions(ctx, definitions, nil)
	if err != nil {
		return nil, err
	}
	one := &schema.VersionCompatibility{
		Version: i.Version, Verdict: schema.CompatibilityYes, Operators: []schema.OperatorCompatibility{},
		Losses: orNone(judged.losses), Notices: orNone(judged.notices),
	}
	for _, f := range fits {
		one.Operators = append(one.Operators, f.verdict())
	}
	one.Verdict = overall(one)
	return one, nil
}

func (f *fit) verdict() schema.OperatorCompatibility {
	o := schema.OperatorCompatibility{
		Environment: f.environment, Namespace: f.namespace, Version: f.version, Verdict: schema.CompatibilityYes,
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
	case has[schema.CompatibilityNo]:
		return schema.CompatibilityNo
	case len(v.Losses) > 0:
		return schema.CompatibilityLoss
	case has[schema.CompatibilityKeeps]:
		return schema.CompatibilityKeeps
	}
	return schema.CompatibilityYes
}

// orNone makes nothing an empty list: that is what JSON shows.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
