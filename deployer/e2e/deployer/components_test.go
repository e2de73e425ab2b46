package deployer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestComponents brings up Solutions of components where pods become ready and jobs end.
func TestComponents(t *testing.T) {
	t.Parallel()
	c := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true})
	t.Run("life", func(t *testing.T) { newCloud(t, c).live() })
	t.Run("failure", func(t *testing.T) { newCloud(t, c).failAndResume() })
	t.Run("rights", func(t *testing.T) { newCloud(t, c).lackRights() })
	t.Run("slow end", func(t *testing.T) { newCloud(t, c).endSlowly() })
	t.Run("restart", func(t *testing.T) { newCloud(t, c).restart() })
}

// cloud is a Solution of a chart whose hooks make its database, a job, an operator, and manifests that need them.
type cloud struct{ *bed }

func newCloud(t *testing.T, c *testcluster.Cluster) *cloud {
	t.Helper()
	return &cloud{newBedOn(t, c)}
}

// graph is that of every version.
const graph = `components:
  - {name: identity, chart: charts/identity.tgz}
  - {name: migrate, job: components/migrate.yaml, once: perVersion, dependsOn: [{component: identity}]}
  - {name: compute, operator: operators/compute, image: {name: $operator}, dependsOn: [{component: migrate}]}
  - {name: network, manifests: components/network.yaml, timeout: 5s, dependsOn: [{component: identity}]}
  - {name: board, manifests: components/board.yaml, dependsOn: [{component: compute}, {component: network}]}
`

// podSpec is the pod template of a Deployment and a Job.
const podSpec = `spec:
      restartPolicy: $policy
      containers: [{name: main, image: "$repository/$operator:$version"}]
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: $name}
spec:
  selector: {matchLabels: {app: $name}}
  template:
    metadata: {labels: {app: $name}}
    ` + podSpec

const job = `apiVersion: batch/v1
kind: Job
metadata: {name: $name$hook}
spec:
  template:
    ` + podSpec

const hook = `, annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-weight: "$weight"}`

const password = `apiVersion: v1
kind: Secret
metadata: {name: identity-admin}
stringData: {password: {{ randAlphaNum 20 }}}
`

// content returns the content of a version, with more files.
func (c *cloud) content(version string, more map[string]string) content {
	operator := c.Solution + "-operator"
	fill := func(text, name, repository string, more ...string) string {
		policy := "Always"
		if strings.Contains(text, "kind: Job") {
			policy = "Never"
		}
		more = append(more, "$hook", "", "$name", name, "$operator", operator, "$version", version, "$repository", repository, "$policy", policy)
		return strings.NewReplacer(more...).Replace(text)
	}
	ours, charts := "{{ repository }}", `{{ "{{ repository }}" }}`
	files := map[string]string{
		"charts/identity.tgz": deployertest.Chart(c, "identity", map[string]string{
			"templates/secret.yaml":  password,
			"templates/server.yaml":  fill(deployment, "identity", charts),
			"templates/db-sync.yaml": fill(job, "z-db-sync", charts, "$hook", strings.ReplaceAll(hook, "$weight", "-5")),
			"templates/users.yaml":   fill(job, "a-users", charts, "$hook", strings.ReplaceAll(hook, "$weight", "5")),
		}),
		"components/migrate.yaml":     fill(job, "migrate", ours),
		"operators/compute/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: compute}\nrules:\n- {apiGroups: [''], resources: [services], verbs: [get, list]}\n",
		"components/network.yaml":     fill(deployment, "network", ours),
		"components/board.yaml":       fill(deployment, "board", ours),
	}
	maps.Copy(files, more)
	return content{Manifest: fill(graph, "", ours), Files: files}
}

// choose adds a version with a choice of components, and waits for them.
func (c *cloud) choose(version string, names ...string) (*schema.Operation, error) {
	c.Helper()
	choice, err := components.ParseChoice(nil, names)
	if err != nil {
		c.Fatal(err)
	}
	return c.Add(c.Context(), deployer.AddOptions{
		Environment: c.Env, Solution: c.Solution, Version: version, Rendering: plan.Rendering{Parts: plan.Parts{Choice: choice}},
	})
}

func (c *cloud) must(done *schema.Operation, err error) *schema.Operation {
	c.Helper()
	if err != nil {
		c.Fatalf("%v\n%q", err, report.Hints(err))
	}
	return done
}

