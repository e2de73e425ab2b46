package loader_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const image = "registry.example/solutionctl@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// edge is a Solution with components: one has values and one is optional.
func edge(t *testing.T) deployertest.Content {
	t.Helper()
	return deployertest.Content{
		Files: map[string]string{
			"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{
				"values.yaml":       "size: 1\npassword: none\n",
				"templates/db.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData: {password: {{ .Values.password }}}\n",
			}),
			"components/api.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata: {of: one}\n",
			"components/extra.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: extra}\nspec: {replicas: 1}\n",
		},
		Manifest: `components:
  - {name: db, chart: charts/db.tgz}
  - {name: api, manifests: components/api.yaml, dependsOn: [{component: db}]}
  - {name: extra, manifests: components/extra.yaml, select: optional}
`,
	}
}

// bed has a Solution that was imported, and nothing else.
type bed struct {
	*deployertest.Bed
}

func newBed(t *testing.T) bed {
	t.Helper()
	b := bed{deployertest.New(t)}
	b.Imported("edge", "1.0.0", edge(t))
	b.Server.Stall("Job")
	return b
}

func (b bed) launcher(t *testing.T, text string) *loader.Launcher {
	t.Helper()
	c, err := schema.ParseLoaderConfiguration("loader.yaml", []byte("apiVersion: solutionctl.io/v1alpha1\nkind: LoaderConfiguration\nspec:\n  image: "+image+"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return &loader.Launcher{Deployer: b.Connect(), Configuration: c}
}

// unlisted is a list of active versions on this host that has none.
type unlisted struct{}

func (unlisted) Check() error                     { return nil }
func (unlisted) Read() (map[string]string, error) { return map[string]string{}, nil }
func (unlisted) Edit(context.Context, func(map[string]string)) ([]string, error) {
	return nil, nil
}

// TestUnlistedIsPlanned: a version that is active in the cluster and only not listed on this host keeps no Job from being planned and printed.
func TestUnlistedIsPlanned(t *testing.T) {
	b := newBed(t)
	b.Activated("edge", "1.0.0", edge(t))
	b.Namespace("infra", "infra")
	l := b.launcher(t, justEdge)
	l.Deployer.Active = unlisted{}
	if p, err := l.Plan(t.Context()); err != nil || len(p.Activate) != 1 || len(p.Environments) != 1 || p.Run == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if text, err := l.JobManifest(t.Context()); err != nil || !strings.Contains(string(text), "kind: Job") {
		t.Errorf("%s, %v", text, err)
	}
}

const justEdge = "  environments: [{name: infra, solutions: [{name: edge}]}]\n"

func isSuspended(job *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return suspended
}

// kubelet runs the pods of the loader's Jobs like a cluster, as often as allowed, until the test ends.
func (b bed) kubelet(t *testing.T, run func(context.Context, deployer.Config, *schema.LoadParameters) error) (pods func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := b.Connect().Cluster
	count := 0
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		started := map[string]bool{}
		for change, err := range c.Watch(ctx, kube.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, cluster.SystemNamespace, metav1.ListOptions{}) {
			if err != nil {
				return
			}
			job := change.Object
			if change.Type == "DELETED" || isSuspended(job) || health.JobEnded(job) != "" || started[string(job.GetUID())] {
				continue
			}
			started[string(job.GetUID())] = true
			count++
			name := job.GetName()
			data, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", cluster.SystemNamespace, name+"-parameters").Object, "data", "parameters.json")
			var values []byte
			if secret := b.Server.Object("Secret", cluster.SystemNamespace, name+"-values"); secret != nil {
				text, _, _ := unstructured.NestedString(secret.Object, "data", "values.json")
				values, _ = base64.StdEncoding.DecodeString(text)
			}
			p, err := loader.ParseParameters([]byte(data), values)
			if err != nil {
				t.Error(err)
				return
			}
			end := "Complete"
			if err = run(ctx, b.Connect().Config, p); err != nil {
				end = "Failed"
			}
			uid := job.GetUID()
			if job = b.Server.Object("Job", cluster.SystemNamespace, name); job == nil || job.GetUID() != uid || ctx.Err() != nil {
				continue
			}
			job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": end, "status": "True"}}}
			b.Put(job)
		}
	}()
	return func() int { return count }
}

func (b bed) names(kind string) string { return strings.Join(b.Server.Names(kind), " ") }

func TestStart(t *testing.T) {
	b := newBed(t)
	pods := b.kubelet(t, loader.Run)
	l := b.launcher(t, "  environments: [{name: infra, solutions: [{name: edge, values: {db: {size: 7, password: hunter2}}}]}]\n")
	plan, err := l.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "loaderplan", plan)
	if len(plan.Create) != 1 || len(plan.Activate) != 1 || plan.Empty() {
		t.Errorf("the plan is %+v", plan)
	}
	var planned []string
	for _, o := range plan.Afterwards {
		for _, part := range o.Parts {
			for _, change := range part.Changes {
				planned = append(planned, string(change.Action)+" "+part.Namespace+" "+change.Object.Kind+" "+change.Object.Name)
			}
		}
	}
	for _, want := range []string{"create infra ConfigMap db", "create infra Secret db", "create infra ConfigMap api", "create infra Deployment edge-operator"} {
		if !slices.Contains(planned, want) {
			t.Errorf("the plan of a first start lacks %q: %q", want, planned)
		}
	}
	progress, err := l.Start(t.Context(), loader.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "loadprogress", progress)
	if progress.Phase != schema.LoadReady || progress.Ready != 3 || len(progress.Parts) != 3 {
		t.Errorf("the loader is %+v", progress)
	}
	if size, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", "infra", "db").Object, "data", "size"); size != "7" {
		t.Errorf("size is %s", size)
	}
	object := b.Server.Object("ConfigMap", cluster.SystemNamespace, loader.ProgressName)
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	if data["phase"] != "Ready" || data["ready"] != "3/3" || data["run"] != progress.Run {
		t.Errorf("ConfigMap loader has %v", data)
	}
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
		if strings.Contains(b.names(kind), "solutionctl-loader") {
			t.Errorf("left behind is %s %s", kind, b.names(kind))
		}
	}
	for _, kind := range []string{"ConfigMap", "Event", "Job"} {
		for _, name := range b.Server.Names(kind) {
			namespace, short, _ := strings.Cut(name, "/")
			text, failure := b.Server.Object(kind, namespace, short).MarshalJSON()
			if failure != nil || strings.Contains(string(text), "hunter2") {
				t.Errorf("%s %s has the password: %v", kind, name, failure)
			}
		}
	}
	if told := fmt.Sprint(b.Sink.Events()); !strings.Contains(told, "infra/edge.db") || strings.Contains(told, "hunter2") {
		t.Errorf("told was %s", told)
	}

	// Again: nothing is started, and nothing written.
	b.Writes()
	again, err := l.Start(t.Context(), loader.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Run != progress.Run || pods() != 1 {
		t.Errorf("run %s after %s, %d pods", again.Run, progress.Run, pods())
	}
	if written := slices.DeleteFunc(b.Writes(), func(r string) bool { return strings.Contains(r, "/leases") }); len(written) > 0 {
		t.Errorf("written were %v", written)
	}
	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil || !status.Ready {
		t.Errorf("the status is %+v, %v", status, err)
	}
}

