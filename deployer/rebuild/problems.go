package rebuild

import (
	"context"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Problem is stored data of this program that is lost or cannot be read.
type Problem struct {
	Of         string // the deployment or the imported version; "" for the record of all imports
	What, Cure string
}

// Problems finds broken records of deployments and of imports in the whole cluster.
func Problems(ctx context.Context, p *plan.Planner) (found []Problem, err error) {
	broken, err := Find(ctx, p, survey.Selection{})
	if err != nil {
		return nil, err
	}
	for _, r := range broken {
		found = append(found, Problem{Of: r.key.String(), What: r.Problem(), Cure: r.Remedy()})
	}
	catalog, err := p.Records.CatalogOrDamage(ctx)
	if err != nil {
		return nil, err
	}
	add := func(of string, err error) {
		found = append(found, Problem{Of: of, What: err.Error(), Cure: strings.Join(report.Hints(err), "; ")})
	}
	if catalog.Damage != nil {
		add("", catalog.Damage)
	}
	for _, i := range catalog.Imports() {
		if _, err := p.Records.Payload(ctx, i); report.CodeOf(err) == report.Corrupt {
			add(i.ID(), err)
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}
