package deployer

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkDashboards refuses a dashboard with the uid of one that another Solution has deployed: Grafana would show one of them, and not
// always the same.
func (d *Deployer) checkDashboards(ctx context.Context, release *engine.Release) error {
	ours := dashboards(release.Objects)
	if len(ours) == 0 {
		return nil
	}
	states, err := d.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(s *engine.State) bool {
		return s.Name == release.Name || !s.Installed() || !slices.ContainsFunc(s.Current.Objects, isConfigMap)
	})
	others, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return err
	}
	for _, other := range others {
		for uid, theirs := range dashboards(other.Objects) {
			if own := ours[uid]; own != nil {
				return report.Errorf(report.Refused, "%s has a dashboard with the uid %s, as %s of Solution %s has: Grafana would show one of them only",
					cluster.NameOf(own), uid, cluster.NameOf(theirs), other.Name).
					WithHint("ask for an archive with a uid that begins with the name of its Solution, or remove the other one: %s", report.Run("deploy deactivate", other.Name))
			}
		}
	}
	return nil
}

func isConfigMap(o schema.DeployedObject) bool { return o.Kind == "ConfigMap" }

// dashboards are the objects with dashboards by the uids of these.
func dashboards(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if _, is := o.GetLabels()["grafana_dashboard"]; !is || o.GetKind() != "ConfigMap" {
			continue
		}
		files, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for _, file := range files {
			var dashboard struct {
				UID string `json:"uid"`
			}
			if json.Unmarshal([]byte(file), &dashboard) == nil && dashboard.UID != "" {
				found[dashboard.UID] = o
			}
		}
	}
	return found
}
