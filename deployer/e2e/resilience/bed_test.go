// Package resilience_test runs the verbs of the built program where clusters are at their worst: behind servers and networks
// that fail, beside others who change the same objects, and with processes that are stopped.
package resilience_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema/report"
)

// options are the options of every cluster of these tests.
var options = testcluster.Options{FakeNodes: 2}

func TestMain(m *testing.M) { testcluster.Main(m, options) }

var installed sync.Once

// program returns the file of solutionctl, which is in the directory of the cluster and goes with it.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(testcluster.Shared(t).Dir, "solutionctl")
	installed.Do(func() { testcluster.Program(t, testcluster.Shared(t).Dir) })
	return file
}

// bed is a Solution and an environment of its own in a cluster. Its versions 1.0.0 and 1.1.0 are imported, and nothing else
// is done.
type bed struct {
	*testing.T
	*deployer.Deployer // that reaches the cluster without a proxy
	Server             *testcluster.Cluster
	Name               string // of the Solution
	Env                string // environment and namespace
	Kubeconfig         string // for the program
}

var beds atomic.Int64

// newBed is in the cluster that most tests share.
func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedOn(t, testcluster.Shared(t))
}

func newBedOn(t *testing.T, server *testcluster.Cluster) *bed {
	t.Helper()
	n := beds.Add(1)
	b := &bed{T: t, Server: server, Name: fmt.Sprintf("demo%d", n), Env: fmt.Sprintf("env%d", n), Kubeconfig: server.Kubeconfig}
	b.Deployer = connect(t, cluster.Options{Kubeconfig: server.Kubeconfig})
	if err := solution.Import(t.Context(), b.Deployer, b.Name, "1.0.0", "1.1.0"); err != nil {
		t.Fatal(err)
	}
	return b
}

// connect returns the verbs without the program.
func connect(t *testing.T, o cluster.Options) *deployer.Deployer {
	t.Helper()
	o.Kubeconfig = cmp.Or(o.Kubeconfig, testcluster.Shared(t).Kubeconfig)
	if o.Now == nil {
		o.Now = time.Now
	}
	c, err := cluster.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	return deployer.New(deployer.Config{Cluster: c, Now: o.Now, Version: "1.0.0", Identity: "tester@here", LockWait: time.Minute})
}

// verb is a command line of the program, where NAME and ENV stand for those of the bed.
type verb string

// life has the verbs of a Solution's whole life, in order.
var life = []verb{
	"env create ENV --description Test", "activate NAME 1.0.0", "add ENV NAME 1.0.0", "activate NAME 1.1.0", "upgrade ENV NAME 1.1.0",
	"rollback ENV NAME", "remove ENV NAME", "env delete ENV --yes", "deactivate NAME",
}

