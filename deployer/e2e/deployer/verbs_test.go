package deployer_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestTheRoad(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.get(crds, "", b.crdName())
	shared, err := (&metalk8s.Documents{Cluster: b.Cluster}).Solutions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shared.Active(b.Solution) != "1.0.0" {
		t.Errorf("metalk8s-solutions: %+v", shared.Versions[b.Solution])
	}

	done := b.mustAdd("1.0.0")
	if len(done.Parts) != 1 || done.Parts[0].Count(schema.ActionCreate) == 0 || done.Empty() {
		t.Errorf("%+v", done)
	}
	record := b.get(configMaps, b.Env, metalk8s.EnvironmentConfigMap)
	if data, _, _ := unstructured.NestedStringMap(record.Object, "data"); !cmp.Equal(data, map[string]string{b.Solution: "1.0.0"}) {
		t.Errorf("metalk8s-environment: %v", data)
	}
	operator := b.get(deployments, b.Env, b.Solution+"-operator")
	containers, _, _ := unstructured.NestedSlice(operator.Object, "spec", "template", "spec", "containers")
	image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
	if want := "registry.solutionctl.invalid/" + b.Solution + "-1.0.0/" + b.Solution + "-operator:1.0.0@sha256:"; !strings.HasPrefix(image, want) {
		t.Errorf("image %s, want %s…", image, want)
	}

	if again := b.mustAdd("1.0.0"); !again.Empty() {
		t.Errorf("adding it again changes something: %+v", again)
	}
	drift, err := b.Diff(t.Context(), survey.Selection{Environment: b.Env, Solution: b.Solution})
	if err != nil || !drift.Empty() {
		t.Errorf("%+v, %v", drift, err)
	}

	if _, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	if b.find(deployments, b.Env, b.Solution+"-operator") != nil || b.find(roles, b.Env, b.Solution+"-operator") != nil {
		t.Error("the operator is still there")
	}
	if _, err = b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	if b.find(crds, "", b.crdName()) != nil {
		t.Error("the definition is still there")
	}
	if err = b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.0.0"}); err != nil {
		t.Fatal(err)
	}
	_, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution})
	b.refused(err, report.NotImported, b.Solution, "deploy import")
}

// TestAddNamesWhatStays checks that add reports the charts of an archive that it does not install.
func TestAddNamesWhatStays(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{Files: map[string]string{"charts/cache-1.0.0.tgz": "not read"}})
	planned, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true}, Environment: b.Env, Solution: b.Solution, Version: "1.0.0"})
	b.noticed(planned, err, "charts/cache-1.0.0.tgz")
}

// saboteur stops the API server when it hears of a step.
type saboteur struct {
	report.Sink
	step, name string
	once       sync.Once
	stop       func()
}

func (s *saboteur) Emit(e report.Event) {
	s.Sink.Emit(e)
	if e.Step == s.step && strings.Contains(e.Name, s.name) && e.State == report.Done {
		s.once.Do(s.stop)
	}
}

func TestAPIServerGoneInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	kubernetes := b.in
	impatient, err := cluster.Connect(cluster.Options{Kubeconfig: b.kubeconfig(), Now: time.Now, Retry: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := deployer.New(deployer.Config{
		Cluster: impatient, Sink: &saboteur{Sink: b.Sink, step: "apply", name: "roles", stop: kubernetes.StopAPIServer},
		Now: b.Now, Version: b.Version, Identity: b.Identity, LockWait: b.LockWait,
	})
	_, err = d.Add(t.Context(), deployer.AddOptions{Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution})
	if code := report.CodeOf(err); code != report.Interrupted && code != report.Unavailable {
		t.Errorf("%s: %v", code, err)
	}
	if err := kubernetes.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.find(deployments, b.Env, b.Solution+"-operator") != nil {
		t.Fatal("it was not in the middle")
	}
	b.LockWait = time.Minute // the lock of the first run could not be given back
	done := b.mustAdd("1.0.0")
	if !done.Parts[0].Resumes {
		t.Errorf("%+v", done)
	}
	b.get(deployments, b.Env, b.Solution+"-operator")
	if again := b.mustAdd("1.0.0"); !again.Empty() {
		t.Errorf("the second run did not finish: %+v", again)
	}
}
