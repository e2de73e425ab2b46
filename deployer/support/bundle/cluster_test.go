package bundle_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/schema"
)

// collect collects from a cluster in memory, and returns the files by name.
func collect(b *deployertest.Bed, o bundle.Options) (map[string][]byte, schema.SupportBundle) {
	b.Helper()
	o.Diagnosis, o.Deployer, o.Tool, o.Now = &schema.Diagnosis{Checks: []schema.Check{}}, b.Deployer, "1.0.0", now
	collected, err := bundle.Collect(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range collected.Files {
		files[file.Name] = file.Data
	}
	data, err := json.Marshal(collected.Document)
	if err == nil {
		err = schema.ValidateOutput("supportbundle", data)
	}
	if err != nil {
		b.Error(err)
	}
	return files, collected.Document
}

// canary is a word in each place where a secret could be.
const canary = "hunter2hunter2"

func encoded() string { return base64.StdEncoding.EncodeToString([]byte(canary)) }

// planted are objects with the canary in all places that can have confidential text.
func planted(namespace string) string {
	note := "annotations: {kubectl.kubernetes.io/last-applied-configuration: CANARY}"
	container := "{name: app, image: 'example.com/app:1', command: [run, CANARY], args: [--password=CANARY], env: [{name: P, value: CANARY}]}"
	terminated := "{terminated: {exitCode: 3, reason: Error, message: CANARY, startedAt: null, finishedAt: null}}"
	documents := []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: NS, " + note + "}, type: Opaque, data: {password: ENCODED, other: ENCODED}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: NS, " + note + "}, data: {file: CANARY}, binaryData: {blob: ENCODED}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: leaky, namespace: NS, " + note + "}, spec: {nodeName: node-1, containers: [" + container + "]}, status: {phase: Running, message: CANARY, " +
			"conditions: [{type: Ready, status: 'False', reason: ContainersNotReady, message: CANARY}, {type: 'CANARY !', status: CANARY, reason: 'CANARY happened'}], " +
			"containerStatuses: [{name: app, image: 'example.com/app:1', imageID: '', ready: false, restartCount: 3, state: " + terminated + ", lastState: {waiting: {reason: CrashLoopBackOff, message: CANARY}}}]}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: leaky, namespace: NS, " + note + "}, spec: {replicas: 2, selector: {matchLabels: {app: leaky}}, template: {metadata: {" + note + "}, spec: {containers: [" + container + "]}}}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: leaky, namespace: NS}, spec: {template: {spec: {containers: [" + container + "]}}}}",
		// Any user with permission to create events can write anything into them.
		event("a", "{type: Warning, reason: Unhealthy, source: {component: kubelet}, message: 'Readiness probe failed: CANARY'}"),
		event("b", "{type: Warning, reason: FailedScheduling, source: {component: default-scheduler}, message: '0/3 nodes are available: 3 Insufficient cpu.', series: {count: 7, lastObservedTime: '2026-01-02T03:04:05.000000Z'}}"),
		event("c", "{type: CANARY, reason: 'login with CANARY failed', reportingComponent: 'user CANARY', involvedObject: {kind: 'Pod CANARY', name: 'CANARY !', namespace: NS}}"),
		event("d", "{type: Warning, reason: PasswordCANARY, source: {component: kubelet}, message: x}"),
		event("e", "{type: Normal, reason: Pulled, source: {component: kubelet}, message: 'CANARY was pulled'}"),
		event("f", "{type: Normal, reason: Pulled, source: {component: somebody}, message: 'Container image \"CANARY\" is there'}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: NS}, data: {shop: 1.0.0, other: CANARY, CANARY!: 1.0.0}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: NS, labels: {solutions.metalk8s.scality.com/environment: site}, annotations: {solutions.metalk8s.scality.com/environment-description: CANARY}}}",
		"{apiVersion: v1, kind: Node, metadata: {name: node-1, " + note + "}, status: {nodeInfo: {kubeletVersion: v1.36.3, osImage: Linux}, conditions: [{type: Ready, status: 'True', message: CANARY}]}}",
	}
	return strings.NewReplacer("NS", namespace, "CANARY", canary, "ENCODED", encoded()).Replace(strings.Join(documents, "\n---\n"))
}

