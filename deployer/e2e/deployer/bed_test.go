// Package deployer_test runs the verbs on a real API server.
package deployer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// bed is a Solution and an environment of its own in a cluster that one test has at a time.
type bed struct {
	*deployer.Deployer
	*testing.T
	Solution string // its name
	Env      string // environment and namespace, made by newBed
	Group    string // of its custom resources
	Sink     *report.Recorder

	in        *testcluster.Cluster // nil for an API server in memory
	config    string               // the kubeconfig of an administrator
	endpoints []string             // recorded by imports
}

var beds atomic.Int64

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedOn(t, testcluster.Borrow(t))
}

// newBedOn makes the bed in another cluster, for a test that others would disturb.
func newBedOn(t *testing.T, c *testcluster.Cluster) *bed {
	t.Helper()
	b := makeBed(t, c.Kubeconfig)
	b.in = c
	return b
}

// newJudgment makes the bed of a test of judgments in an API server in memory, which only keeps objects. Such a test is not for what a real
// one refuses, defaults or collects.
func newJudgment(t *testing.T) *bed {
	t.Helper()
	return makeBed(t, clustertest.Start(t).Kubeconfig(t))
}

func makeBed(t *testing.T, kubeconfig string) *bed {
	t.Helper()
	n := beds.Add(1)
	b := &bed{T: t, Solution: fmt.Sprintf("demo%d", n), Env: fmt.Sprintf("env%d", n), Sink: &report.Recorder{}, config: kubeconfig, endpoints: []string{solution.Endpoint}}
	b.Group = deployertest.Group(b.Solution)
	b.Deployer = b.connect(kubeconfig)
	b.environment(b.Env, b.Env)
	return b
}

// connect returns the verbs as another user.
func (b *bed) connect(kubeconfig string) *deployer.Deployer {
	b.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now, Sink: b.Sink})
	if err != nil {
		b.Fatal(err)
	}
	return deployer.New(deployer.Config{Cluster: c, Sink: b.Sink, Now: time.Now, Version: "1.0.0", Identity: "tester@here"})
}

// environment makes a namespace of an environment, as MetalK8s does.
func (b *bed) environment(name, namespace string) {
	b.Helper()
	b.create(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {%s: %s}\n", namespace, metalk8s.EnvironmentLabel, name))
}

func (b *bed) create(text string) *unstructured.Unstructured {
	b.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		b.Fatal(err)
	}
	made, err := b.Cluster.Create(b.Context(), object, cluster.WriteOptions{})
	if err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return made
}

// get returns an object that must be there.
func (b *bed) get(kind kube.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	b.Helper()
	object := b.find(kind, namespace, name)
	if object == nil {
		b.Fatalf("%s %s/%s is not there", kind.Kind, namespace, name)
	}
	return object
}

func (b *bed) find(kind kube.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	b.Helper()
	object, err := b.Cluster.Get(b.Context(), kind, namespace, name)
	if err != nil {
		b.Fatal(err)
	}
	return object
}

var (
	configMaps  = kube.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets     = kube.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaces  = kube.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	deployments = kube.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	roles       = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	crds        = kube.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// clock is the kind of custom resources that the Solution of the bed brings.
func (b *bed) clock() kube.GroupVersionKind {
	return kube.GroupVersionKind{Group: b.Group, Version: "v1", Kind: "Clock"}
}

func (b *bed) crdName() string { return "clocks." + b.Group }

// content is the content of an archive of the bed's Solution; the zero value is a good one.
type content = deployertest.Content

func (b *bed) payload(version string, c content) *render.Payload {
	b.Helper()
	return deployertest.Payload(b, b.Solution, version, c)
}

// imported imports a version.
func (b *bed) imported(version string, c content) {
	b.Helper()
	sum := sha256.Sum256([]byte(b.Solution + version))
	_, err := b.RecordImport(b.Context(), records.ImportRecord{
		Payload: b.payload(version, c), Path: "/srv/" + b.Solution + "-" + version + ".iso", SHA256: hex.EncodeToString(sum[:]), Size: 4096,
		Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: b.endpoints},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// activated imports and activates a version.
func (b *bed) activated(version string, c content) {
	b.Helper()
	b.imported(version, c)
	if _, err := b.Activate(b.Context(), deployer.ActivateOptions{Options: plan.Options{Allow: webhookOfTests}, Solution: b.Solution, Version: version}); err != nil {
		b.Fatal(err)
	}
}

// add adds a version to the bed's environment; there are no nodes, so nothing ever becomes ready.
func (b *bed) add(version string) (*schema.Operation, error) {
	b.Helper()
	return b.Add(b.Context(), deployer.AddOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Version: version,
	})
}

func (b *bed) mustAdd(version string) *schema.Operation {
	b.Helper()
	done, err := b.add(version)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// website makes a custom resource.
func (b *bed) newClock(namespace, name, spec string) *unstructured.Unstructured {
	b.Helper()
	return b.create(fmt.Sprintf("apiVersion: %s/v1\nkind: Clock\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", b.Group, name, namespace, spec))
}

// refused expects an error with this code whose text and hints contain all of these.
func (b *bed) refused(err error, code report.Code, words ...string) {
	b.Helper()
	if report.CodeOf(err) != code {
		b.Fatalf("got %q: %v\nhints: %q\nwant %s", report.CodeOf(err), err, report.Hints(err), code)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
}

// exported is an export that a test can read.
type exported struct {
	strings.Builder
	closed bool
}

func (e *exported) open(write func(io.Writer) error) error {
	err := write(e)
	e.closed = err == nil
	return err
}

func (b *bed) kubeconfig() string {
	b.Helper()
	return b.config
}

func (b *bed) kubeconfigFor(user string) string {
	b.Helper()
	file, err := b.in.KubeconfigFor(user)
	if err != nil {
		b.Fatal(err)
	}
	return file
}
