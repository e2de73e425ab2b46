package deployer_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var (
	accounts     = kube.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	roleBindings = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
)

// record is that of the bed's Solution in its environment, or of its part for the whole cluster.
func (b *bed) record(namespace string) *unstructured.Unstructured {
	b.Helper()
	return b.get(secrets, cluster.SystemNamespace, record.Key{Namespace: namespace, Name: b.Solution}.SecretName())
}

// corrupt makes a record unreadable.
func (b *bed) corrupt(record *unstructured.Unstructured) {
	b.Helper()
	_, err := b.Cluster.Patch(b.Context(), record, types.MergePatchType, []byte(`{"data": {"state.json.gz": "H4sIAAAA"}}`), cluster.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// deployment returns the status of the bed's Solution in its environment.
func (b *bed) deployment() schema.DeploymentStatus {
	b.Helper()
	status, err := b.Survey.Status(b.Context(), survey.StatusOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range status.Environments {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				if n.Name == b.Env && d.Solution == b.Solution {
					return d
				}
			}
		}
	}
	b.Fatalf("status tells nothing of %s in %s: %+v", b.Solution, b.Env, status.Environments)
	return schema.DeploymentStatus{}
}

func (b *bed) wantReason(words ...string) schema.DeploymentStatus {
	b.Helper()
	d := b.deployment()
	text := strings.Join(schema.Sentences(d.Reasons), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
	return d
}

// wantBroken expects the one broken thing of the bed's Solution, or none without words.
func (b *bed) wantBroken(words ...string) {
	b.Helper()
	broken, err := b.Broken(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var text string
	for _, one := range broken {
		if strings.Contains(one.What, b.Solution) {
			text += one.What + "\n" + one.Cure + "\n"
		}
	}
	if len(words) == 0 && text != "" {
		b.Errorf("broken is %s", text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
}

func (b *bed) removal(adopt bool) error {
	_, err := b.Remove(b.Context(), deployer.RemoveOptions{Options: plan.Options{Adopt: adopt}, Environment: b.Env, Solution: b.Solution})
	return err
}

func (b *bed) rebuild() *schema.Operation {
	b.Helper()
	done, err := b.RebuildRecords(b.Context(), rebuild.Options{Selection: survey.Selection{Environment: b.Env, Solution: b.Solution}})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// nothing expects that nothing of the bed's Solution is in its environment.
func (b *bed) nothing() {
	b.Helper()
	for _, object := range []struct {
		kind kube.GroupVersionKind
		name string
	}{
		{deployments, b.Solution + "-operator"},
		{accounts, b.Solution + "-operator"},
		{configMaps, b.Solution + "-operator-config"},
		{roles, b.Solution + "-operator"},
		{roleBindings, b.Solution + "-operator-role-" + b.Solution + "-operator"},
	} {
		if b.find(object.kind, b.Env, object.name) != nil {
			b.Errorf("%s %s is still there", object.kind.Kind, object.name)
		}
	}
}

// setVersions asks for other versions in the environment's document, which any user with write access to the namespace can do.
func (b *bed) setVersions(data string) {
	b.Helper()
	config := b.get(configMaps, b.Env, "metalk8s-environment")
	if _, err := b.Cluster.Patch(b.Context(), config, types.MergePatchType, []byte(`{"data": `+data+`}`), cluster.WriteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// TestRebuiltFromTheRightObjects checks that only managed objects that are as in an imported version get on record.
func TestRebuiltFromTheRightObjects(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	label := fmt.Sprintf("%s: %s", schema.LabelRelease, record.Key{Namespace: b.Env, Name: b.Solution}.ID())
	// A user labels an object of their own, changes one object and creates another one again.
	b.create(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mine, namespace: %s, labels: {%s}}\n", b.Env, label))
	config := b.get(configMaps, b.Env, b.Solution+"-operator-config")
	if _, err := b.Cluster.Patch(t.Context(), config, types.MergePatchType, []byte(`{"data": {"more": "x"}}`), cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	role := b.get(roles, b.Env, b.Solution+"-operator")
	if _, err := b.Cluster.Patch(t.Context(), role, types.MergePatchType, []byte(`{"rules": []}`), cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.delete(b.get(accounts, b.Env, b.Solution+"-operator"))
	b.create(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s-operator, namespace: %s}\n", b.Solution, b.Env))
	b.setVersions(`{"` + b.Solution + `": "9.9.9"}`)
	b.corrupt(b.record(b.Env))

	done := b.rebuild()
	if len(done.Parts) != 1 || done.Parts[0].Version != "1.0.0" || done.Parts[0].Count(schema.ActionAdopt) != 4 {
		t.Errorf("%+v", done)
	}
	text := strings.Join(done.Notices, "\n")
	for _, word := range []string{
		"not as the archive has them ('solutionctl deploy add " + b.Env + " " + b.Solution + " 1.0.0 --namespace " + b.Env + "' takes them back): Role " + b.Env + "/" + b.Solution + "-operator",
		"without our label: ServiceAccount " + b.Env + "/" + b.Solution + "-operator",
		"not of this version: ServiceAccount " + b.Env + "/mine",
	} {
		if !strings.Contains(text, word) {
			t.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
	b.refused(b.removal(false), report.Conflict, "Role "+b.Env+"/"+b.Solution+"-operator", "ServiceAccount "+b.Env+"/mine")
	// The command that was named takes it back.
	if _, err := b.Add(t.Context(), deployer.AddOptions{
		Options: plan.Options{NoWait: true, Adopt: true}, Environment: b.Env, Solution: b.Solution, Version: "1.0.0",
	}); err != nil {
		t.Fatal(err)
	}
	b.delete(b.get(accounts, b.Env, "mine"))
	if err := b.removal(false); err != nil {
		t.Fatal(err)
	}
	b.nothing()
}

// TestRemoveWhatMetalK8sDeployed removes an operator that Salt deployed, and that is not on our record.
func TestRemoveWhatMetalK8sDeployed(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	labels := fmt.Sprintf("{app: %[1]s-operator, app.kubernetes.io/name: %[1]s-operator, app.kubernetes.io/component: operator, app.kubernetes.io/part-of: %[1]s, "+
		"app.kubernetes.io/version: 1.0.0, app.kubernetes.io/managed-by: salt, heritage: salt}", b.Solution)
	metadata := fmt.Sprintf("{name: %s-operator, namespace: %s, labels: %s}", b.Solution, b.Env, labels)
	b.create("apiVersion: v1\nkind: ServiceAccount\nmetadata: " + metadata + "\n")
	b.create("apiVersion: v1\nkind: ConfigMap\nmetadata: " + strings.Replace(metadata, "-operator,", "-operator-config,", 1) + "\n")
	b.create(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s-operator, namespace: %s}\nrules: []\n", b.Solution, b.Env))
	b.create(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: %s\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s-operator}\n",
		strings.Replace(metadata, "-operator,", "-operator-role-"+b.Solution+"-operator,", 1), b.Solution))
	b.create(fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: %[1]s\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}\n", metadata))
	b.create(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: metalk8s-environment, namespace: %s}\ndata: {%s: 1.0.0}\n", b.Env, b.Solution))

	if d := b.wantReason("deployed by MetalK8s"); d.Health != schema.HealthForeign || d.Version != "1.0.0" {
		t.Errorf("it is %s, version %q", d.Health, d.Version)
	}
	// It holds its version and its definitions, as what is on record does.
	b.refused(b.Records.CheckUnused(t.Context(), b.Solution, "1.0.0"), report.InUse, "environment "+b.Env)
	b.refused(b.removal(false), report.Conflict, "Deployment "+b.Env+"/"+b.Solution+"-operator", "solutionctl deploy remove "+b.Env+" "+b.Solution+" --adopt")
	b.setVersions(`null`)
	b.refused(b.removal(false), report.Conflict, "Deployment "+b.Env+"/"+b.Solution+"-operator")
	if d := b.wantReason("deployed by MetalK8s"); d.Health != schema.HealthForeign {
		t.Errorf("it is %s", d.Health)
	}
	if err := b.removal(true); err != nil {
		t.Fatal(err)
	}
	b.nothing()
}

// TestBadRecord looks at everything while the record of one Solution cannot be read: only that one is harmed.
func TestBadRecord(t *testing.T) {
	t.Parallel()
	good, bad := newBed(t), newBed(t)
	for _, b := range []*bed{good, bad} {
		b.activated("1.0.0", content{})
		b.mustAdd("1.0.0")
	}
	bad.corrupt(bad.record(bad.Env))
	bad.corrupt(bad.record(""))

	if d := bad.wantReason("its record cannot be read", "solutionctl deploy repair "+bad.Env+" "+bad.Solution+" --records"); d.Health != schema.HealthFailed {
		t.Errorf("it is %s", d.Health)
	}
	bad.wantBroken("record of "+bad.Env+"/"+bad.Solution+": it cannot be read", "record of "+bad.Solution+": it cannot be read")
	history, err := good.Records.History(t.Context(), records.HistoryOptions{})
	if err != nil || !strings.Contains(fmt.Sprint(history.Problems), bad.Env+"/"+bad.Solution) || !strings.Contains(fmt.Sprint(history.Operations), good.Env) {
		t.Errorf("%+v, %v", history, err)
	}
	_, err = good.Records.History(t.Context(), records.HistoryOptions{Solution: bad.Solution})
	good.refused(err, report.Corrupt, "--records")
	if _, err = good.Resume(t.Context(), deployer.ResumeOptions{Solution: good.Solution}); err != nil {
		t.Error(err)
	}
	_, err = good.Resume(t.Context(), deployer.ResumeOptions{Options: plan.Options{DryRun: true}})
	good.refused(err, report.Corrupt, bad.Env+"/"+bad.Solution)
	diff, err := good.Diff(t.Context(), survey.Selection{})
	if err != nil || !strings.Contains(fmt.Sprint(diff.Notices), bad.Env+"/"+bad.Solution+" is left out") {
		t.Errorf("%+v, %v", diff, err)
	}
	_, err = good.Diff(t.Context(), survey.Selection{Solution: bad.Solution})
	good.refused(err, report.Corrupt, "--records")
	if _, err = good.Survey.Status(t.Context(), survey.StatusOptions{Drift: true}); err != nil {
		t.Error(err)
	}
	good.imported("1.1.0", content{})
	if _, err = good.Activate(t.Context(), deployer.ActivateOptions{Solution: good.Solution, Version: "1.1.0"}); err != nil {
		t.Error(err)
	}
	if _, err = good.Change(t.Context(), deployer.ChangeOptions{
		Options: plan.Options{NoWait: true}, Environment: good.Env, Solution: good.Solution, Direction: records.Up, Version: "1.1.0",
	}); err != nil {
		t.Error(err)
	}
	if err = good.removal(false); err != nil {
		t.Error(err)
	}
	// Its own verbs are refused, and none of them guesses.
	bad.refused(bad.removal(false), report.Corrupt, "solutionctl deploy repair --records")
	_, err = bad.add("1.0.0")
	bad.refused(err, report.Corrupt, "--records")
	bad.refused(bad.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: bad.Solution + "-1.0.0"}), report.Corrupt, "--records")

	if _, err = bad.RebuildRecords(t.Context(), rebuild.Options{Selection: survey.Selection{Solution: bad.Solution}}); err != nil {
		t.Fatal(err)
	}
	bad.wantBroken()
	if err = bad.removal(false); err != nil {
		t.Fatal(err)
	}
	bad.nothing()
	if _, err = bad.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: bad.Solution}); err != nil {
		t.Fatal(err)
	}
	if bad.find(crds, "", bad.crdName()) != nil {
		t.Error("the definition is still there")
	}
}

// TestMissingContent continues without the stored objects, and renders them again.
func TestMissingContent(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("1.1.0", content{})
	id := record.Key{Namespace: b.Env, Name: b.Solution}.ID()
	lose := func() {
		for secret, err := range b.Cluster.List(t.Context(), secrets, cluster.SystemNamespace, listOf("solutionctl.io/stores=content,solutionctl.io/owner="+id)) {
			if err != nil {
				t.Fatal(err)
			}
			b.delete(secret)
		}
	}
	lose()
	b.wantBroken("what was deployed cannot be read", "Secret "+cluster.SystemNamespace+"/content."+id, "--records")
	if _, err := b.Survey.Status(t.Context(), survey.StatusOptions{Drift: true}); err != nil {
		t.Error(err)
	}
	if diff, err := b.Diff(t.Context(), survey.Selection{Environment: b.Env}); err != nil || !strings.Contains(fmt.Sprint(diff.Notices), "is left out") {
		t.Errorf("%+v, %v", diff, err)
	}
	if done := b.rebuild(); len(done.Parts) != 1 {
		t.Errorf("%+v", done)
	}
	b.wantBroken()
	if diff, err := b.Diff(t.Context(), survey.Selection{Environment: b.Env, Solution: b.Solution}); err != nil || !diff.Empty() {
		t.Errorf("%+v, %v", diff, err)
	}
	lose()
	if _, err := b.Change(t.Context(), deployer.ChangeOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Direction: records.Up, Version: "1.1.0",
	}); err != nil {
		t.Error(err)
	}

	// A payload comes back with another import.
	for secret, err := range b.Cluster.List(t.Context(), secrets, cluster.SystemNamespace, listOf("solutionctl.io/stores=content,solutionctl.io/owner=imports")) {
		if err != nil {
			t.Fatal(err)
		}
		b.delete(secret)
	}
	b.Deployer = b.connect(b.kubeconfig()) // which has read nothing yet
	_, err := b.add("1.1.0")
	b.refused(err, report.Corrupt, "solutionctl deploy import /srv/"+b.Solution)
	b.wantBroken("payload of "+b.Solution+"-1.0.0", "solutionctl deploy import /srv/"+b.Solution+"-1.0.0.iso")
	b.imported("1.0.0", content{})
	b.imported("1.1.0", content{})
	b.wantBroken()
}

// TestHostileDocument writes what it wants into the document of an environment, as an operator there could.
func TestHostileDocument(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.imported("1.1.0", content{})
	b.create(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: metalk8s-environment, namespace: %s}\ndata: {%s: 1.1.0}\n", b.Env, b.Solution))
	if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.1.0"}); err != nil {
		t.Error(err)
	}
	for _, version := range []string{`"1.0.0"`, `"9.9.9"`, `"1.0.0\nsolutionctl: error: all is lost\u001b[2J"`, `"\u202e0.0.1"`, `"` + strings.Repeat("9", 1<<16) + `"`} {
		b.setVersions(`{"` + b.Solution + `": ` + version + `, "Not.A_Name": "1.0.0"}`)
		status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range status.Environments {
			if e.Name != b.Env {
				continue
			}
			text := fmt.Sprint(e.Namespaces)
			if strings.ContainsAny(text, "\n\x1b\u202e") || len(text) > 1<<12 || !strings.Contains(text, `"Not.A_Name" cannot be the name of a Solution`) {
				t.Errorf("%q", text)
			}
		}
		if err = b.Records.CheckUnused(t.Context(), b.Solution, "9.9.9"); err != nil {
			t.Error(err)
		}
		if _, err = b.Activate(t.Context(), deployer.ActivateOptions{Options: plan.Options{DryRun: true}, Solution: b.Solution, Version: "1.0.0"}); err != nil {
			t.Error(err)
		}
		if _, err = b.Deactivate(t.Context(), deployer.DeactivateOptions{Options: plan.Options{DryRun: true}, Solution: b.Solution}); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution}); err != nil {
		t.Error(err)
	}
	if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.0.0"}); err != nil {
		t.Error(err)
	}
}

func listOf(selector string) metav1.ListOptions { return metav1.ListOptions{LabelSelector: selector} }
