package deployer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestTheRoad(t *testing.T) {
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

func TestPlansChangeNothing(t *testing.T) {
	b := newBed(t)
	b.imported("1.0.0", content{})
	planned, err := b.Activate(t.Context(), deployer.ActivateOptions{Options: deployer.Options{DryRun: true}, Solution: b.Solution})
	if err != nil {
		t.Fatal(err)
	}
	if !planned.Planned || planned.Empty() || planned.Parts[0].Count(schema.ActionCreate) == 0 {
		t.Errorf("%+v", planned)
	}
	if b.find(crds, "", b.crdName()) != nil {
		t.Error("a plan created the definition")
	}
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	removal, err := b.Remove(t.Context(), deployer.RemoveOptions{Options: deployer.Options{DryRun: true}, Environment: b.Env, Solution: b.Solution})
	if err != nil {
		t.Fatal(err)
	}
	if removal.Parts[0].Count(schema.ActionDelete) == 0 {
		t.Errorf("%+v", removal)
	}
	if b.find(deployments, b.Env, b.Solution+"-operator") == nil {
		t.Error("a plan removed the operator")
	}
	data, err := json.Marshal(planned)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.ValidateOutput("operation", data); err != nil {
		t.Error(err)
	}
}

func TestImports(t *testing.T) {
	b := newBed(t)
	b.imported("1.0.0", content{})
	before := b.get(secrets, cluster.SystemNamespace, "imports").GetResourceVersion()
	b.imported("1.0.0", content{})
	if after := b.get(secrets, cluster.SystemNamespace, "imports").GetResourceVersion(); after != before {
		t.Error("importing the same again changed the catalogue")
	}
	b.imported("1.1.0-rc.1", content{})
	catalog, err := b.Records.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	latest, _, err := catalog.Find(b.Solution, "latest")
	if err != nil || latest.Version != "1.0.0" {
		t.Errorf("latest is %s, %v", latest.Version, err)
	}
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	err = b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.0.0"})
	b.refused(err, report.InUse, "it is active", "environment "+b.Env)
	if err = b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.1.0-rc.1"}); err != nil {
		t.Error(err)
	}
	changed := records.ImportRecord{Payload: b.payload("1.0.0", content{}), SHA256: strings.Repeat("0", 64), Size: 1}
	_, err = b.RecordImport(t.Context(), changed)
	b.refused(err, report.Replaced, b.Env)
	other := schema.ClusterRegistry{Mode: schema.RegistryMetalK8s, Host: schema.RegistryHostMetalK8s}
	_, err = b.AddEndpoints(t.Context(), deployer.EndpointOptions{More: other})
	b.refused(err, report.Refused, "own")
}

// TestReplacedPrerelease imports a pre-release that was built again while it is active and runs in an environment.
func TestReplacedPrerelease(t *testing.T) {
	b := newBed(t)
	const version = "1.1.0-rc.1"
	b.activated(version, content{})
	b.mustAdd(version)
	rebuilt := records.ImportRecord{
		Payload: b.payload(version, content{Specs: []string{"colour"}}), Path: "/srv/rebuilt.iso", SHA256: strings.Repeat("0", 64), Size: 1,
	}
	notices, err := b.RecordImport(t.Context(), rebuilt)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(notices, "\n")
	for _, command := range []string{"deploy activate " + b.Solution + " " + version, "deploy add " + b.Env + " " + b.Solution + " " + version} {
		if !strings.Contains(said, command) {
			t.Errorf("%q is not in the notices:\n%s", command, said)
		}
	}
	catalog, err := b.Records.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if known := catalog.Of(b.Solution); len(known) != 1 || known[0].Archive.SHA256 != rebuilt.SHA256 {
		t.Errorf("%+v", known)
	}
	if _, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: version}); err != nil {
		t.Error(err)
	}
	b.mustAdd(version)
	if notices, err = b.RecordImport(t.Context(), rebuilt); err != nil || len(notices) > 0 {
		t.Errorf("again: %q, %v", notices, err)
	}
}

func TestLatestWithoutRelease(t *testing.T) {
	b := newBed(t)
	b.imported("0.1.0-alpha.9", content{})
	b.imported("0.1.0-alpha.10", content{})
	done, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "latest"})
	if err != nil {
		t.Fatal(err)
	}
	if done.Version != "0.1.0-alpha.10" || !slices.ContainsFunc(done.Notices, func(n string) bool { return strings.Contains(n, "pre-release") }) {
		t.Errorf("%+v", done)
	}
}