// live is the life of components: added, upgraded, some of them deselected, removed.
func (c *cloud) live() {
	c.activated("1.0.0", c.content("1.0.0", nil))
	before := c.position()
	c.must(c.choose("1.0.0"))
	c.inOrder(before, "1.0.0")
	c.wantHealth(schema.HealthReady)
	if again := c.must(c.choose("1.0.0")); !again.Empty() {
		c.Errorf("the same again changes something: %+v", again)
	}
	drawn := c.password()

	c.activated("1.1.0", c.content("1.1.0", nil))
	before = c.position()
	c.must(c.Change(c.Context(), deployer.ChangeOptions{Environment: c.Env, Solution: c.Solution, Version: "1.1.0", Direction: records.Up}))
	c.inOrder(before, "1.1.0")
	c.running("1.1.0")
	if got := c.password(); got != drawn {
		c.Errorf("the upgrade has changed the password: %q, was %q", got, drawn)
	}

	before = c.position()
	c.must(c.choose("1.1.0", "compute=false", "board=false"))
	if diff := cmp.Diff([]string{"board", "compute"}, c.deleted(before, 2)); diff != "" {
		c.Errorf("Deployments deleted, one after the other (-want +got):\n%s", diff)
	}
	c.wantHealth(schema.HealthReady)

	c.must(c.Remove(c.Context(), deployer.RemoveOptions{Environment: c.Env, Solution: c.Solution}))
	c.nothingLeft()
}

// failAndResume checks that a failed component holds up only those that need it, and that resume continues with these two.
func (c *cloud) failAndResume() {
	nowhere := strings.ReplaceAll(c.content("1.0.0", nil).Files["components/network.yaml"], "restartPolicy", "nodeSelector: {disk: "+c.Env+"}\n      restartPolicy")
	c.activated("1.0.0", c.content("1.0.0", map[string]string{"components/network.yaml": nowhere}))
	_, err := c.choose("1.0.0")
	c.refused(err, report.Timeout, "Deployment "+c.Env+"/network", c.Solution+".board", "it was not started, because it needs "+c.Solution+".network, which failed")
	if c.find(deployments, c.Env, "board") != nil {
		c.Error("board was begun without what it needs")
	}
	if status := c.deployment("compute").Status; status.AvailableReplicas != 1 {
		c.Errorf("compute is not ready, though it needs nothing that failed: %+v", status)
	}

	label := fmt.Sprintf(`{"metadata": {"labels": {"disk": %q}}}`, c.Env)
	if _, err = c.in.Client().CoreV1().Nodes().Patch(c.Context(), "fake-0", types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
	await(c.T, func() (appsv1.DeploymentStatus, bool) {
		status := c.deployment("network").Status
		return status, status.AvailableReplicas == 1
	})
	syncs := c.uid("z-db-sync")
	resumed, err := c.Resume(c.Context(), deployer.ResumeOptions{Environment: c.Env})
	if err != nil || len(resumed.Operations) != 1 || !resumed.Operations[0].Finished {
		c.Fatalf("%+v, %v", resumed, err)
	}
	c.wantHealth(schema.HealthReady)
	c.deployment("board")
	if c.uid("z-db-sync") != syncs {
		c.Error("a hook that had ended was run again")
	}
	c.must(c.Remove(c.Context(), deployer.RemoveOptions{Environment: c.Env, Solution: c.Solution}))
	c.nothingLeft()
}

// lackRights checks that a component, and a kind of it, that the user has no right to deploy is reported before anything is changed.
func (c *cloud) lackRights() {
	c.activated("1.0.0", c.content("1.0.0", map[string]string{
		"components/network.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: network}\nspec: {minAvailable: 1, selector: {matchLabels: {app: network}}}\n",
	}))
	c.create(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all-but-policy}
rules:
- {apiGroups: ["", apps, batch, rbac.authorization.k8s.io, coordination.k8s.io, apiextensions.k8s.io, admissionregistration.k8s.io, ` + c.Group + `], resources: ["*"], verbs: ["*"]}
`)
	c.create(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all-but-policy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all-but-policy}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: somebody}]
`)
	kubeconfig, err := c.in.KubeconfigFor("somebody")
	if err != nil {
		c.Fatal(err)
	}
	admin := c.Deployer
	c.Deployer = c.connect(kubeconfig)
	_, err = c.choose("1.0.0")
	c.refused(err, report.Forbidden, "poddisruptionbudgets", c.Env)
	c.Deployer = admin
	c.nothingLeft()
}

