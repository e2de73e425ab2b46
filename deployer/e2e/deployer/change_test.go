package deployer_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// change upgrades or downgrades in the bed's environment; there are no nodes, so nothing ever becomes ready.
func (b *bed) change(direction records.Direction, version string) (*schema.Operation, error) {
	b.Helper()
	return b.Change(b.Context(), deployer.ChangeOptions{
		Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Direction: direction, Version: version,
	})
}

// running expects a version in the record and in the image of the operator.
func (b *bed) running(version string) {
	b.Helper()
	record := b.get(configMaps, b.Env, metalk8s.EnvironmentConfigMap)
	if got, _, _ := unstructured.NestedString(record.Object, "data", b.Solution); got != version {
		b.Errorf("metalk8s-environment says %q, want %s", got, version)
	}
	operator := b.get(deployments, b.Env, b.Solution+"-operator")
	containers, _, _ := unstructured.NestedSlice(operator.Object, "spec", "template", "spec", "containers")
	if image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image"); !strings.Contains(image, "-operator:"+version+"@") {
		b.Errorf("the operator's image is %s, want version %s", image, version)
	}
}

func TestUpgradeAndDowngrade(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.newClock(b.Env, "wall", "hands: 2")
	b.activated("1.1.0", content{
		Specs: []string{"colour"}, Role: "- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}",
	})

	_, err := b.add("1.1.0")
	b.refused(err, report.Conflict, "1.0.0", "deploy upgrade "+b.Env+" "+b.Solution+" 1.1.0")
	_, err = b.change(records.Down, "1.1.0")
	b.refused(err, report.Refused, "no downgrade", "deploy upgrade")
	_, err = b.change(records.Up, "2.0.0")
	b.refused(err, report.NotImported, "2.0.0", "1.1.0")

	done, err := b.change(records.Up, "latest")
	if err != nil {
		t.Fatal(err)
	}
	b.running("1.1.0")
	if text := strings.Join(done.Notices, "\n"); done.Version != "1.1.0" || !strings.Contains(text, "new right") || !strings.Contains(text, "services") {
		t.Errorf("version %s, notices:\n%s", done.Version, text)
	}
	if again, err := b.change(records.Up, "1.1.0"); err != nil || !again.Empty() {
		t.Errorf("upgrading again: %+v, %v", again, err)
	}
	if _, err := b.change(records.Down, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	b.running("1.0.0")
	if _, err := b.change(records.Down, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	b.get(b.clock(), b.Env, "wall")
}

func TestUpgradeNamespaceByNamespace(t *testing.T) {
	b := newBed(t)
	second := b.Env + "-b"
	b.environment(b.Env, second)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.activated("1.1.0", content{})
	_, err := b.Change(t.Context(), deployer.ChangeOptions{
		Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Direction: records.Up, Namespace: second,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.running("1.0.0")
	if _, err = b.change(records.Up, ""); err != nil {
		t.Fatal(err)
	}
	b.running("1.1.0")
}

// TestUpgradeGoesToTheActiveVersion: without a version an upgrade follows the rule of add.
func TestUpgradeGoesToTheActiveVersion(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("1.1.0", content{})
	done, err := b.change(records.Up, "")
	if err != nil || done.Version != "1.0.0" || !strings.Contains(strings.Join(done.Notices, "\n"), "deploy activate "+b.Solution+" 1.1.0") {
		t.Errorf("%+v, %v", done, err)
	}
	b.running("1.0.0")
	if done, err = b.change(records.Up, "latest"); err != nil || done.Version != "1.1.0" {
		t.Errorf("%+v, %v", done, err)
	}
	b.running("1.1.0")
}

func TestUpgradeOfWhatIsNotThere(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	_, err := b.change(records.Up, "1.0.0")
	b.refused(err, report.NotFound, b.Solution, b.Env)
	_, err = b.change(records.Down, "")
	b.refused(err, report.Usage, "version")
}

// TestUpgradeNeedsActivation: the operator of the new version works with a version of the API that is not served yet.
func TestUpgradeNeedsActivation(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("1.1.0", content{Crds: "v1 v2"})
	_, err := b.change(records.Up, "1.1.0")
	b.refused(err, report.Refused, "does not serve", "deploy activate "+b.Solution+" 1.1.0")
	b.running("1.0.0")
}

func TestUpgradeOverASkippedVersion(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("1.1.0", content{})
	b.imported("2.0.0", content{Manifest: "minUpgradeFrom: 1.1.0"})
	_, err := b.change(records.Up, "2.0.0")
	b.refused(err, report.Refused, "1.1.0 or later", "deploy upgrade "+b.Env+" "+b.Solution+" 1.1.0")
	for _, version := range []string{"1.1.0", "2.0.0"} {
		if _, err := b.change(records.Up, version); err != nil {
			t.Fatal(err)
		}
		b.running(version)
	}
}

func TestClusterOfAnotherAge(t *testing.T) {
	b := newBed(t)
	b.imported("1.0.0", content{Manifest: `kubernetesVersion: "<1.20"`})
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution})
	b.refused(err, report.Refused, "Kubernetes <1.20", testcluster.Shared(t).KubernetesVersion())
}

// TestInstancesTheVersionRejects: the cluster's definition is that of the active version; the one to deploy is stricter.
func TestInstancesTheVersionRejects(t *testing.T) {
	b := newBed(t)
	b.activated("1.1.0", content{Specs: []string{"colour"}})
	b.mustAdd("1.1.0")
	b.imported("1.0.0", content{})
	b.newClock(b.Env, "wall", "hands: 2, colour: red")
	_, err := b.change(records.Down, "1.0.0")
	b.refused(err, report.DataLoss, "Clock "+b.Env+"/wall", "spec.colour")
	b.running("1.1.0")
}

func TestRollback(t *testing.T) {
	b := newBed(t)
	roll := func(revision int64) (*schema.Operation, error) {
		return b.Rollback(t.Context(), deployer.RollbackOptions{
			Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Revision: revision,
		})
	}
	b.activated("1.0.0", content{})
	_, err := roll(0)
	b.refused(err, report.NotFound, b.Solution)
	b.mustAdd("1.0.0")
	_, err = roll(0)
	b.refused(err, report.Refused, "nothing before", "deploy history")
	b.activated("1.1.0", content{})
	if _, err = b.change(records.Up, "1.1.0"); err != nil {
		t.Fatal(err)
	}
	done, err := roll(0)
	if err != nil || done.Version != "1.0.0" {
		t.Fatalf("%+v, %v", done, err)
	}
	b.running("1.0.0")
	// One that was killed when everything was done is run again: it does not go back and forth.
	if done, err = roll(0); err != nil || !done.Empty() {
		t.Fatalf("%+v, %v", done, err)
	}
	b.running("1.0.0")
	_, err = roll(77)
	b.refused(err, report.NotFound, "revision 77")
	if _, err = roll(2); err != nil {
		t.Fatal(err)
	}
	b.running("1.1.0")
}

// TestRollbackOfWhatNeverBecomesReady: there are no nodes, so an upgrade that waits fails and goes back.
func TestRollbackOfWhatNeverBecomesReady(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.activated("1.1.0", content{})
	o := deployer.ChangeOptions{
		Options: deployer.Options{Timeout: 2 * time.Second}, Environment: b.Env, Solution: b.Solution, Direction: records.Up,
	}
	_, err := b.Change(t.Context(), o)
	b.refused(err, report.Timeout, b.Solution+"-operator")
	b.running("1.1.0")
	state, err := (&engine.Engine{Cluster: b.Cluster, Now: time.Now}).State(t.Context(), engine.Key{Namespace: b.Env, Name: b.Solution})
	if err != nil || state.Pending == nil || state.Pending.Version != "1.1.0" || state.Current.Version != "1.0.0" {
		t.Fatalf("%+v, %v", state, err)
	}
	o.RollBack = true
	_, err = b.Change(t.Context(), o)
	b.refused(err, report.Timeout, b.Solution+"-operator")
	b.running("1.0.0")
}
