package survey_test

import (
	"fmt"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// branches is a tree as indented lines, without objects that make no pods.
func branches(t *schema.ObjectTree) (lines []string) {
	for _, g := range t.Groups {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s operated=%t", g.Namespace, g.Component, g.Operated)))
		for _, o := range g.Objects {
			if len(o.Pods) > 0 {
				lines = append(lines, " "+o.APIVersion+" "+o.String())
			}
			for _, p := range o.Pods {
				lines = append(lines, fmt.Sprintf("  %s %s %q", p.Name, p.State, p.Claims))
				for _, c := range p.Containers {
					lines = append(lines, fmt.Sprintf("   %s %s %d: %s", c.Name, c.State, c.Restarts, c.Reason))
				}
			}
		}
	}
	return lines
}

// treeBed is a Solution whose operator has two pods, and has made a StatefulSet for a custom resource. Beside them is a stranger.
func treeBed(t *testing.T) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	operator := b.Server.Object("Deployment", site, "shop-operator")
	b.Server.Put(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-operator-77f, namespace: site, uid: set-1,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: %q, controller: true}]}}`, operator.GetUID()))
	b.Server.Put(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: clock, namespace: site, uid: set-2,
  ownerReferences: [{apiVersion: %s/v1, kind: Clock, name: tower, uid: tower, controller: true}]}}`, deployertest.Group(shop)))
	pod := func(name, owner, rest string) {
		b.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: site, labels: {pod-template-hash: 77f}, ownerReferences: [{%s, controller: true}]}, %s}`, name, owner, rest))
	}
	set := b.Server.Object("ReplicaSet", site, "shop-operator-77f").GetUID()
	ofOperator := fmt.Sprintf("apiVersion: apps/v1, kind: ReplicaSet, name: shop-operator-77f, uid: %q", set)
	pod("operator-b", ofOperator, `spec: {nodeName: node-1, containers: [{name: manager}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}],
  containerStatuses: [{name: manager, ready: true, state: {running: {}}}]}`)
	pod("operator-a", ofOperator, `spec: {nodeName: node-1, initContainers: [{name: prepare}], containers: [{name: manager}]}, status: {phase: Pending,
  initContainerStatuses: [{name: prepare, ready: true, state: {terminated: {exitCode: 0}}}],
  containerStatuses: [{name: manager, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2}}}]}`)
	stateful := b.Server.Object("StatefulSet", site, "clock").GetUID()
	pod("clock-0", fmt.Sprintf("apiVersion: apps/v1, kind: StatefulSet, name: clock, uid: %q", stateful), `spec: {containers: [{name: hands}], volumes: [{name: data, persistentVolumeClaim: {claimName: data-clock-0}}]}, status: {phase: Pending,
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available"}]}`)
	pod("stranger", "apiVersion: apps/v1, kind: ReplicaSet, name: unknown, uid: unknown", `spec: {containers: [{name: secret}]}`)
	return b
}

func TestTree(t *testing.T) {
	b := treeBed(t)
	tree, err := b.Survey.Tree(t.Context(), survey.Scope{Environment: site, Solution: shop})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"operated=false", "site  operated=false", " apps/v1 Deployment site/shop-operator",
		"  operator-a failed []", "   prepare completed 0: ", "   manager failed 3: ends again and again (3 times so far): exit code 2",
		"  operator-b ready []", "   manager ready 0: ",
		"site  operated=true", " apps/v1 StatefulSet site/clock", `  clock-0 failed ["data-clock-0"]`, "   hands progressing 0: it has not started",
	}
	if diff := cmp.Diff(want, branches(tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	deployertest.Valid(t, "objecttree", tree)
}

// TestTreeWithoutPods has the objects of the records, and the right that is missing for their pods.
func TestTreeWithoutPods(t *testing.T) {
	b := treeBed(t)
	b.Only("", func(a authorization.ResourceAttributes) bool { return a.Resource != "pods" })
	tree, err := b.Survey.Tree(t.Context(), survey.Scope{Environment: site, Solution: shop})
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Unseen) != 1 || !strings.Contains(tree.Unseen[0].Rules, `resources: ["pods"]`) {
		t.Errorf("%+v", tree.Unseen)
	}
	if diff := cmp.Diff([]string{"operated=false", "site  operated=false"}, branches(tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