func TestActivationJudgesStoredObjects(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{Specs: []string{"colour", "unused"}})
	b.newClock(b.Env, "red", "hands: 2, colour: red")
	b.newClock(b.Env, "plain", "hands: 3")

	b.imported("1.1.0", content{Specs: []string{"colour"}})
	done, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.1.0"})
	if err != nil {
		t.Fatalf("no object uses the field: %v", err)
	}
	if !slices.ContainsFunc(done.Notices, func(n string) bool { return strings.Contains(n, "spec.unused") }) {
		t.Errorf("notices: %q", done.Notices)
	}

	b.imported("2.0.0", content{})
	_, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "2.0.0"})
	b.refused(err, report.DataLoss, "Clock "+b.Env+"/red: spec.colour")
	if strings.Contains(err.Error(), "plain") {
		t.Errorf("an object that loses nothing is named: %v", err)
	}
	live := b.get(crds, "", b.crdName())
	if text, _ := json.Marshal(live.Object); !strings.Contains(string(text), "colour") {
		t.Error("the definition was changed")
	}

	b.imported("3.0.0", content{Crds: "v2", Specs: []string{"face"}})
	_, err = b.activate("3.0.0")
	b.refused(err, report.DataLoss, "Clock "+b.Env+"/red: spec.colour", "--accept-data-loss "+b.crdName())
	b.served("v1")
}

func TestDeactivateKeepsData(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{Specs: []string{"colour"}})
	b.mustAdd("1.0.0")
	b.newClock(b.Env, "red", "colour: red")
	_, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution})
	b.refused(err, report.DataLoss, "1 of kind Clock in environment "+b.Env, "--keep-crds", "--delete-data")
	_, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution})
	b.refused(err, report.DataLoss, "1 of kind Clock in namespace "+b.Env, "--keep-data")

	if _, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution, Data: deployer.KeepData}); err != nil {
		t.Fatal(err)
	}
	done, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution, Data: deployer.KeepData})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(done.Notices, func(n string) bool { return strings.Contains(n, b.crdName()) }) {
		t.Errorf("notices: %q", done.Notices)
	}
	clock := b.get(b.clock(), b.Env, "red")
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution}); err != nil {
		t.Fatal("the definitions are not taken over again:", err)
	}
	if again := b.get(b.clock(), b.Env, "red"); again.GetUID() != clock.GetUID() {
		t.Error("the object is another one")
	}
}

func TestDeleteData(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{Specs: []string{"colour"}})
	b.mustAdd("1.0.0")
	b.newClock(b.Env, "red", "colour: red")
	held := b.newClock(b.Env, "held", "colour: blue")
	held.SetFinalizers([]string{"example.com/hold"})
	_, err := b.Cluster.Update(t.Context(), held, cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out exported
	remove := deployer.RemoveOptions{
		Options: deployer.Options{Timeout: time.Second}, Environment: b.Env, Solution: b.Solution, Data: deployer.DeleteData, Export: out.open,
	}
	_, err = b.Remove(t.Context(), remove)
	b.refused(err, report.Timeout, "Clock "+b.Env+"/held", "example.com/hold")
	if b.find(deployments, b.Env, b.Solution+"-operator") == nil {
		t.Error("the operator was removed while it was needed")
	}
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil || len(list.Items) != 2 || !out.closed {
		t.Fatalf("export: %v\n%s", err, out.String())
	}
	if held = b.get(b.clock(), b.Env, "held"); held.GetDeletionTimestamp() == nil {
		t.Error("it was not deleted")
	}
	held.SetFinalizers(nil)
	if _, err := b.Cluster.Update(t.Context(), held, cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Remove(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
	// What was exported can be created again.
	for _, item := range list.Items {
		item.SetFinalizers(nil)
		if _, err := b.Cluster.Create(t.Context(), &item, cluster.WriteOptions{}); err != nil {
			t.Error(err)
		}
	}
	var second exported
	if _, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution, Data: deployer.DeleteData, Export: second.open}); err != nil {
		t.Fatal(err)
	}
	if b.find(crds, "", b.crdName()) != nil || !strings.Contains(second.String(), `"red"`) {
		t.Errorf("export: %s", second.String())
	}
}

// TestAddNamesWhatStays: charts are in the archive for whoever installs them, and add says that it does not.
func TestAddNamesWhatStays(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{Files: map[string]string{"charts/cache-1.0.0.tgz": "not read"}})
	planned, err := b.Add(t.Context(), deployer.AddOptions{Options: deployer.Options{DryRun: true}, Environment: b.Env, Solution: b.Solution, Version: "1.0.0"})
	b.noticed(planned, err, "charts/cache-1.0.0.tgz")
}

func TestDeactivateWhileDeployed(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	_, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution})
	b.refused(err, report.InUse, "environment "+b.Env, "deploy remove")
}

