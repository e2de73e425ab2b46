package deployer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// change upgrades or downgrades in the bed's environment; there are no nodes, so nothing ever becomes ready.
func (b *bed) change(direction records.Direction, version string) (*schema.Operation, error) {
	b.Helper()
	return b.Change(b.Context(), deployer.ChangeOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Direction: direction, Version: version,
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

func TestUpgradeNamespaceByNamespace(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	second := b.Env + "-b"
	b.environment(b.Env, second)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.activated("1.1.0", content{})
	_, err := b.Change(t.Context(), deployer.ChangeOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Direction: records.Up, Namespace: second,
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
	t.Parallel()
	b := newJudgment(t)
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
