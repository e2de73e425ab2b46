package deployer_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// examine runs the doctor on a host without a store and returns its output, a line for each check.
func (b *bed) examine(d *deployer.Deployer, now func() time.Time) string {
	b.Helper()
	dir := b.TempDir()
	s, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		b.Fatal(err)
	}
	diagnosis := doctor.Examine(b.Context(), doctor.Options{
		Store: s, Configuration: &store.Configuration{Path: filepath.Join(dir, "solutions.yaml")}, Root: dir, Deployer: d, Now: now,
	})
	valid(b.T, "diagnosis", diagnosis)
	var text strings.Builder
	for _, c := range diagnosis.Checks {
		fmt.Fprintf(&text, "%s %s %s: %s\n→ %s\n", c.Result, c.Area, c.Name, c.Message, c.Hint)
	}
	return text.String()
}

func (b *bed) wantFound(text string, lines ...string) {
	b.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			b.Errorf("nothing like %q in:\n%s", line, text)
		}
	}
}

// TestDoctor breaks one thing after the other, in a cluster of its own.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := testcluster.StartFor(t, testcluster.Options{})
	b := newBedOn(t, c)
	b.endpoints = nil
	b.wantFound(b.examine(b.Deployer, time.Now),
		"ok cluster connection: "+c.Host+" answers as user administrator", "ok cluster version: Kubernetes v1.", "ok cluster latency", "ok cluster clock",
		"warning cluster certificate: the certificate of the API server expires on ", "warning cluster certificate: your certificate expires on ",
		"ok cluster apis", "ok cluster webhooks", "ok cluster conversions", "ok cluster leaving",
		"ok rights look", "ok rights import", "ok rights activate", "ok rights environments", "ok rights deploy",
		"ok records locks: no lock is held", "ok records documents", "ok records pending", "skipped registry endpoints: the cluster knows no registry yet",
	)

	// The registry: without an endpoint, with one that is not there, with one that has nothing, with a good one.
	b.activated("1.0.0", content{})
	b.wantFound(b.examine(b.Deployer, time.Now), "problem registry endpoints: the cluster does not know where nodes find images", "solutionctl deploy registry add https://HOST:5000")
	_, err := b.add("1.0.0")
	b.refused(err, report.Refused, "the cluster has no record of where nodes find images", "solutionctl deploy registry add https://HOST:5000")
	has := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" && (!has || !strings.HasPrefix(r.URL.Path, "/v2/"+b.Solution+"-1.0.0/"+b.Solution+"-operator/manifests/sha256:")) {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	registry := schema.ClusterRegistry{
		Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{"https://127.0.0.1:9", server.URL},
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	}
	if _, err = b.AddEndpoints(t.Context(), deployer.EndpointOptions{More: registry}); err != nil {
		t.Fatal(err)
	}
	b.wantFound(b.examine(b.Deployer, time.Now),
		"problem registry endpoints: https://127.0.0.1:9 does not answer", "connection refused",
		"problem registry endpoints: "+server.URL+" does not serve "+b.Solution+"-1.0.0", "import the archives on that host")
	if _, err = b.RemoveEndpoints(t.Context(), deployer.RemoveEndpointsOptions{Endpoints: registry.Endpoints[:1]}); err != nil {
		t.Fatal(err)
	}
	_, err = b.add("1.0.0")
	b.refused(err, report.Refused, "no node could pull the images: "+server.URL+" does not serve "+b.Solution+"-1.0.0", "solutionctl deploy doctor")
	stranger, err := authority.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{string(stranger.CA()), registry.CA} {
		registry.CA = ca
		if _, err = b.AddEndpoints(t.Context(), deployer.EndpointOptions{More: registry, Replace: true}); err != nil {
			t.Fatal(err)
		}
		if ca == string(stranger.CA()) {
			b.wantFound(b.examine(b.Deployer, time.Now), "problem registry endpoints: "+server.URL+" has a certificate that no authority of the registry has signed: nodes refuse it",
				"solutionctl deploy registry add "+server.URL+" --replace")
		}
	}
	has = true
	b.wantFound(b.examine(b.Deployer, time.Now), "ok registry endpoints: "+server.URL+" serves all 1 imported versions")

	// One process is at work, and another one was.
	lock, err := b.Cluster.Lock(t.Context(), "env-"+b.Env, cluster.LockOptions{Identity: "jane@there"})
	if err != nil {
		t.Fatal(err)
	}
	b.wantFound(b.examine(b.Deployer, time.Now), "warning records locks: jane@there is at work since ", "(lock env-"+b.Env+")")
	later := func() time.Time { return time.Now().Add(time.Hour) }
	hurried, err := cluster.Connect(cluster.Options{Kubeconfig: c.Kubeconfig, Now: later})
	if err != nil {
		t.Fatal(err)
	}
	b.wantFound(b.examine(deployer.New(deployer.Config{Cluster: hurried, Now: later, Version: "1.0.0"}), later), "warning cluster clock: the clocks of this host and of the API server are 1h0m0s apart", "jane@there is at work since")
	if err = lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	// One problem that affects no run yet, and one that holds a namespace.
	b.mustAdd("1.0.0")
	b.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: " + b.Env + ", finalizers: [example.com/other]}\n")
	b.create(fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: guard}\n"+
		"webhooks:\n- name: guard.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {service: {namespace: %s, name: guard}}\n"+
		"  rules: [{operations: [CREATE], apiGroups: [batch], resources: [jobs], apiVersions: [v1]}]\n", b.Env))
	namespace := b.get(namespaces, "", b.Env)
	b.delete(namespace)
	b.awaitReasons(namespace, "example.com/other")
	b.wantFound(b.examine(b.Deployer, time.Now),
		"problem cluster webhooks: ValidatingWebhookConfiguration guard asks webhook guard.example.com, which does not answer: Service "+b.Env+"/guard does not exist",
		"kubectl delete validatingwebhookconfiguration guard",
		"warning cluster leaving: Namespace "+b.Env+" is being deleted since ", "ConfigMap "+b.Env+"/other waits for its finalizer example.com/other",
		"solutionctl deploy env delete "+b.Env, "warning records deployments: ", "solutionctl deploy status")

	// A user without rights sees a part, and the missing rights.
	file, err := c.KubeconfigFor("guest")
	if err != nil {
		t.Fatal(err)
	}
	b.wantFound(b.examine(b.connect(file), time.Now),
		"ok cluster connection", "skipped cluster apis", "skipped cluster leaving", "warning rights import: you do not have all permissions for import and unimport",
		"in namespace solutionctl-system:\n- apiGroups: [\"coordination.k8s.io\"]", "skipped records locks", "skipped registry endpoints")

	c.StopAPIServer()
	gone, err := cluster.Connect(cluster.Options{Kubeconfig: c.Kubeconfig, Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	b.wantFound(b.examine(deployer.New(deployer.Config{Cluster: gone, Now: time.Now, Version: "1.0.0"}), time.Now),
		"skipped host store: nothing was imported on this host", "problem cluster connection: API server "+c.Host)
}
