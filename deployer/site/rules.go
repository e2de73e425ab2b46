package site

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const alertRules = "PrometheusRule"

// Remarks returns a notice for each monitor and rule of releases that no Prometheus will select.
func (s *Site) Remarks(ctx context.Context, releases ...engine.Release) ([]string, error) {
	var objects []*unstructured.Unstructured
	for _, r := range releases {
		objects = append(objects, r.Objects...)
	}
	return s.Survey.Remarks(ctx, objects)
}

// MovedRules returns notices about alerting rules that the plan of an activation deletes, because an earlier version had them for the
// whole cluster, and the namespaces in which no rules have replaced them yet.
func (s *Site) MovedRules(ctx context.Context, plan *engine.Plan) ([]string, error) {
	var notices []string
	for _, change := range plan.Changes {
		if change.Action == schema.ActionDelete && change.Object.Kind == alertRules {
			notices = append(notices, change.Object.String()+" goes: alerting rules belong to environments")
		}
	}
	if len(notices) == 0 {
		return nil, nil
	}
	states, err := s.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	var without []string
	for _, state := range states {
		_, deployed := records.DeployedVersion(state)
		has := slices.ContainsFunc(records.ObjectsOf(state), func(o schema.DeployedObject) bool { return o.Kind == alertRules })
		if state.Name == plan.Release.Name && state.Component == "" && state.Namespace != "" && deployed && !has {
			without = append(without, state.Namespace)
		}
	}
	if len(without) > 0 {
		again := report.Run("deploy add", "ENVIRONMENT", plan.Release.Name, "VERSION")
		notices = append(notices, "no alerting rules are in "+strings.Join(without, ", ")+" until the Solution is deployed there again: "+again.String())
	}
	return notices, nil
}
