package deployer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// drift lists what a user who may only look finds changed: "update Deployment env1/x: path (manager)".
func (b *bed) drift() []string {
	b.Helper()
	done, err := b.viewer().Diff(b.Context(), survey.Selection{Environment: b.Env, Solution: b.Solution})
	if err != nil {
		b.Fatalf("%v\n%q", err, report.Hints(err))
	}
	valid(b.T, "operation", done)
	return b.lines(done)
}

func (b *bed) lines(done *schema.Operation) []string {
	lines := []string{}
	for _, part := range done.Parts {
		for _, change := range part.Changes {
			if change.Action == schema.ActionNone {
				continue
			}
			line := string(change.Action) + " " + strings.ReplaceAll(change.Object.String(), b.Env+"/"+b.Solution, "")
			for _, field := range change.Fields {
				line += ", " + field.Path
				if field.Manager != "" {
					line += " (" + field.Manager + ")"
				}
				if field.Manager != "" && field.Since == nil {
					b.Errorf("%s: nothing says since when", line)
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// viewer may look at everything and change nothing.
func (b *bed) viewer() *deployer.Deployer {
	b.Helper()
	name := "viewer-" + b.Env
	if b.find(clusterRoles, "", name) == nil {
		b.create("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\nrules:\n- {apiGroups: ['*'], resources: ['*'], verbs: [get, list]}\n")
		b.bind(name)
	}
	return b.connect(b.kubeconfigFor(name))
}

// bind gives a ClusterRole to the user of the same name.
func (b *bed) bind(name string) {
	b.Helper()
	b.create("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + name + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " +
		name + "}\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: " + name + "}]\n")
}

// repair repairs the bed's environment.
func (b *bed) repair(o plan.Options) (*schema.Operation, error) {
	b.Helper()
	o.NoWait = true
	done, err := b.Repair(b.Context(), deployer.RepairOptions{Options: o, Selection: survey.Selection{Environment: b.Env, Solution: b.Solution}})
	if err == nil {
		valid(b.T, "operation", done)
	}
	return done, err
}

func (b *bed) wantRepaired(o plan.Options, lines ...string) {
	b.Helper()
	done, err := b.repair(o)
	if err != nil {
		b.Fatalf("%v\n%q", err, report.Hints(err))
	}
	if diff := cmp.Diff(append([]string{}, lines...), b.lines(done)); diff != "" {
		b.Errorf("repaired: %s", diff)
	}
	if left := b.drift(); len(left) > 0 {
		b.Errorf("after the repair: %q", left)
	}
}

func (b *bed) wantDrift(lines ...string) {
	b.Helper()
	if diff := cmp.Diff(append([]string{}, lines...), b.drift()); diff != "" {
		b.Errorf("drift: %s", diff)
	}
}

// apply is another manager that applies some fields of a Deployment by force, as tools do that follow a repository.
func (b *bed) applyDeployment(manager, name, spec string) {
	b.Helper()
	text := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, "labels": {"theirs": "yes"}}, "spec": %s}`, name, spec)
	force := true
	_, err := b.in.Client().AppsV1().Deployments(b.Env).Patch(b.Context(), name, types.ApplyPatchType, []byte(text),
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		b.Fatal(err)
	}
}

func TestDriftIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	operator := b.Solution + "-operator"
	b.wantDrift()

	// What others add, and how many replicas they want, is theirs.
	config := b.get(configMaps, b.Env, operator+"-config")
	b.patch(config, `{"data": {"theirs": "x"}, "metadata": {"annotations": {"note": "x"}, "labels": {"theirs": "yes"}}}`)
	scale := `{"spec": {"replicas": 0}}`
	if _, err := b.in.Client().AppsV1().Deployments(b.Env).Patch(t.Context(), operator, types.MergePatchType, []byte(scale),
		metav1.PatchOptions{FieldManager: "kubectl"}, "scale"); err != nil {
		t.Fatal(err)
	}
	b.wantDrift()

	// Deployed objects that a user has edited or deleted are not.
	b.patch(config, `{"data": {"operator.yaml": "changed"}}`)
	b.patch(b.get(deployments, b.Env, operator), `{"metadata": {"labels": {"app.kubernetes.io/version": null}}}`)
	role := b.getRole()
	if err := b.Cluster.Delete(t.Context(), role, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	found := []string{
		"create Role -operator",
		"update ConfigMap -operator-config, data[operator.yaml] (another-manager)",
		"update Deployment -operator, metadata.labels[app.kubernetes.io/version]",
	}
	b.wantDrift(found...)
	before := b.get(configMaps, b.Env, operator+"-config").GetResourceVersion()
	if planned, err := b.repair(plan.Options{DryRun: true}); err != nil || !planned.Planned || planned.Empty() {
		t.Errorf("%+v, %v", planned, err)
	}
	if after := b.get(configMaps, b.Env, operator+"-config").GetResourceVersion(); after != before {
		t.Error("a dry run changed something")
	}
	b.wantRepaired(plan.Options{}, found...)
	repaired := b.get(configMaps, b.Env, operator+"-config")
	if data, _, _ := unstructured.NestedStringMap(repaired.Object, "data"); data["theirs"] != "x" || data["operator.yaml"] == "changed" || repaired.GetLabels()["theirs"] != "yes" {
		t.Errorf("data %v, labels %v", data, repaired.GetLabels())
	}
	if replicas, _, _ := unstructured.NestedInt64(b.get(deployments, b.Env, operator).Object, "spec", "replicas"); replicas != 0 {
		t.Errorf("%d replicas, and the other manager wanted none", replicas)
	}
	b.wantRepaired(plan.Options{})

	// Repairs are on the record, the second in the place of the first: what one could go back to stays.
	b.patch(repaired, `{"data": {"operator.yaml": "again"}}`)
	b.wantRepaired(plan.Options{}, found[1])
	history, err := b.Records.History(t.Context(), records.HistoryOptions{Environment: b.Env, Solution: b.Solution})
	if err != nil {
		t.Fatal(err)
	}
	var operations []string
	for _, entry := range history.Operations {
		operations = append(operations, entry.Operation)
	}
	if !slices.Equal(operations, []string{"repair", "add"}) {
		t.Errorf("history: %q", operations)
	}
}

// TestRepairAndAnotherTool leaves fields alone that another tool would apply again.
func TestRepairAndAnotherTool(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	operator := b.Solution + "-operator"
	b.applyDeployment("argo", operator, `{"template": {"spec": {"containers": [{"name": "`+operator+`", "image": "theirs:1"}]}}}`)
	container := "spec.template.spec.containers[name=" + operator + "]"
	b.wantDrift("update Deployment -operator, " + container + ".image (argo)")
	_, err := b.repair(plan.Options{})
	b.refused(err, report.Conflict, "Deployment "+b.Env+"/"+operator, container+".image", "argo", "--force-conflicts")
	b.wantRepaired(plan.Options{Force: true}, "update Deployment -operator, "+container+".image (argo)")
	if b.get(deployments, b.Env, operator).GetLabels()["theirs"] != "yes" {
		t.Error("a field that was never ours is gone")
	}

	// An object that was made again is not the one that was deployed.
	config := b.get(configMaps, b.Env, operator+"-config")
	if err = b.Cluster.Delete(t.Context(), config, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.wantDrift("create ConfigMap -operator-config")
	client := b.in.Client().CoreV1().ConfigMaps(b.Env)
	theirs := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + config.GetName() + `"}, "data": {"theirs": "1"}}`
	if _, err = client.Patch(t.Context(), config.GetName(), types.ApplyPatchType, []byte(theirs), metav1.PatchOptions{FieldManager: "argo"}); err != nil {
		t.Fatal(err)
	}
	_, err = b.repair(plan.Options{})
	b.refused(err, report.Conflict, config.GetName(), "field manager argo", "--adopt")
	if _, err := b.repair(plan.Options{Adopt: true}); err != nil {
		t.Fatal(err)
	}
	b.wantDrift()
}

// TestStatusWithDrift finds what the metadata do not show.
func TestStatusWithDrift(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	operator := b.Solution + "-operator"
	b.settle(operator)
	b.patch(b.get(deployments, b.Env, operator), `{"metadata": {"labels": {"app.kubernetes.io/name": "other"}}}`)
	b.wantHealth(schema.HealthReady) // the generation of a Deployment does not count its labels
	status, err := b.viewer().Survey.Status(t.Context(), survey.StatusOptions{Drift: true})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, "status", status)
	if !status.HasDrift() {
		t.Error("nothing was found")
	}
	for _, e := range status.Environments {
		if e.Name != b.Env {
			continue
		}
		d := e.Namespaces[0].Deployments[0]
		if len(d.Drift) != 1 || d.Health != schema.HealthDrifted || !strings.Contains(d.Reasons[0].Text, "(by another-manager at 20") {
			t.Errorf("%+v", d)
		}
	}
}

// TestDriftOfManyEnvironments asks for each Solution's objects as they were deployed, and for nothing else one by one.
func TestDriftOfManyEnvironments(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestStatusWithDrift")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.activated("1.0.0", content{})
	const many = 100
	for i := range many {
		b.environment("many", fmt.Sprintf("many-%03d", i))
	}
	_, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{NoWait: true}, Environment: "many", Solution: b.Solution, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	counted, requests := b.counted()
	done, err := counted.Diff(t.Context(), survey.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if !done.Empty() || len(done.Parts) != many+1 {
		t.Errorf("%d parts, %q", len(done.Parts), b.lines(done))
	}
	if n := requests.Load(); n > many+60 {
		t.Errorf("%d requests", n)
	}
	before := requests.Load()
	if repaired, err := counted.Repair(t.Context(), deployer.RepairOptions{}); err != nil || !repaired.Empty() {
		t.Errorf("%+v, %v", repaired, err)
	}
	t.Logf("diff of %d namespaces: %d requests, repair: %d", many, before, requests.Load()-before)
}

// counted returns the verbs through a proxy that counts requests.
func (b *bed) counted() (*deployer.Deployer, *atomic.Int64) {
	b.Helper()
	var n atomic.Int64
	return b.through(func(*http.Request) { n.Add(1) }), &n
}

// through returns the verbs of an administrator through a proxy that sees each request.
func (b *bed) through(see func(*http.Request)) *deployer.Deployer {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.in.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see(r)
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(server.Close)
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	through.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	through.CurrentContext = "proxy"
	file := filepath.Join(b.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*through, file); err != nil {
		b.Fatal(err)
	}
	return b.connect(file)
}