func TestAddIsRefused(t *testing.T) {
	b := newBed(t)
	b.imported("1.0.0", content{})
	_, err := b.add("1.0.0")
	b.refused(err, report.Refused, "is not active", b.crdName(), "deploy activate "+b.Solution+" 1.0.0")
	b.activated("1.0.0", content{})
	_, err = b.add("1.5.0")
	b.refused(err, report.NotImported, "1.5.0", "1.0.0")

	b.environment(b.Env+"-other", b.Env+"-elsewhere")
	_, err = b.Add(t.Context(), deployer.AddOptions{Environment: b.Env, Solution: b.Solution, Namespace: b.Env + "-elsewhere"})
	b.refused(err, report.Conflict, "belongs to environment "+b.Env+"-other")
	_, err = b.Add(t.Context(), deployer.AddOptions{Environment: b.Env, Solution: b.Solution, Namespace: "nowhere"})
	b.refused(err, report.NotFound, "has no namespace nowhere", b.Env)
	_, err = b.Add(t.Context(), deployer.AddOptions{Environment: b.Env + "x", Solution: b.Solution})
	b.refused(err, report.NotFound, b.Env)
	_, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution})
	b.refused(err, report.NotFound, "is not in environment")

	b.imported("1.1.0", content{Role: "- {apiGroups: [''], resources: [secrets], verbs: [get]}\n- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
	_, err = b.add("1.1.0")
	b.refused(err, report.Refused, "Role "+b.Solution+"-operator", "[escalate]", "--accept-hazard escalate")
	if b.find(configMaps, b.Env, metalk8s.EnvironmentConfigMap) != nil {
		t.Error("something was recorded")
	}
	accepted := deployer.AddOptions{
		Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Version: "1.1.0",
		Rendering: deployer.Rendering{AcceptHazards: []string{"escalate"}},
	}
	if _, err = b.Add(t.Context(), accepted); err != nil {
		t.Fatal(err)
	}
	if again := b.mustAdd("1.1.0"); !again.Empty() {
		t.Errorf("what was accepted is forgotten: %+v", again)
	}
	_, err = b.add("1.0.0")
	b.refused(err, report.Conflict, "version 1.1.0", "deploy downgrade")
	b.imported("1.2.0", content{Kind: "ClusterRoleBinding"})
	_, err = b.Add(t.Context(), deployer.AddOptions{Environment: b.Env + "-other", Solution: b.Solution, Version: "1.2.0"})
	b.refused(err, report.Invalid, "operator/deploy/role.yaml", "ClusterRoleBinding")
}

func TestForeignObjects(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.create("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + b.Solution + "-operator, namespace: " + b.Env + ", labels: {app: mine}}\n")
	_, err := b.add("1.0.0")
	b.refused(err, report.Conflict, "ServiceAccount", b.Solution+"-operator", "--adopt")
	_, err = b.Add(t.Context(), deployer.AddOptions{Options: deployer.Options{NoWait: true, Adopt: true}, Environment: b.Env, Solution: b.Solution})
	if err != nil {
		t.Error(err)
	}
}

func TestOperatorThatDoesNotStart(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	_, err := b.Add(t.Context(), deployer.AddOptions{Options: deployer.Options{Timeout: time.Second}, Environment: b.Env, Solution: b.Solution})
	b.refused(err, report.Timeout, "Deployment "+b.Env+"/"+b.Solution+"-operator")
	if done := b.mustAdd("1.0.0"); !done.Parts[0].Resumes {
		t.Errorf("the second run does not know of the first: %+v", done)
	}
}

func TestSettingsAreKept(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	on := true
	webhook := deployer.AddOptions{
		Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Rendering: deployer.Rendering{Webhook: &on},
	}
	if _, err := b.Add(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	cert := b.get(secrets, b.Env, b.Solution+"-cert")
	if again := b.mustAdd("1.0.0"); !again.Empty() {
		t.Errorf("%+v", again)
	}
	if same := b.get(secrets, b.Env, b.Solution+"-cert"); same.GetResourceVersion() != cert.GetResourceVersion() {
		t.Error("the certificate was made again")
	}
}

func TestTwoAdministrators(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	lock, err := b.Cluster.Lock(t.Context(), "env-"+b.Env, cluster.LockOptions{Identity: "somebody@elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.connect(b.kubeconfig()).Add(t.Context(), deployer.AddOptions{Environment: b.Env, Solution: b.Solution})
	b.refused(err, report.Locked, "somebody@elsewhere")
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mustAdd("1.0.0")
}

func TestMissingRights(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	user := "limited" + b.Env
	rules := "- {apiGroups: [''], resources: [configmaps, secrets, namespaces], verbs: ['*']}\n- {apiGroups: [apiextensions.k8s.io], resources: ['*'], verbs: [get, list]}\n" +
		"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ['*']}\n"
	b.create("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + user + "}\nrules:\n" + rules)
	b.create("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + user + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " +
		user + "}\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: " + user + "}]\n")
	_, err := b.connect(b.kubeconfigFor(user)).Add(t.Context(), deployer.AddOptions{Environment: b.Env, Solution: b.Solution})
	b.refused(err, report.Forbidden, "deployments")
	if b.find(configMaps, b.Env, metalk8s.EnvironmentConfigMap) != nil {
		t.Error("something was changed")
	}
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
	b := newBed(t)
	b.activated("1.0.0", content{})
	kubernetes := testcluster.Shared(t)
	impatient, err := cluster.Connect(cluster.Options{Kubeconfig: b.kubeconfig(), Now: time.Now, Retry: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := deployer.New(deployer.Config{
		Cluster: impatient, Sink: &saboteur{Sink: b.Sink, step: "apply", name: "roles", stop: kubernetes.StopAPIServer},
		Now: b.Now, Version: b.Version, Identity: b.Identity, LockWait: b.LockWait,
	})
	_, err = d.Add(t.Context(), deployer.AddOptions{Options: deployer.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution})
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