// TestParts: progress has for each part its start and when it was ready; none started before its dependencies were
// ready.
func TestParts(t *testing.T) {
	b := newBed(t)
	b.kubelet(t, loader.Run)
	progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]schema.LoadPart{}
	for _, p := range progress.Parts {
		parts[p.Component] = p
	}
	if api, db := parts["api"], parts["db"]; api.StartedAt.Before(db.ReadyAt) || api.ReadyAt.IsZero() {
		t.Errorf("api %+v began before db %+v was ready", api, db)
	}
}

// TestLocal: the same without a pod.
func TestLocal(t *testing.T) {
	b := newBed(t)
	progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{Local: true})
	if err != nil || progress.Phase != schema.LoadReady {
		t.Fatalf("%+v, %v", progress, err)
	}
	if jobs := b.names("Job"); jobs != "" {
		t.Errorf("there is %s", jobs)
	}
}

// TestOptional: a run succeeds without its optional parts, and reports them; everything else continues.
func TestOptional(t *testing.T) {
	for kind, want := range map[string]struct {
		code   report.Code
		phase  schema.LoadPhase
		states map[string]schema.LoadState
	}{
		"StatefulSet": {"", schema.LoadReady, map[string]schema.LoadState{"": schema.PartReady, "extra": schema.PartDegraded, "db": schema.PartReady, "api": schema.PartReady}},
		// The operator is one, too.
		"Deployment": {report.Timeout, schema.LoadFailed, map[string]schema.LoadState{"": schema.PartFailed, "extra": schema.PartDegraded, "db": schema.PartReady, "api": schema.PartReady}},
	} {
		t.Run(kind, func(t *testing.T) {
			b := bed{deployertest.New(t)}
			content := edge(t)
			content.Files["components/extra.yaml"] = "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: extra}\nspec: {replicas: 1}\n"
			b.Imported("edge", "1.0.0", content)
			b.kubelet(t, loader.Run)
			b.Server.Stall("Job", kind)
			l := b.launcher(t, "  environments: [{name: infra, solutions: [{name: edge, components: {extra: true}}]}, {name: site, solutions: [{name: edge}]}]\n  timeout: 1s\n")
			progress, err := l.Start(t.Context(), loader.StartOptions{})
			if report.CodeOf(err) != want.code || progress.Phase != want.phase {
				t.Fatalf("%+v, %v", progress, err)
			}
			states := map[string]schema.LoadState{}
			for _, p := range progress.Parts {
				if p.Environment == "infra" {
					states[p.Component] = p.State
				}
			}
			if diff := cmp.Diff(want.states, states); diff != "" {
				t.Error(diff)
			}
			if b.Server.Object("ConfigMap", "site", "api") == nil {
				t.Error("what failed in one environment was the end of the other")
			}
			if progress, err = l.Wait(t.Context(), 10*time.Second); report.CodeOf(err) != want.code {
				t.Errorf("whoever waits gets %+v, %v", progress, err)
			}
		})
	}
}

