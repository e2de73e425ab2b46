package deployer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// hooked is a chart of a ConfigMap and a Job for each operation, which are called after it.
func hooked(t *testing.T, name string) string {
	t.Helper()
	files := map[string]string{"templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"}
	for _, hook := range []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback"} {
		files["templates/"+hook+".yaml"] = fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s-%s, annotations: {helm.sh/hook: %s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/base-1.0.0/a:1}]}}}
`, name, hook, hook)
	}
	return deployertest.Chart(t, name, files)
}

// TestDowngradeHooks: going back runs the hooks of a rollback, whether a revision or a version is named, and installs what is brought
// back.
func TestDowngradeHooks(t *testing.T) {
	content := func(names ...string) deployertest.Content {
		c := deployertest.Content{Files: map[string]string{}, Manifest: "components:\n"}
		for _, name := range names {
			c.Files["charts/"+name+".tgz"] = hooked(t, name)
			c.Manifest += fmt.Sprintf("  - {name: %[1]s, chart: charts/%[1]s.tgz}\n", name)
		}
		return c
	}
	back := map[string]verb{
		"downgrade": func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0", Direction: records.Down})
		},
		"rollback": func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Rollback(ctx, deployer.RollbackOptions{Options: o, Environment: site, Solution: shop})
		},
	}
	for name, goBack := range back {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Imported(shop, "1.1.0", content("db"))
			b.Activated(shop, "1.0.0", content("db", "old"))
			ran := func(v verb) []string {
				b.Server.Requests()
				must(b, v)
				var jobs []string
				for _, write := range b.Writes() {
					if job, is := strings.CutPrefix(write, "PATCH /apis/batch/v1/namespaces/"+site+"/jobs/"); is && !slices.Contains(jobs, job) {
						jobs = append(jobs, job)
					}
				}
				slices.Sort(jobs)
				return jobs
			}
			for _, step := range []struct {
				name string
				do   verb
				want []string
			}{
				{"add", add("1.0.0"), []string{"db-post-install", "db-pre-install", "old-post-install", "old-pre-install"}},
				{"upgrade", upgrade("1.1.0"), []string{"db-post-upgrade", "db-pre-upgrade"}},
				{"back", goBack, []string{"db-post-rollback", "db-pre-rollback", "old-post-install", "old-pre-install"}},
				{"back again", goBack, nil},
				{"the same", add("1.0.0"), nil},
			} {
				if diff := cmp.Diff(step.want, ran(step.do)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", step.name, diff)
				}
			}
		})
	}
}
