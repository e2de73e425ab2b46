package deployer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkDashboards refuses a dashboard with the uid of one that another Solution has deployed: Grafana would show one of them, and not
// always the same. Of what both of them have already it tells.
func (d *Deployer) checkDashboards(ctx context.Context, release *engine.Release) (notices []string, err error) {
	ours := dashboards(release.Objects)
	if len(ours) == 0 {
		return nil, nil
	}
	states, err := d.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(s *engine.State) bool {
		return !s.Installed() || !slices.ContainsFunc(s.Current.Objects, isConfigMap)
	})
	deployed, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, err
	}
	before := map[string]bool{} // what this Solution has already
	for _, r := range deployed {
		for uid := range dashboards(r.Objects) {
			before[uid] = before[uid] || r.Name == release.Name
		}
	}
	for _, other := range deployed {
		theirs := dashboards(other.Objects)
		for _, uid := range slices.Sorted(maps.Keys(theirs)) {
			own := ours[uid]
			if own == nil || other.Name == release.Name {
				continue
			}
			same := fmt.Sprintf("%s has a dashboard with the uid %s, as %s of Solution %s has", cluster.NameOf(own), uid, cluster.NameOf(theirs[uid]), other.Name)
			if !before[uid] {
				return nil, report.Errorf(report.Refused, "%s: Grafana would show one of them only", same).
					WithHint("ask for an archive with a uid that begins with the name of its Solution, or remove the other one: %s", report.Run("deploy deactivate", other.Name))
			}
			notices = append(notices, same+", and had it before: Grafana shows one of them only")
		}
	}
	return notices, nil
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