// TestOptionalTakesLong: a caller that waits for the required parts, such as a check of a boot, does not wait for
// optional ones.
func TestOptionalTakesLong(t *testing.T) {
	b := bed{deployertest.New(t)}
	content := edge(t)
	content.Files["components/extra.yaml"] = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: extra}\nspec: {replicas: 1}\n"
	b.Imported("edge", "1.0.0", content)
	b.kubelet(t, loader.Run)
	l := b.launcher(t, "  environments: [{name: infra, solutions: [{name: edge, components: {extra: true}}]}]\n")
	for _, stalled := range [][]string{{"Job", "StatefulSet", "Deployment"}, {"Job", "StatefulSet"}} { // the second time only the one is left to do
		b.Server.Stall(stalled...)
		if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(stalled, "Deployment") {
			_, err := l.Wait(t.Context(), time.Second)
			deployertest.Refused(t, err, report.Timeout, "not everything is ready")
			b.Server.Stall("Job", "StatefulSet")
		}
		if progress, err := l.Wait(t.Context(), 30*time.Second); err != nil || progress.Phase != schema.LoadRunning {
			t.Errorf("stalled are %v: %+v, %v", stalled, progress, err)
		}
		if _, err := l.Stop(t.Context(), loader.StopOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnderWay: a second launcher follows a run of the same configuration, and leaves one of another alone.
func TestUnderWay(t *testing.T) {
	b := newBed(t)
	release := make(chan struct{})
	pods := b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
		<-release
		return loader.Run(ctx, c, p)
	})
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	_, err := b.launcher(t, strings.Replace(justEdge, "name: edge", "name: edge, components: {extra: true}", 1)).Start(t.Context(), loader.StartOptions{})
	deployertest.Refused(t, err, report.Conflict, "another configuration", "deploy loader stop")
	close(release)
	progress, err := l.Start(t.Context(), loader.StartOptions{})
	if err != nil || progress.Phase != schema.LoadReady || pods() != 1 {
		t.Errorf("%+v, %v, %d pods", progress, err, pods())
	}
}

