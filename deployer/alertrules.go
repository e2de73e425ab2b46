package deployer

import (
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const alertRules = "PrometheusRule"

// ruleNotices tell of alerting rules that the version before, or a solutionctl before this one, had once for the whole cluster,
// and in which namespaces nothing has taken their place.
func (d *Deployer) ruleNotices(ctx context.Context, plan *engine.Plan) ([]string, error) {
	var notices []string
	for _, change := range plan.Changes {
		if change.Action == schema.ActionDelete && change.Object.Kind == alertRules {
			notices = append(notices, change.Object.String()+" goes: alerting rules belong to environments")
		}
	}
	if len(notices) == 0 {
		return nil, nil
	}
	states, err := d.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	var without []string
	for _, s := range states {
		_, deployed := records.DeployedVersion(s)
		has := slices.ContainsFunc(records.ObjectsOf(s), func(o schema.DeployedObject) bool { return o.Kind == alertRules })
		if s.Name == plan.Release.Name && s.Component == "" && s.Namespace != "" && deployed && !has {
			without = append(without, s.Namespace)
		}
	}
	if len(without) > 0 {
		again := report.Run("deploy add", "ENVIRONMENT", plan.Release.Name, "VERSION")
		notices = append(notices, "no alerting rules are in "+strings.Join(without, ", ")+" until the Solution is deployed there again: "+again.String())
	}
	return notices, nil
}
