package deployer_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
)

// TestBundleHasNoSecrets plants a random word wherever a secret may be, and looks for it in the bundle.
func TestBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestNoSecrets without a cluster, and TestScript/support")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.activated("1.0.0", content{Fields: "password: {type: string}"})
	b.mustAdd("1.0.0")
	canary := strings.ToLower(rand.Text())
	b.plant(canary)

	for _, logs := range []bool{false, true} {
		files := b.bundle(logs)
		for name, data := range files {
			for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
				// With --logs the messages of events are there, and these only.
				if leaks := bytes.Count(data, []byte(form)); leaks > 0 && (!logs || name != "bundle.json" || leaks != 1) {
					t.Errorf("logs %t: %s has it %d times:\n%s", logs, name, leaks, data)
				}
			}
		}
		var document schema.SupportBundle
		if err := json.Unmarshal(files["bundle.json"], &document); err != nil {
			t.Fatal(err)
		}
		valid(t, "supportbundle", document)
		b.wantFound(string(files["bundle.json"]), b.Solution+"-1.0.0", `"Deployment `+b.Env+`/`+b.Solution+`-operator"`, `"Secret `+b.Env+`/secret"`,
			`"ConfigMap `+b.Env+`/foreign"`, `"name": "leaky"`, `"state": "terminated: Error, exit code 3"`, `"clocks.`+b.Group+`"`, `"FailedScheduling"`,
			"0/3 nodes are available: 3 Insufficient cpu.", `"operation": "add"`)
		b.wantFound(string(files["README.txt"]), "cluster version: Kubernetes v1.", "There are no values of Secrets")
		if mentioned := strings.Contains(string(files["README.txt"]), "log of "+b.Env+"/leaky/app"); mentioned != logs { // no node has it
			t.Errorf("logs %t, and something about them: %t", logs, mentioned)
		}
	}
}

// plant puts a word into every place for secrets.
func (b *bed) plant(canary string) {
	b.Helper()
	note := "annotations: {kubectl.kubernetes.io/last-applied-configuration: " + canary + ", note: " + canary + "}"
	for _, namespace := range []string{b.Env, cluster.SystemNamespace} {
		b.create(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: %s, %s}\nstringData: {password: %s}\n", namespace, note, canary))
		b.create(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foreign, namespace: %s, %s}\ndata: {file: %s}\nbinaryData: {blob: %s}\n",
			namespace, note, canary, base64.StdEncoding.EncodeToString([]byte(canary))))
	}
	container := fmt.Sprintf("{name: app, image: 'example.com/app:1', command: [run, %s], args: [--password=%s], env: [{name: P, value: %s}], "+
		"readinessProbe: {exec: {command: [%s]}}}", canary, canary, canary, canary)
	b.create(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: leaky, namespace: %s, %s}\nspec: {nodeName: nowhere, automountServiceAccountToken: false, containers: [%s]}\n",
		b.Env, note, container))
	b.create(fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: leaky, namespace: %s, %s}\nspec: {replicas: 0, selector: {matchLabels: {app: leaky}}, "+
		"template: {metadata: {labels: {app: leaky}, %s}, spec: {containers: [%s]}}}\n", b.Env, note, note, container))
	pod := b.get(kube.GroupVersionKind{Version: "v1", Kind: "Pod"}, b.Env, "leaky")
	_, err := b.Cluster.PatchStatus(b.Context(), pod, types.MergePatchType, []byte(fmt.Sprintf(`{"status": {"phase": "Running", "message": %q,
		"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": %q}],
		"containerStatuses": [{"name": "app", "image": "example.com/app:1", "imageID": "", "ready": false, "restartCount": 3,
			"state": {"terminated": {"exitCode": 3, "reason": "Error", "message": %q, "startedAt": null, "finishedAt": null}},
			"lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": %q, "startedAt": null, "finishedAt": null}}}]}}`,
		canary, canary, canary, canary)), cluster.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.newClock(b.Env, "leaky", "hands: 2, password: "+canary)
	event := "apiVersion: v1\nkind: Event\nmetadata: {name: %s, namespace: %s}\ntype: Warning\nreason: %s\nsource: {component: %s}\nmessage: %q\n" +
		"involvedObject: {kind: Pod, name: leaky, namespace: %s}\n"
	b.create(fmt.Sprintf(event, "a", b.Env, "Unhealthy", "kubelet", "Readiness probe failed: "+canary, b.Env))
	b.create(fmt.Sprintf(event, "b", b.Env, "FailedScheduling", "default-scheduler", "0/3 nodes are available: 3 Insufficient cpu.", b.Env))
	// A user who may record events can write anything as their reason, their component and their object.
	b.create(fmt.Sprintf("apiVersion: v1\nkind: Event\nmetadata: {name: c, namespace: %[1]s}\ntype: Warning\nreason: 'login with %[2]s failed'\n"+
		"reportingComponent: 'user %[2]s'\ninvolvedObject: {kind: 'Pod %[2]s', name: '%[2]s !', namespace: %[1]s}\n", b.Env, canary))
	b.create(fmt.Sprintf(event, "d", b.Env, "Password"+canary, "kubelet", "x", b.Env))
	b.patch(b.get(configMaps, b.Env, "metalk8s-environment"), `{"data": {"other": "`+canary+`"}}`)
	// A user changes a managed field: its value is a reason in the status, and in no bundle.
	_, err = b.Cluster.Patch(b.Context(), b.get(configMaps, b.Env, b.Solution+"-operator-config"), types.MergePatchType,
		[]byte(`{"data": {"operator.yaml": "password: `+canary+`"}}`), cluster.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	_, err = b.Cluster.Patch(b.Context(), b.get(namespaces, "", b.Env), types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"solutions.metalk8s.scality.com/environment-description": "`+canary+`"}}}`), cluster.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// bundle collects everything as the command does.
func (b *bed) bundle(logs bool) map[string][]byte {
	b.Helper()
	dir := b.TempDir()
	s, err := store.Open(dir + "/store")
	if err != nil {
		b.Fatal(err)
	}
	diagnosis := doctor.Examine(b.Context(), doctor.Options{
		Store: s, Configuration: &store.Configuration{Path: dir + "/solutions.yaml"}, Root: dir, Deployer: b.Deployer, Now: time.Now,
	})
	collected, err := bundle.Collect(b.Context(), bundle.Options{
		Diagnosis: diagnosis, Deployer: b.Deployer, Tool: "1.0.0", Now: time.Now(), Logs: logs,
	})
	if err != nil {
		b.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range collected.Files {
		files[file.Name] = file.Data
	}
	return files
}