// TestCrashed: a Job that ends without a result is reported, and so is a deleted Job.
func TestCrashed(t *testing.T) {
	b := newBed(t)
	b.kubelet(t, func(context.Context, deployer.Config, *schema.LoadParameters) error { return context.Canceled })
	progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{})
	deployertest.Refused(t, err, report.Failure, "crashed", "deploy loader logs")
	if progress.Phase != schema.LoadFailed {
		t.Errorf("%+v", progress)
	}
}

// TestDrift: edits stay unless the configuration requests repairs, the next start restores missing objects, and a
// repair restores both, up to a limit.
func TestDrift(t *testing.T) {
	b := newBed(t)
	b.kubelet(t, loader.Run)
	l := b.launcher(t, justEdge+"  repair: {mode: repair}\n")
	start := func() {
		t.Helper()
		if _, err := l.Start(t.Context(), loader.StartOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	edit := func() {
		object := b.Server.Object("ConfigMap", "infra", "api")
		object.Object["data"] = map[string]any{"of": "mine"}
		b.Put(object)
	}
	of := func() string {
		text, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", "infra", "api").Object, "data", "of")
		return text
	}
	start()
	cron := b.Server.Object("CronJob", cluster.SystemNamespace, "loader-repair")
	if cron == nil {
		t.Fatal("there is no CronJob")
	}
	if status, err := b.Survey.Status(t.Context(), survey.StatusOptions{}); err != nil || !status.Ready {
		t.Errorf("the status is %+v, %v", status, err)
	}
	edit()
	b.Deleted("ConfigMap", "infra", "db")
	start()
	if of() != "mine" || b.Server.Object("ConfigMap", "infra", "db") == nil {
		t.Errorf("api is of %s; db %v", of(), b.Server.Object("ConfigMap", "infra", "db"))
	}
	text, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", cluster.SystemNamespace, "loader-repair-parameters").Object, "data", "parameters.json")
	p, err := loader.ParseParameters([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err = loader.Repair(t.Context(), b.Connect().Config, p); err != nil || of() != "one" {
			t.Fatalf("repair %d: %v, api is of %s", i, err, of())
		}
		edit()
	}
	err = loader.Repair(t.Context(), b.Connect().Config, p)
	deployertest.Refused(t, err, report.Conflict, "ConfigMap infra/api")
	if of() != "mine" {
		t.Error("it was brought back all the same")
	}
	b.Put(func() *unstructured.Unstructured {
		object := b.Server.Object("ConfigMap", "infra", "api")
		object.Object["data"] = map[string]any{"of": "one"}
		return object
	}())
	for range 2 {
		if err := loader.Repair(t.Context(), b.Connect().Config, p); err != nil {
			t.Fatal(err)
		}
	}
	b.Writes()
	if err := loader.Repair(t.Context(), b.Connect().Config, p); err != nil {
		t.Fatal(err)
	}
	if written := b.Writes(); len(written) > 0 {
		t.Errorf("written were %v", written)
	}
	if _, err := l.Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.names("CronJob") + b.names("Job"); got != "" {
		t.Errorf("there is %s", got)
	}
}

// TestObserved: drift that was only reported, however often, does not count as repaired, and is still repaired on
// request.
func TestObserved(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	object := b.Server.Object("ConfigMap", "infra", "api")
	object.Object["data"] = map[string]any{"of": "mine"}
	b.Put(object)
	p := &schema.LoadParameters{Run: "repair", Timeout: 60, Repair: schema.RepairObserve, Environments: l.Configuration.Spec.Environments}
	for range 5 {
		if err := loader.Repair(t.Context(), b.Connect().Config, p); err != nil {
			t.Fatal(err)
		}
	}
	progress, err := l.Status(t.Context())
	if err != nil || progress.Repair == nil || len(progress.Repair.Changed) != 1 || progress.Repair.GivenUp() {
		t.Errorf("%+v, %v", progress, err)
	}
	p.Repair = schema.RepairOn
	if err := loader.Repair(t.Context(), b.Connect().Config, p); err != nil {
		t.Fatal(err)
	}
	if of, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", "infra", "api").Object, "data", "of"); of != "one" {
		t.Errorf("api is of %q", of)
	}
}

// TestDriftOfSeveral: fields that are changed again and again are left alone in all Solutions, not only in the last
// one.
func TestDriftOfSeveral(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, "  environments: [{name: infra, solutions: [{name: edge}]}, {name: site, solutions: [{name: edge}]}]\n")
	if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	places := []string{"infra", "site"}
	edit := func() {
		for _, namespace := range places {
			object := b.Server.Object("ConfigMap", namespace, "api")
			object.Object["data"] = map[string]any{"of": "mine"}
			b.Put(object)
		}
	}
	for range 3 {
		edit()
		if err := l.Repair(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	edit()
	deployertest.Refused(t, l.Repair(t.Context()), report.Conflict, "ConfigMap infra/api", "ConfigMap site/api")
	for _, namespace := range places {
		if of, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", namespace, "api").Object, "data", "of"); of != "mine" {
			t.Errorf("in %s it was brought back all the same", namespace)
		}
	}
}

// TestRepairYields: fields of another manager and objects that cannot be repaired are named and left; all others are
// restored.
func TestRepairYields(t *testing.T) {
	b := newBed(t)
	const loaded = "  environments: [{name: infra, solutions: [{name: edge}]}, {name: site, solutions: [{name: edge}]}]\n"
	if _, err := b.launcher(t, loaded).Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	applied := httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/infra/configmaps/api?force=true&fieldManager=argo",
		strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: api, namespace: infra}, data: {of: theirs}}"))
	applied.Header.Set("Content-Type", "application/apply-patch+yaml")
	answer := httptest.NewRecorder()
	if b.Server.ServeHTTP(answer, applied); answer.Code != http.StatusOK {
		t.Fatal(answer.Body)
	}
	b.Deleted("ConfigMap", "infra", "db")
	b.Deleted("ConfigMap", "site", "db")
	l := b.launcher(t, strings.Replace(loaded, "[{", "[{name: gone, solutions: [{name: edge}]}, {", 1))
	deployertest.Refused(t, l.Repair(t.Context()), report.NotFound, "environment gone", "ConfigMap infra/api", `data.of ("argo")`, "solutionctl deploy repair infra edge")
	for _, namespace := range []string{"infra", "site"} {
		if b.Server.Object("ConfigMap", namespace, "db") == nil {
			t.Errorf("in %s it was not brought back", namespace)
		}
	}
	if of, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", "infra", "api").Object, "data", "of"); of != "theirs" {
		t.Errorf("api is of %q", of)
	}
	progress, err := l.Status(t.Context())
	if err != nil || progress.Repair == nil || !slices.Contains(progress.Repair.Changed, "ConfigMap infra/api was changed by argo") {
		t.Errorf("%+v, %v", progress.Repair, err)
	}
}