// command prepares a run of the program.
func (b *bed) command(v verb, more ...string) *exec.Cmd {
	b.Helper()
	args := append([]string{"deploy"}, strings.Fields(strings.NewReplacer("NAME", b.Name, "ENV", b.Env).Replace(string(v)))...)
	cmd := exec.CommandContext(b.Context(), program(b.T), append(args, more...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Kubeconfig, "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_VERBOSE=true", "USER=alice")
	return cmd
}

// outcome is how a run of the program ended.
type outcome struct {
	Status int
	Code   report.Code // "" when it succeeded
	Text   string      // its output
}

// run runs a verb to its end. Who finds the lock of a run that died waits for it.
func (b *bed) run(v verb, more ...string) outcome {
	b.Helper()
	return b.finish(b.command(v, append(more, "--lock-wait", "2m")...))
}

// finish runs a command to its end, or waits for that of one that was started.
func (b *bed) finish(cmd *exec.Cmd) outcome {
	b.Helper()
	var text bytes.Buffer
	if cmd.Process == nil {
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
	}
	_ = cmd.Wait() // its state has the details
	if into, ok := cmd.Stderr.(*bytes.Buffer); ok {
		text = *into
	}
	o := outcome{Status: cmd.ProcessState.ExitCode(), Text: text.String()}
	if _, after, found := strings.Cut(o.Text, "solutionctl: code: "); found {
		word, _, _ := strings.Cut(after, " ")
		o.Code = report.Code(word)
	}
	if want := o.Code.ExitStatus(); o.Code != "" && want != o.Status {
		b.Errorf("exit status %d with code %s, want %d:\n%s", o.Status, o.Code, want, o.Text)
	}
	return o
}

// must runs a verb that has to succeed.
func (b *bed) must(v verb, more ...string) {
	b.Helper()
	if o := b.run(v, more...); o.Status != 0 {
		b.Fatalf("%s: exit status %d\n%s", v, o.Status, o.Text)
	}
}

// refused expects an outcome with this code and these words.
func (b *bed) refused(o outcome, code report.Code, words ...string) {
	b.Helper()
	if o.Code != code {
		b.Fatalf("got %q, want %q:\n%s", o.Code, code, o.Text)
	}
	for _, word := range words {
		if !strings.Contains(o.Text, word) {
			b.Errorf("nothing about %q in:\n%s", word, o.Text)
		}
	}
}

var (
	configMaps  = kube.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets     = kube.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaces  = kube.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	leases      = kube.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	deployments = kube.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	definitions = kube.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// dumped are the kinds of objects that are compared, besides the definition of the Solution's custom resources.
var dumped = []kube.GroupVersionKind{
	configMaps, secrets, deployments,
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// dump writes the objects of the Solution and of its environment, without the values that differ each time.
func (b *bed) dump() string {
	b.Helper()
	var text strings.Builder
	for _, object := range []*unstructured.Unstructured{b.get(namespaces, "", b.Env), b.get(definitions, "", solution.CRD(b.Name))} {
		if object != nil {
			text.WriteString(b.normal(object))
		}
	}
	for _, kind := range dumped {
		for object, err := range b.Cluster.List(b.Context(), kind, b.Env, metav1.ListOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			if object.GetName() != "kube-root-ca.crt" && object.GetName() != "default" {
				text.WriteString(b.normal(object))
			}
		}
	}
	shared, err := (&metalk8s.Documents{Cluster: b.Cluster}).Solutions(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(&text, "active: %q\n", shared.Active(b.Name))
	for _, key := range b.keys() {
		b.dumpState(&text, key)
	}
	replace := []string{}
	for _, key := range b.keys() {
		replace = append(replace, key.ID(), "$release")
	}
	return strings.NewReplacer(append(replace, b.Name, "$name", b.Env, "$env")...).Replace(text.String())
}

// keys are the keys of the bed's releases: the Solution's part of the cluster, and that of the environment.
func (b *bed) keys() []record.Key {
	return []record.Key{{Name: b.Name}, {Name: b.Name, Namespace: b.Env}}
}

func (b *bed) dumpState(text *strings.Builder, key record.Key) {
	b.Helper()
	e := &engine.Engine{Store: &record.Store{Cluster: b.Cluster}}
	state, err := e.State(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	if state.Pending != nil {
		fmt.Fprintf(text, "pending: %s %s\n", state.Pending.Operation, state.Pending.Version)
	}
	if state.Current != nil {
		fmt.Fprintf(text, "current: %d %s %s\n", state.Current.Number, state.Current.Operation, state.Current.Version)
		for _, object := range state.Current.Objects {
			fmt.Fprintf(text, "  %s kept %t known %t\n", object.ObjectRef, object.Kept, object.UID != "")
		}
	}
	for _, old := range state.History {
		fmt.Fprintf(text, "history: %d %s %s %s\n", old.Number, old.Operation, old.Version, old.Outcome)
	}
	for secret, err := range b.Cluster.List(b.Context(), secrets, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: "solutionctl.io/owner=" + key.ID()}) {
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(text, "stored: %v\n", secret.GetLabels()["solutionctl.io/stores"])
	}
}

// normal writes an object without identities, times, versions and what controllers say.
func (b *bed) normal(object *unstructured.Unstructured) string {
	b.Helper()
	managers := slices.DeleteFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource != "" || m.Manager == "kube-apiserver" || m.Manager == "kube-controller-manager"
	})
	for i := range managers {
		managers[i].Time = nil
	}
	slices.SortFunc(managers, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Manager, b.Manager) })
	object = object.DeepCopy()
	object.SetManagedFields(managers)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	// It is a digest of the ConfigMap, in which the names are.
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations", "solutionctl.io/configuration")
	unstructured.RemoveNestedField(object.Object, "status")
	b.unpack(object)
	data, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		b.Fatal(err)
	}
	return string(data) + "\n"
}

// unpack replaces compressed data of an object by their text, which has the names.
func (b *bed) unpack(object *unstructured.Unstructured) {
	b.Helper()
	packed, _, err := unstructured.NestedStringMap(object.Object, "binaryData")
	for key, value := range packed {
		var data []byte
		if data, err = base64.StdEncoding.DecodeString(value); err != nil {
			break
		}
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err != nil {
			break
		}
		if data, err = io.ReadAll(r); err != nil {
			break
		}
		if err = unstructured.SetNestedField(object.Object, string(data), "binaryData", key); err != nil {
			break
		}
	}
	if err != nil {
		b.Fatalf("%s: %v", object.GetName(), err)
	}
}

// get returns an object, or nil.
func (b *bed) get(kind kube.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	b.Helper()
	object, err := b.Cluster.Get(b.Context(), kind, namespace, name)
	if err != nil {
		b.Fatal(err)
	}
	return object
}

// operator is the Deployment of the Solution in its environment, which must be there.
func (b *bed) operator() *unstructured.Unstructured {
	b.Helper()
	object := b.get(deployments, b.Env, b.Name+"-operator")
	if object == nil {
		b.Fatal("there is no operator")
	}
	return object
}
