package deployer_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// resume finishes what there is to finish for the bed's Solution, and returns it as "operation version namespace finished".
func (b *bed) resume(o deployer.Options) ([]string, error) {
	b.Helper()
	result, failure := b.Resume(b.Context(), deployer.ResumeOptions{Options: o, Solution: b.Solution})
	if result == nil {
		b.Fatal(failure)
	}
	data, err := json.Marshal(result)
	if err != nil {
		b.Fatal(err)
	}
	if err := schema.ValidateOutput("resumption", data); err != nil {
		b.Error(err)
	}
	var found []string
	for _, p := range result.Operations {
		state := " open"
		if p.Finished {
			state = " finished"
		}
		if p.User == "" || p.Started.IsZero() {
			b.Errorf("nobody began %s", p.Operation)
		}
		found = append(found, p.Operation+" "+p.Version+" "+p.Namespace+state)
	}
	return found, failure
}

func TestResume(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.imported("1.1.0", content{})
	want := func(o deployer.Options, want ...string) {
		t.Helper()
		found, err := b.resume(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	}
	noWait := deployer.Options{NoWait: true}
	want(noWait)
	_, err := b.Resume(t.Context(), deployer.ResumeOptions{Solution: "another-" + b.Solution})
	b.refused(err, report.NotFound, "another-"+b.Solution)

	// Nothing ever becomes ready here: what waits for it does not end.
	impatient := deployer.Options{Timeout: time.Nanosecond}
	if _, err = b.Add(t.Context(), deployer.AddOptions{Options: impatient, Environment: b.Env, Solution: b.Solution}); report.CodeOf(err) != report.Timeout {
		t.Fatalf("add: %v", err)
	}
	want(deployer.Options{DryRun: true}, "add 1.0.0 "+b.Env+" open")
	if found, resumed := b.resume(impatient); report.CodeOf(resumed) != report.Timeout || len(found) != 1 {
		t.Errorf("%q, %v", found, resumed)
	}
	want(noWait, "add 1.0.0 "+b.Env+" finished")
	want(noWait)

	_, err = b.Change(t.Context(), deployer.ChangeOptions{
		Options: impatient, Direction: records.Up, Environment: b.Env, Solution: b.Solution, Version: "1.1.0",
	})
	if report.CodeOf(err) != report.Timeout {
		t.Fatalf("upgrade: %v", err)
	}
	want(noWait, "upgrade 1.1.0 "+b.Env+" finished")

	// The last step of an activation is MetalK8s' document.
	if _, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.1.0"}); err != nil {
		t.Fatal(err)
	}
	b.forgetActive()
	want(noWait, "activate 1.1.0  finished")
	want(noWait)
}

// forgetActive makes MetalK8s' document say that no version is active, as it does before the last step of an activation.
func (b *bed) forgetActive() {
	b.Helper()
	document := b.get(configMaps, "metalk8s-solutions", "metalk8s-solutions")
	data := document.Object["data"].(map[string]any)
	var versions []schema.ImportedSolution
	if err := json.Unmarshal([]byte(data[b.Solution].(string)), &versions); err != nil {
		b.Fatal(err)
	}
	for i := range versions {
		versions[i].Active = false
	}
	text, err := json.Marshal(versions)
	if err != nil {
		b.Fatal(err)
	}
	data[b.Solution] = string(text)
	if _, err = b.Cluster.Update(b.Context(), document, cluster.WriteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// cut runs a verb that is interrupted when it is about to change the document of the environment.
func (b *bed) cut(verb func(context.Context, *deployer.Deployer) error) {
	b.Helper()
	ctx, interrupt := context.WithCancel(b.Context())
	defer interrupt()
	d := b.through(func(r *http.Request) {
		if r.Method != http.MethodGet && path.Base(r.URL.Path) == metalk8s.EnvironmentConfigMap && !r.URL.Query().Has("dryRun") {
			interrupt()
			<-ctx.Done()
			panic(http.ErrAbortHandler)
		}
	})
	b.refused(verb(ctx, d), report.Interrupted, "run the same command again")
}

// recorded is the version that the document of the environment has, "" when it has none.
func (b *bed) recorded() string {
	b.Helper()
	version, _, err := unstructured.NestedString(b.get(configMaps, b.Env, metalk8s.EnvironmentConfigMap).Object, "data", b.Solution)
	if err != nil {
		b.Fatal(err)
	}
	return version
}

// TestResumeBeforeObjects finishes what ended between the record and the first change of an object.
func TestResumeBeforeObjects(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	noWait := deployer.Options{NoWait: true}
	resumed := func(want, version string) {
		t.Helper()
		found, err := b.resume(noWait)
		if diff := cmp.Diff([]string{want}, found); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if got := b.recorded(); got != version {
			t.Errorf("the document has version %q, want %q", got, version)
		}
	}
	b.cut(func(ctx context.Context, d *deployer.Deployer) error {
		_, err := d.Add(ctx, deployer.AddOptions{Options: noWait, Environment: b.Env, Solution: b.Solution})
		return err
	})
	resumed("add 1.0.0 "+b.Env+" finished", "1.0.0")

	clock := b.newClock(b.Env, "a", "")
	b.cut(func(ctx context.Context, d *deployer.Deployer) error {
		_, err := d.Remove(ctx, deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution, Data: deployer.KeepData})
		return err
	})
	resumed("remove  "+b.Env+" finished", "")
	if b.find(b.clock(), b.Env, clock.GetName()) == nil {
		t.Error("data that was to be kept was deleted")
	}
}

// TestResumeDeletesNoData leaves a removal whose data was to go to the command itself, until none is left.
func TestResumeDeletesNoData(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	clock := b.held("a", "example.com/hold")
	var out exported
	_, err := b.Remove(t.Context(), deployer.RemoveOptions{
		Options: deployer.Options{Timeout: soon}, Environment: b.Env, Solution: b.Solution, Data: deployer.DeleteData, Export: out.open,
	})
	b.refused(err, report.Timeout, "Clock "+b.Env+"/a")

	_, err = b.resume(deployer.Options{})
	b.refused(err, report.DataLoss, "1 of kind Clock in namespace "+b.Env, "--delete-data")
	if b.find(deployments, b.Env, b.Solution+"-operator") == nil || b.find(b.clock(), b.Env, "a") == nil {
		t.Error("something was removed")
	}
	b.finalizers(clock, "[]")
	b.awaitGone(clock)
	found, err := b.resume(deployer.Options{})
	if diff := cmp.Diff([]string{"remove  " + b.Env + " finished"}, found); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if b.find(deployments, b.Env, b.Solution+"-operator") != nil {
		t.Error("the operator is still there")
	}
}