// TestLeftBehind: the account of a run whose launcher was killed goes with the next start, also where that has nothing to do.
func TestLeftBehind(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	for range 2 {
		left := &unstructured.Unstructured{}
		left.SetGroupVersionKind(kube.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
		left.SetNamespace(cluster.SystemNamespace)
		left.SetName("solutionctl-loader")
		left.SetLabels(map[string]string{loader.LabelPart: "solutionctl-loader"})
		b.Put(left)
		if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.names("ServiceAccount"), "solutionctl-loader") {
			t.Errorf("left behind is %s", b.names("ServiceAccount"))
		}
	}
}

// TestWaitInterrupted: a run that was interrupted is waited for, as another pod or the next start ends it.
func TestWaitInterrupted(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	object := b.Server.Object("ConfigMap", cluster.SystemNamespace, loader.ProgressName)
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	for key, text := range data {
		data[key] = strings.ReplaceAll(text, `"phase":"Ready"`, `"phase":"Interrupted"`)
	}
	if err := unstructured.SetNestedStringMap(object.Object, data, "data"); err != nil {
		t.Fatal(err)
	}
	b.Put(object)
	if progress, err := l.Wait(t.Context(), time.Millisecond*100); report.CodeOf(err) != report.Timeout || progress.Phase != schema.LoadInterrupted {
		t.Errorf("%+v, %v", progress, err)
	}
}