func event(name, rest string) string {
	return "{apiVersion: v1, kind: Event, metadata: {name: " + name + ", namespace: NS}, " + strings.TrimPrefix(rest, "{")
}

// TestNoSecrets puts a word into all places that can have confidential text, and searches the bundle for it.
func TestNoSecrets(t *testing.T) {
	b := deployertest.New(t)
	b.Added("shop", "1.0.0", deployertest.Content{Fields: "password: {type: string}"})
	b.Clock("shop", "site", "leaky", "hands: 2, password: "+canary)
	b.Server.Put(t, planted("site"))
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = fmt.Fprint(w, "log of the program: "+canary)
		return true
	}
	for _, logs := range []bool{false, true} {
		files, document := collect(b, bundle.Options{Logs: logs, Archives: []store.Entry{{Path: "/srv/shop.iso", StoredArchive: schema.StoredArchive{Name: "shop", Version: "1.0.0", Size: 7}}}})
		for name, data := range files {
			leaks := bytes.Count(data, []byte(canary)) + bytes.Count(data, []byte(encoded()))
			want := 0
			if logs {
				want = map[string]int{"logs/site/leaky/app.log": 1, "bundle.json": 3}[name] // messages of events, and these only
			}
			if leaks != want {
				t.Errorf("logs %t: %s has it %d times, want %d:\n%s", logs, name, leaks, want, data)
			}
		}
		text := string(files["bundle.json"])
		for _, want := range []string{
			`"id": "shop-1.0.0"`, `"Deployment site/shop-operator"`, `"Secret site/secret"`, `"ConfigMap site/foreign"`, `"name": "leaky"`, `"state": "terminated: Error, exit code 3"`,
			`"last": "waiting: CrashLoopBackOff"`, `"clocks.shop.example"`, `"FailedScheduling"`, "0/3 nodes are available: 3 Insufficient cpu.", `"operation": "add"`, `"kubelet": "v1.36.3"`, `"path": "/srv/shop.iso"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing like %s in:\n%s", want, text)
			}
		}
		if len(document.Missing) > 0 {
			t.Errorf("missing: %q", document.Missing)
		}
		i := slices.IndexFunc(document.Stores, func(s schema.SupportStore) bool { return s.Object == "Secret site/secret" })
		if s := document.Stores[i]; s.Keys != 2 || s.Size != int64(2*len(canary)) || s.Type != "Opaque" {
			t.Errorf("%+v", s)
		}
		i = slices.IndexFunc(document.Environments, func(e schema.SupportEnvironment) bool { return e.Namespace == "site" })
		if e := document.Environments[i]; len(e.Versions) != 1 || e.Versions["shop"] != "1.0.0" {
			t.Errorf("%+v", e)
		}
		i = slices.IndexFunc(document.Events, func(e schema.SupportEvent) bool { return e.Reason == "FailedScheduling" })
		if e := document.Events[i]; e.Count != 7 || e.Last != "2026-01-02T03:04:05.000000Z" || e.Component != "default-scheduler" {
			t.Errorf("%+v", e)
		}
		i = slices.IndexFunc(document.Events, func(e schema.SupportEvent) bool { return e.Component == "(other)" })
		if e := document.Events[i]; e.Reason != "(other)" || e.Type != "(other)" || e.Object != "(other) site/(other)" {
			t.Errorf("%+v", e)
		}
		if readme := string(files["README.txt"]); !strings.Contains(readme, fmt.Sprintf("Kubernetes v1.36.3, logs: %t", logs)) || strings.Contains(readme, "Not collected") {
			t.Errorf("%s", readme)
		}
	}
}

// TestLoader: the bundle has the state of the loader, without text that other users could have written.
func TestLoader(t *testing.T) {
	b := deployertest.New(t)
	b.Server.Stall("Job")
	b.Imported("edge", "1.0.0", deployertest.Content{})
	c, err := schema.ParseLoaderConfiguration("loader.yaml", []byte("apiVersion: solutionctl.io/v1alpha1\nkind: LoaderConfiguration\nspec:\n"+
		"  image: registry.example/solutionctl@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"+
		"  environments: [{name: infra, solutions: [{name: edge}]}]\n  repair: {mode: repair}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := &loader.Launcher{Deployer: b.Deployer, Configuration: c}
	for _, o := range []loader.StartOptions{{Local: true}, {NoWait: true}} {
		if _, err := l.Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.Local {
			b.Deleted("Deployment", "infra", "edge-operator") // so that there is something to do
		}
	}
	object := b.Server.Object("ConfigMap", "solutionctl-system", "loader")
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	object.Object["data"] = map[string]any{"run": data["run"], "progress.json": strings.NewReplacer(
		`"notices":[]`, `"notices":["`+canary+`"]`, `"loaded":`, `"repair":{"at":"2026-01-02T03:04:05Z","times":4,"changed":["`+canary+`"]},"loaded":`,
		`"state":"Pending"`, `"state":"Failed","waitingFor":["`+canary+`"],"error":{"code":"timeout","message":"`+canary+`","hint":"`+canary+`"}`,
		`"phase":"Pending"`, `"phase":"Failed","error":{"code":"timeout","message":"`+canary+`"}`,
	).Replace(data["progress.json"])}
	b.Put(object)
	b.Server.Put(t, strings.ReplaceAll(event("ended", "{type: Normal, reason: LoadEnded, source: {component: solutionctl-loader}, message: 'run 0123456789 has ended: Ready, 1 of 1 parts are ready'}")+"\n---\n"+
		event("more", "{type: Warning, reason: LoadFailed, source: {component: solutionctl-loader}, message: '"+canary+"'}"), "NS", "solutionctl-system"))
	files, document := collect(b, bundle.Options{})
	if n := bytes.Count(files["bundle.json"], []byte(canary)); n > 0 {
		t.Errorf("what anybody may have written is there %d times: %s", n, files["bundle.json"])
	}
	found := document.Loader
	if found == nil || found.Progress == nil || found.Progress.Phase != schema.LoadFailed || found.Progress.Error.Code != "timeout" || found.Progress.Repair.Times != 4 || len(found.Progress.Parts) != 1 {
		t.Fatalf("%s", files["bundle.json"])
	}
	if len(found.Jobs) != 1 || !strings.HasPrefix(found.Jobs[0].Object, "Job solutionctl-system/loader-") || !strings.HasPrefix(found.Jobs[0].Image, "registry.example/solutionctl@") {
		t.Errorf("%+v", found.Jobs)
	}
	if found.Repairs == nil || found.Repairs.Schedule != "*/30 * * * *" || found.Repairs.Object != "CronJob solutionctl-system/loader-repair" {
		t.Errorf("%+v", found.Repairs)
	}
	for _, e := range document.Events {
		if strings.HasPrefix(e.Reason, "Load") && (e.Message == "") != (e.Reason == "LoadFailed") {
			t.Errorf("%+v", e)
		}
	}
	if files, document = collect(b, bundle.Options{Logs: true}); document.Loader.Progress.Error.Message != canary {
		t.Errorf("%s", files["bundle.json"])
	}
}

// TestBounds: the bundle stays small, however much there is, and lists what it left out.
func TestBounds(t *testing.T) {
	b := deployertest.New(t)
	var documents strings.Builder
	for i := range 2001 {
		fmt.Fprintf(&documents, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: site}}\n", i)
	}
	var containers []string
	for i := range 101 {
		containers = append(containers, fmt.Sprintf("{name: c%d, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {startedAt: null}}}", i))
	}
	documents.WriteString("---\n{apiVersion: v1, kind: Pod, metadata: {name: many, namespace: site}, status: {containerStatuses: [" + strings.Join(containers, ", ") + "]}}\n")
	documents.WriteString("---\n{apiVersion: v1, kind: Pod, metadata: {name: odd, namespace: site}, status: {containerStatuses: nonsense}}\n")
	documents.WriteString("---\n" + strings.ReplaceAll(event("long", "{type: Normal, reason: Created, message: '"+strings.Repeat("x", 999)+"éé'}"), "NS", "site"))
	b.Server.Put(t, documents.String())
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		if r.URL.Query().Get("container") == "c7" {
			clustertest.Fail(w, apierrors.NewBadRequest("container c7 is waiting to start"))
		} else {
			_, _ = fmt.Fprint(w, strings.Repeat("x", 256<<10+1))
		}
		return true
	}
	files, document := collect(b, bundle.Options{Logs: true})
	logs := 0
	for name, data := range files {
		if strings.HasPrefix(name, "logs/") {
			if logs++; len(data) != 256<<10 {
				t.Errorf("%s has %d bytes", name, len(data))
			}
		}
	}
	if logs != 100 || len(document.Stores) != 2000 {
		t.Errorf("%d logs, %d stores", logs, len(document.Stores))
	}
	if message := document.Events[0].Message; len(message) != 999 { // no half a character
		t.Errorf("a message of %d bytes", len(message))
	}
	missing := strings.Join(document.Missing, "\n")
	for _, want := range []string{
		`more than 2000 objects of kind ConfigMap in namespace "site"`, "pod site/odd: its status cannot be understood", "log of site/many/c7: ", "container c7 is waiting to start",
	} {
		if !strings.Contains(missing, want) || !strings.Contains(string(files["README.txt"]), want) {
			t.Errorf("nothing is said of %q: %s", want, missing)
		}
	}
	if strings.Contains(missing, "more than 100 logs") { // c7 has none, so that all others fit
		t.Error(missing)
	}
	b.Server.Put(t, "{apiVersion: v1, kind: Pod, metadata: {name: one-more, namespace: site}, status: {containerStatuses: [{name: app, image: i, imageID: '', ready: true, restartCount: 0}]}}")
	if _, document = collect(b, bundle.Options{Logs: true}); !slices.Contains(document.Missing, "more than 100 logs") {
		t.Errorf("%q", document.Missing)
	}
}

// TestPartly: unreadable data is listed as missing, and the rest is there.
func TestPartly(t *testing.T) {
	forbidden := apierrors.NewForbidden(kube.GroupResource{Resource: "secrets"}, "", errors.New(`User "guest" cannot list resource "secrets" in API group ""`))
	for name, test := range map[string]struct {
		answer  func(*http.Request) bool
		missing string
		there   int // Solutions that were imported
	}{
		"nothing is in the way":  {func(*http.Request) bool { return false }, "", 1},
		"no right on Secrets":    {func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/secrets") }, `user "guest" has no permission to list secrets`, 0},
		"no right on namespaces": {func(r *http.Request) bool { return r.URL.Path == "/api/v1/namespaces" }, "environments: ", 1},
		"no right on nodes":      {func(r *http.Request) bool { return r.URL.Path == "/api/v1/nodes" }, "list nodes: ", 1},
		"nothing can be read":    {func(*http.Request) bool { return true }, "everything in the cluster: ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Imported("shop", "1.0.0", deployertest.Content{})
			b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !test.answer(r) {
					return false
				}
				clustertest.Fail(w, forbidden)
				return true
			}
			files, document := collect(b, bundle.Options{})
			if len(document.Imports) != test.there || (len(document.Missing) == 0) != (test.missing == "") || !strings.Contains(strings.Join(document.Missing, "\n"), test.missing) {
				t.Errorf("%d imports; missing %q", len(document.Imports), document.Missing)
			}
			if got := strings.Contains(string(files["README.txt"]), "Not collected:"); got != (test.missing != "") {
				t.Errorf("%s", files["README.txt"])
			}
		})
	}
	b := deployertest.New(t)
	b.Imported("shop", "1.0.0", deployertest.Content{})
	b.Activated("web", "1.0.0", deployertest.Content{})
	for _, name := range b.Server.Names("Secret") {
		if namespace, short, _ := strings.Cut(name, "/"); strings.HasPrefix(short, "state.") {
			b.Server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+short+", namespace: "+namespace+", labels: {solutionctl.io/stores: state}}, data: {state.json.gz: AAAA}}")
		}
	}
	if _, document := collect(b, bundle.Options{}); len(document.Releases) != 0 || !strings.Contains(strings.Join(document.Missing, "\n"), "unexpected EOF") || len(document.Imports) != 2 {
		t.Errorf("a damaged record: %+v, missing %q", document.Releases, document.Missing)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bundle.Collect(ended, bundle.Options{Diagnosis: &schema.Diagnosis{}, Deployer: b.Deployer, Now: now}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it any more: %v", err)
	}
}
