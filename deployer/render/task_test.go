package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// TestHooks: the tasks of the hooks of a chart.
func TestHooks(t *testing.T) {
	for name, test := range map[string]struct {
		annotations string
		component   string   // the fields of the manifest
		tasks       []string // when, on, weight and the policies
		tests       int
	}{
		"install and upgrade":  {"post-install,post-upgrade", "", []string{"applied [install upgrade] 0 replace"}, 0},
		"when it is ready":     {"pre-install,post-install", "postAfter: Ready", []string{"before [install] 0 replace", "ready [install] 0 replace"}, 0},
		"all":                  {"pre-install,post-install,pre-upgrade,post-upgrade,pre-rollback,post-rollback,pre-delete,post-delete", "", []string{"before [remove install back upgrade] 0 replace", "applied [remove install back upgrade] 0 replace"}, 0},
		"a test":               {"test", "", nil, 1},
		"a test of Helm 2":     {"test-success,pre-install", "", []string{"before [install] 0 replace"}, 1},
		"policies":             {"pre-install\nhelm.sh/hook-delete-policy: hook-failed,hook-succeeded\nhelm.sh/hook-weight: '-5'", "", []string{"before [install] -5 succeeded failed"}, 0},
		"an event is ignored":  {"pre-install,pre-upgrade", "ignore: [pre-upgrade]", []string{"before [install] 0 replace"}, 0},
		"an object is ignored": {"pre-install", "ignore: [Job/a]", nil, 0},
		"another is ignored":   {"pre-install", "ignore: [Job/b, Pod/a, post-install]", []string{"before [install] 0 replace"}, 0},
		"one event twice":      {"pre-install, pre-install", "", []string{"before [install] 0 replace"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var annotations strings.Builder
			for i, line := range strings.Split(test.annotations, "\n") {
				if i == 0 {
					line = fmt.Sprintf("helm.sh/hook: %q", line)
				}
				annotations.WriteString("\n    " + line)
			}
			text := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  annotations:" + annotations.String() + "\n"
			manifest := strings.Replace(cloudManifest, "chart: charts/chart.tgz}", "chart: charts/chart.tgz, hooks: {"+test.component+"}}", 1)
			p := cloud(t, map[string]string{"manifest.yaml": manifest, "charts/chart.tgz": chartOf(t, map[string]string{"templates/a.yaml": text})})
			got, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{})
			if err != nil {
				t.Fatal(err)
			}
			var tasks []string
			for _, task := range got.Tasks {
				line := fmt.Sprintf("%s %v %d", task.When, task.On, task.Weight)
				for _, p := range []struct {
					set  bool
					word string
				}{{task.Replace, "replace"}, {task.DeleteOnSuccess, "succeeded"}, {task.DeleteOnFailure, "failed"}} {
					if p.set {
						line += " " + p.word
					}
				}
				tasks = append(tasks, line)
			}
			if diff := cmp.Diff(tasks, test.tasks); diff != "" || len(got.Tests) != test.tests || len(got.Objects) != 0 {
				t.Errorf("%d tests, %d objects, tasks (-got +want):\n%s", len(got.Tests), len(got.Objects), diff)
			}
		})
	}
}

// TestHookDefinitions: a definition comes with the activation, whatever the chart makes of it.
func TestHookDefinitions(t *testing.T) {
	crd := strings.Replace(database["crds/crd.yaml"], "name: dbs.acme.example", "name: dbs.acme.example, annotations: {helm.sh/hook: pre-install}", 1)
	p := chartPayload(t, map[string]string{"templates/crd.yaml": crd})
	got, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{})
	if err != nil || len(got.Definitions) != 1 || len(got.Tasks) != 0 {
		t.Errorf("%v, %v: %v", got.Definitions, got.Tasks, err)
	}
}

func TestJobTask(t *testing.T) {
	p := cloud(t, nil)
	objects := component(t, p, "sync")
	got := render.JobTask(&schema.Component{Name: "sync", Once: schema.OncePerVersion}, objects[0])
	want := schema.Task{When: schema.MomentApplied, On: []schema.Occasion{schema.OccasionInstall, schema.OccasionUpgrade}, Once: schema.OncePerVersion}
	if diff := cmp.Diff(got.Task, want); diff != "" || got.Object != objects[0] {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