// TestWaitKept: the readiness of a changed part before the run does not count, that of an unchanged part does.
func TestWaitKept(t *testing.T) {
	for state, want := range map[string]report.Code{`"state":"Pending"`: report.Timeout, `"state":"Pending","kept":true`: ""} {
		b := newBed(t)
		l := b.launcher(t, justEdge)
		if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
			t.Fatal(err)
		}
		object := b.Server.Object("ConfigMap", cluster.SystemNamespace, loader.ProgressName)
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for key, text := range data {
			data[key] = strings.NewReplacer(`"phase":"Ready"`, `"phase":"Running"`, `"state":"Ready"`, state).Replace(text)
		}
		if err := unstructured.SetNestedStringMap(object.Object, data, "data"); err != nil {
			t.Fatal(err)
		}
		b.Put(object)
		if progress, err := l.Wait(t.Context(), time.Second); report.CodeOf(err) != want || len(progress.Parts) == 0 {
			t.Errorf("with %s: %+v, %v", state, progress, err)
		}
	}
}

// TestRepairAfterRebuild checks that an object that was deleted before its record was rebuilt is reported with a remedy at each repair, and does not count as a change
// that comes back.
func TestRepairAfterRebuild(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, component := range []string{"", "db", "api"} {
		name := record.Key{Namespace: "infra", Name: "edge", Component: component}.SecretName()
		if b.Server.Object("Secret", cluster.SystemNamespace, name) != nil {
			b.Deleted("Secret", cluster.SystemNamespace, name)
			lost++
		}
	}
	if lost == 0 {
		t.Fatal("there is no record")
	}
	b.Deleted("ConfigMap", "infra", "db")
	if _, err := b.RebuildRecords(t.Context(), rebuild.Options{}); err != nil {
		t.Fatal(err)
	}
	for range schema.MaxLoaderRepairs + 2 {
		deployertest.Refused(t, l.Repair(t.Context()), report.Conflict, "ConfigMap infra/db: it was changed or deleted before", "'solutionctl deploy repair infra edge' names the command")
	}
}