// endSlowly removes components while the pod of one of them has not ended: what it needs stays until then.
func (c *cloud) endSlowly() {
	c.activated("1.0.0", c.content("1.0.0", nil))
	c.must(c.choose("1.0.0"))
	pods, err := c.in.Client().CoreV1().Pods(c.Env).List(c.Context(), metav1.ListOptions{LabelSelector: "app=board"})
	if err != nil || len(pods.Items) != 1 {
		c.Fatalf("%v, %v", pods, err)
	}
	pod := c.get(cluster.PodKind, c.Env, pods.Items[0].Name)
	c.finalizers(pod, `["example.com/ending"]`)

	before := c.position()
	removed := make(chan error, 1)
	go func() {
		_, err := c.Remove(c.Context(), deployer.RemoveOptions{Environment: c.Env, Solution: c.Solution})
		removed <- err
	}()
	c.await(func(context.Context) (bool, string) {
		waits := slices.ContainsFunc(c.Sink.Events(), func(e report.Event) bool { return strings.Contains(e.Note, "its pods have not ended yet") })
		return waits, "the removal does not wait for the pod"
	})
	c.await(func(context.Context) (bool, string) { // the garbage collector deletes it, a moment after its Deployment
		return c.get(cluster.PodKind, c.Env, pod.GetName()).GetDeletionTimestamp() != nil, "the pod is not being deleted"
	})
	for _, name := range []string{"compute", "network", "identity"} { // which board needs, and these need
		if c.deployment(name).DeletionTimestamp != nil {
			c.Errorf("%s is removed while a pod that needs it has not ended", name)
		}
	}
	c.finalizers(pod, "null")
	if err := <-removed; err != nil {
		c.Fatal(err)
	}
	if names := c.deleted(before, 4); names[0] != "board" || names[3] != "identity" {
		c.Errorf("removed in the order %q", names)
	}
	c.nothingLeft()
}

// restart takes the API server away twice while components are brought up: after a hook of one, and after another one, which is a
// job. No job runs twice for that.
func (c *cloud) restart() {
	c.activated("1.0.0", c.content("1.0.0", nil))
	var sink report.Sink = c.Sink
	var failures []error
	first := map[string]types.UID{}
	for name, restarts := range map[string]bool{"z-db-sync": true, "a-users": false, "migrate": true} { // one after the other
		sink = &saboteur{Sink: sink, step: "task", name: name, stop: func() {
			if first[name] = c.uid(name); restarts {
				failures = append(failures, c.in.RestartAPIServer(c.Context()))
			}
		}}
	}
	disturbed := deployer.New(deployer.Config{Cluster: c.Cluster, Sink: sink, Now: time.Now, Version: c.Version, Identity: c.Identity})
	_, err := disturbed.Add(c.Context(), deployer.AddOptions{Environment: c.Env, Solution: c.Solution})
	if failed := errors.Join(failures...); failed != nil || len(first) != 3 {
		c.Fatalf("%v; ended are %v", failed, first)
	}
	if err != nil {
		c.Logf("the API server was away for too long: %v", err)
		c.LockWait = time.Minute
		c.must(c.choose("1.0.0"))
	}
	c.wantHealth(schema.HealthReady)
	if again := c.must(c.choose("1.0.0")); !again.Empty() {
		c.Errorf("it was not finished: %+v", again)
	}
	for name, uid := range first {
		if c.uid(name) != uid {
			c.Errorf("%s was run again", name)
		}
	}
}

// password returns the password that the chart of identity has generated.
func (c *cloud) password() string {
	c.Helper()
	drawn, _, _ := unstructured.NestedString(c.get(secrets, c.Env, "identity-admin").Object, "data", "password")
	return drawn
}

func (c *cloud) deployment(name string) *appsv1.Deployment {
	c.Helper()
	d, err := c.in.Client().AppsV1().Deployments(c.Env).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return d
}

// uid is that of a Job.
func (c *cloud) uid(name string) types.UID {
	c.Helper()
	j, err := c.in.Client().BatchV1().Jobs(c.Env).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return j.UID
}

// position is where the history of the cluster has come to.
func (c *cloud) position() string {
	c.Helper()
	list, err := c.in.Client().AppsV1().Deployments(c.Env).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return list.ResourceVersion
}

