package site

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// dashboard is a dashboard for Grafana in a release.
type dashboard struct {
	record.Key
	object *unstructured.Unstructured
	uid    string
}

// CheckDashboards refuses a dashboard with the uid of a dashboard of another Solution: Grafana would show one of them, and not always the
// same. If both are deployed already it returns a notice.
func (s *Site) CheckDashboards(ctx context.Context, releases ...engine.Release) (notices []string, err error) {
	ours := dashboards(releases)
	if len(ours) == 0 {
		return nil, nil
	}
	deployed, err := s.deployedDashboards(ctx)
	if err != nil {
		return nil, err
	}
	theirs := slices.DeleteFunc(slices.Clone(deployed), func(other dashboard) bool {
		return slices.ContainsFunc(releases, func(r engine.Release) bool { return r.Key == other.Key })
	})
	for _, own := range ours {
		had := slices.ContainsFunc(deployed, func(before dashboard) bool { return before.Name == own.Name && before.uid == own.uid })
		for _, other := range slices.Concat(theirs, ours) {
			if other.Name == own.Name || other.uid != own.uid {
				continue
			}
			same := fmt.Sprintf("%s has a dashboard with the uid %s, as %s of Solution %s has", cluster.NameOf(own.object), own.uid, cluster.NameOf(other.object), other.Name)
			if !had {
				return nil, report.Errorf(report.Refused, "%s: Grafana would show one of them only", same).
					WithHint("ask for an archive with a uid that begins with the name of its Solution, or remove the other one: %s", removalOf(other.Key))
			}
			if same += ", and had it before: Grafana shows one of them only"; !slices.Contains(notices, same) {
				notices = append(notices, same)
			}
		}
	}
	return notices, nil
}

func removalOf(key record.Key) report.Remedy {
	if key.Namespace == "" {
		return report.Run("deploy deactivate", key.Name)
	}
	return report.Run("deploy remove", "ENVIRONMENT", key.Name)
}

// deployedDashboards returns those of all releases. Of releases that are the same in several namespaces it reads one.
func (s *Site) deployedDashboards(ctx context.Context) ([]dashboard, error) {
	states, err := s.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	var different []*record.State
	seen := map[string]bool{}
	for _, state := range states {
		if !state.Installed() || !slices.ContainsFunc(state.Current.Objects, isConfigMap) {
			continue
		}
		way := fmt.Sprintf("%q %q %t %s %q", state.Name, state.Component, state.Namespace == "", state.Current.Version, state.Current.Settings)
		if !seen[way] {
			different = append(different, state)
		}
		seen[way] = true
	}
	releases, _, err := s.Records.Engine.Deployed(ctx, different)
	return dashboards(releases), err
}

func isConfigMap(o schema.DeployedObject) bool { return o.Kind == "ConfigMap" }

// dashboards returns those of releases that have a uid.
func dashboards(releases []engine.Release) (found []dashboard) {
	for _, r := range releases {
		for _, o := range r.Objects {
			if _, is := o.GetLabels()[schema.LabelDashboard]; !is || o.GetKind() != "ConfigMap" {
				continue
			}
			files, _, _ := unstructured.NestedStringMap(o.Object, "data")
			for _, file := range slices.Sorted(maps.Keys(files)) {
				var content struct {
					UID string `json:"uid"`
				}
				if json.Unmarshal([]byte(files[file]), &content) == nil && content.UID != "" {
					found = append(found, dashboard{r.Key, o, content.UID})
				}
			}
		}
	}
	return found
}