// TestUnlisted: a Solution that left the configuration stays and is reported until a user removes it.
func TestUnlisted(t *testing.T) {
	b := newBed(t)
	b.Imported("base", "1.0.0", deployertest.Content{})
	b.kubelet(t, loader.Run)
	if _, err := b.launcher(t, strings.Replace(justEdge, "{name: edge}", "{name: edge}, {name: base}", 1)).Start(t.Context(), loader.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	l := b.launcher(t, justEdge)
	progress, err := l.Start(t.Context(), loader.StartOptions{})
	if err != nil || !strings.Contains(strings.Join(progress.Notices, "\n"), "Solution base in environment infra") {
		t.Fatalf("%+v, %v", progress, err)
	}
	if progress, err = l.Start(t.Context(), loader.StartOptions{Prune: true}); err != nil || len(progress.Loaded) != 1 {
		t.Fatalf("%+v, %v", progress, err)
	}
	data, _, _ := unstructured.NestedStringMap(b.Server.Object("ConfigMap", "infra", "metalk8s-environment").Object, "data")
	if diff := cmp.Diff(map[string]string{"edge": "1.0.0"}, data); diff != "" {
		t.Error(diff)
	}
}

// TestStopPrune: Solutions that left the configuration are removed with the loader, all of an environment in one plan,
// and are not known afterwards.
func TestStopPrune(t *testing.T) {
	b := newBed(t)
	b.Imported("base", "1.0.0", deployertest.Content{})
	b.Imported("shop", "1.0.0", deployertest.Content{Manifest: "dependsOn: [{solution: base, version: '^1'}]"})
	b.kubelet(t, loader.Run)
	const all = "  environments: [{name: infra, solutions: [{name: shop}, {name: base}, {name: edge}]}, {name: site, solutions: [{name: base}]}]\n  repair: {mode: repair}\n"
	if _, err := b.launcher(t, all).Start(t.Context(), loader.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Add(t.Context(), deployer.AddOptions{Environment: "site", Solution: "edge"}); err != nil { // by an administrator
		t.Fatal(err)
	}
	there := func() string {
		var list []string
		for _, environment := range []string{"infra", "site"} {
			data, _, _ := unstructured.NestedStringMap(b.Server.Object("ConfigMap", environment, "metalk8s-environment").Object, "data")
			list = append(list, strings.Join(slices.Sorted(maps.Keys(data)), " "))
		}
		return strings.Join(list, ", ")
	}
	l, prune := b.launcher(t, justEdge), loader.StopOptions{Prune: true, DryRun: true}
	plan, err := l.Stop(t.Context(), prune)
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "loaderplan", plan)
	if got := there(); got != "base edge shop, base edge" || len(plan.Unlisted) != 3 || len(plan.Remove) != 2 || !plan.Remove[0].Planned {
		t.Errorf("there is %s, and the plan is %+v", got, plan)
	}
	prune.DryRun = false
	asked := prune.Confirmation(plan)
	if len(asked.Lists) != 1 || !slices.Contains(asked.Lists[0].Items, "Solution shop in environment infra") {
		t.Errorf("asked is %+v", asked)
	}

	// A failed removal stops nothing.
	_, err = b.launcher(t, strings.Replace(all, "{name: base}, {name: edge}", "{name: edge}", 1)).Stop(t.Context(), prune)
	deployertest.Refused(t, err, report.InUse, "shop 1.0.0 in environment infra needs base")
	if !strings.Contains(b.names("CronJob"), "loader-repair") {
		t.Error("the repairs have ended")
	}

	if plan, err = l.Stop(t.Context(), prune); err != nil || len(plan.Remove) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if got := there(); got != "edge, edge" || strings.Contains(b.names("CronJob"), "loader") {
		t.Errorf("there is %s, and %s", got, b.names("CronJob"))
	}
	progress, err := l.Wait(t.Context(), time.Hour)
	if err != nil || len(progress.Loaded) != 1 || len(progress.Parts) != 3 || progress.Ready != 3 {
		t.Errorf("%+v, %v", progress, err)
	}
	if plan, err = l.Stop(t.Context(), prune); err != nil || len(plan.Unlisted)+len(plan.Remove) > 0 || prune.Confirmation(plan).Question != "" {
		t.Errorf("again: %+v, %v", plan, err)
	}
}

// TestRefused: an impossible request is refused before anything changes.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		code report.Code
		want []string
	}{
		"not imported":         {strings.Replace(justEdge, "edge", "cloud", 1), report.NotImported, []string{"cloud", "deploy import"}},
		"an unknown version":   {strings.Replace(justEdge, "name: edge", "name: edge, version: 2.0.0", 1), report.NotImported, []string{"2.0.0"}},
		"an unknown profile":   {strings.Replace(justEdge, "name: edge", "name: edge, profiles: [x]", 1), report.Usage, []string{"profile"}},
		"a Secret that is not": {strings.Replace(justEdge, "name: edge", "name: edge, valuesFrom: {db: {secret: db-values}}", 1), report.NotFound, []string{"db-values", "kubectl create secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.Writes()
			_, err := b.launcher(t, test.text).Start(t.Context(), loader.StartOptions{})
			deployertest.Refused(t, err, test.code, test.want...)
			written := slices.DeleteFunc(b.Writes(), func(r string) bool { return strings.Contains(r, "/leases") })
			if len(written) > 0 {
				t.Errorf("written were %v", written)
			}
		})
	}
}

// TestInterrupted: a pod that gets SIGTERM records that the run is not complete, and no failure of a part; the next one
// ends it.
func TestInterrupted(t *testing.T) {
	b := newBed(t)
	b.Server.Stall("Job", "Deployment")
	b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
		first, stop := context.WithCancel(ctx)
		c.Sink = sink(func(e report.Event) {
			if e.Step == "wait" { // for the operator
				stop()
			}
		})
		if err := loader.Run(first, c, p); report.CodeOf(err) != report.Interrupted {
			t.Errorf("the first pod: %v", err)
		}
		text, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", cluster.SystemNamespace, loader.ProgressName).Object, "data", "progress.json")
		if !strings.Contains(text, `"phase":"Interrupted"`) || strings.Contains(text, `"Failed"`) || strings.Contains(text, `"Blocked"`) {
			t.Errorf("after the first pod: %s", text)
		}
		b.Server.Stall("Job")
		c.Sink = report.Discard
		return loader.Run(ctx, c, p)
	})
	if progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{}); err != nil || progress.Phase != schema.LoadReady {
		t.Errorf("%+v, %v", progress, err)
	}
}