// follow reads what changed in the environment since a position, until enough is seen.
func (c *cloud) follow(position string, watching func(context.Context, metav1.ListOptions) (watch.Interface, error), enough func(watch.Event) bool) {
	c.Helper()
	w, err := watching(c.Context(), metav1.ListOptions{ResourceVersion: position, TimeoutSeconds: new(int64(60))})
	if err != nil {
		c.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if enough(event) {
			return
		}
	}
	c.Fatal("not everything that was expected has happened")
}

// deleted are the first Deployments that went since a position, in their order.
func (c *cloud) deleted(position string, count int) (names []string) {
	c.Helper()
	c.follow(position, c.in.Client().AppsV1().Deployments(c.Env).Watch, func(event watch.Event) bool {
		if d, ok := event.Object.(*appsv1.Deployment); ok && event.Type == watch.Deleted {
			names = append(names, d.Name)
		}
		return len(names) == count
	})
	return names
}

// span is when an object was written, and when it was ready, as numbers that the API server gives to changes.
type span struct{ begun, ready int64 }

// inOrder expects what is in a version to have come one after the other since a position.
func (c *cloud) inOrder(position, version string) {
	c.Helper()
	spans := map[string]*span{}
	see := func(event watch.Event) int {
		name, pod, ready := judge(event.Object)
		if pod == nil || !strings.Contains(pod.Containers[0].Image, "-operator:"+version+"@") {
			return 0
		}
		number, err := strconv.ParseInt(event.Object.(metav1.Object).GetResourceVersion(), 10, 64)
		if err != nil {
			c.Fatal(err)
		}
		if spans[name] == nil {
			spans[name] = &span{begun: number}
		}
		if !ready || spans[name].ready != 0 {
			return 0
		}
		spans[name].ready = number
		return 1
	}
	client, missing := c.in.Client(), 5 // the Solution's operator, identity, compute, network, board
	c.follow(position, client.AppsV1().Deployments(c.Env).Watch, func(e watch.Event) bool { missing -= see(e); return missing == 0 })
	missing = 3 // z-db-sync, a-users, migrate
	c.follow(position, client.BatchV1().Jobs(c.Env).Watch, func(e watch.Event) bool { missing -= see(e); return missing == 0 })
	for _, edge := range []struct{ first, then string }{
		{"z-db-sync", "a-users"}, {"a-users", "migrate"}, {"identity", "migrate"}, {"identity", "network"}, {"migrate", "compute"}, {"compute", "board"}, {"network", "board"},
	} {
		if spans[edge.then].begun < spans[edge.first].ready {
			c.Errorf("version %s: %s was begun before %s was ready", version, edge.then, edge.first)
		}
	}
}

// judge returns the name of an object, its pod template, and whether it is ready.
func judge(object any) (name string, pod *corev1.PodSpec, ready bool) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		s := o.Status
		return o.Name, &o.Spec.Template.Spec, s.ObservedGeneration == o.Generation && s.AvailableReplicas == 1 && s.UpdatedReplicas == 1
	case *batchv1.Job:
		return o.Name, &o.Spec.Template.Spec, o.Status.Succeeded == 1
	default:
		return "", nil, false
	}
}

// nothingLeft expects nothing of the Solution in its environment, and no record of it but that of its versions.
func (c *cloud) nothingLeft() {
	c.Helper()
	kinds, err := c.Cluster.Kinds(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	var left []string
	for _, kind := range kinds {
		if kind.Scope.Name() != "namespace" || kind.GroupVersionKind.Kind == "Event" {
			continue
		}
		for object, err := range c.Cluster.List(c.Context(), kind.GroupVersionKind, c.Env, metav1.ListOptions{}) {
			if err != nil {
				c.Fatal(err)
			}
			if name := object.GetName(); name != "kube-root-ca.crt" && name != "default" && !strings.HasPrefix(name, "metalk8s-") && object.GetDeletionTimestamp() == nil {
				left = append(left, kind.GroupVersionKind.Kind+" "+name)
			}
		}
	}
	if len(left) > 0 {
		c.Errorf("there is still %s", strings.Join(left, ", "))
	}
	states, err := c.Records.Engine.States(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, s := range states {
		if s.Namespace == c.Env && (s.Pending != nil || s.Current != nil && len(s.Current.Objects) > 0) {
			c.Errorf("there is still a record of %s", s.Key)
		}
	}
}