// TestKilled: a pod waits for all locks except those of a predecessor whose end the kubelet has seen.
func TestKilled(t *testing.T) {
	const ended, running = `[{name: loader, state: {terminated: {exitCode: 137}}}]`, `[{name: loader, state: {running: {}}}]`
	for _, test := range []struct {
		name, holder, run, phase, containers string
		waits                                bool
	}{
		{"it has ended", "loader@loader-first", "1", "Failed", ended, false},
		{"it runs", "loader@loader-first", "1", "Running", running, true},
		{"its node is lost, where it may run", "loader@loader-first", "1", "Failed", running, true},
		{"it never ran", "loader@loader-first", "1", "Failed", "[]", true},
		{"it is gone", "loader@loader-zeroth", "1", "Failed", ended, true},
		{"it is no pod of the loader", "loader@loader-first", "", "Failed", ended, true},
		{"it is another process", "jane@loader-first", "1", "Failed", ended, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			var waited atomic.Bool
			b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
				b.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: loader-first, namespace: solutionctl-system, labels: {%s: %q}}, status: {phase: %s, containerStatuses: %s}}`,
					loader.LabelRun, test.run, test.phase, test.containers))
				b.Server.Put(t, fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-infra, namespace: solutionctl-system}, spec: {holderIdentity: "%s RANDOM", leaseDurationSeconds: 1}}`, test.holder))
				c.Sink = sink(func(e report.Event) {
					if e.Step == "lock" {
						waited.Store(true)
					}
				})
				return loader.Run(ctx, c, p)
			})
			progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{})
			if err != nil || progress.Phase != schema.LoadReady {
				t.Fatalf("%+v, %v", progress, err)
			}
			if waited.Load() != test.waits {
				t.Errorf("it waited: %t", waited.Load())
			}
		})
	}
}

// sink is a function that takes events.
type sink func(report.Event)

func (s sink) Emit(e report.Event) { s(e) }

// TestTakenOver: a launcher whose run was deleted does not take away the account of the run that was begun in its place.
func TestTakenOver(t *testing.T) {
	b := newBed(t)
	gone, release := make(chan struct{}), make(chan struct{})
	b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
		select {
		case <-gone: // the second one
			<-release
			return loader.Run(ctx, c, p)
		default:
			close(gone)
			return nil
		}
	})
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	<-gone
	first := b.Server.Object("ServiceAccount", cluster.SystemNamespace, "solutionctl-loader")
	if first.GetLabels()[loader.LabelJob] == "" {
		t.Errorf("the account has the labels %v", first.GetLabels())
	}
	for _, name, _ := strings.Cut(b.names("Job"), "/"); health.JobEnded(b.Server.Object("Job", cluster.SystemNamespace, name)) == ""; {
		time.Sleep(time.Millisecond) // else the second start follows the first run
	}
	if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	second := b.Server.Object("ServiceAccount", cluster.SystemNamespace, "solutionctl-loader")
	if second.GetLabels()[loader.LabelJob] == first.GetLabels()[loader.LabelJob] {
		t.Error("the second run has the account of the first")
	}
	close(release)
	if _, err := l.Start(t.Context(), loader.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.Server.Object("ServiceAccount", cluster.SystemNamespace, "solutionctl-loader"); got != nil {
		t.Error("the account is still there")
	}
}

// TestDeselected: a component that the configuration deselects is removed, and no one waits for it.
func TestDeselected(t *testing.T) {
	b := newBed(t)
	b.kubelet(t, loader.Run)
	with := func(is string) *loader.Launcher {
		return b.launcher(t, strings.Replace(justEdge, "name: edge", "name: edge, components: {extra: "+is+"}", 1))
	}
	if _, err := with("true").Start(t.Context(), loader.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	progress, err := with("false").Start(t.Context(), loader.StartOptions{})
	if err != nil || progress.Phase != schema.LoadReady || len(progress.Parts) != 3 || progress.Ready != 3 {
		t.Errorf("%+v, %v", progress, err)
	}
	if b.Server.Object("Deployment", "infra", "extra") != nil {
		t.Error("it is still there")
	}
}
