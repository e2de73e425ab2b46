package doctor_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
)

// patient is a cluster in memory, and the host from which it is examined.
type patient struct {
	*deployertest.Bed
	root string
	now  func() time.Time
}

// diagnose examines the host and the cluster.
func (p *patient) diagnose() *schema.Diagnosis {
	p.Helper()
	s, err := store.Open(filepath.Join(p.root, "store"))
	if err != nil {
		p.Fatal(err)
	}
	return doctor.Examine(p.Context(), doctor.Options{
		Store: s, Configuration: &store.Configuration{Path: filepath.Join(p.root, "solutions.yaml")}, Root: p.root, Node: "here", Deployer: p.Deployer, Now: p.now,
	})
}

// examine returns the report of the doctor, a line for each check with its hint.
func (p *patient) examine() []string {
	p.Helper()
	d := p.diagnose()
	data, err := json.Marshal(d)
	if err == nil {
		err = schema.ValidateOutput("diagnosis", data)
	}
	if err != nil {
		p.Error(err)
	}
	var lines []string
	problems, warnings, subjects := 0, 0, map[string]bool{}
	for _, c := range d.Checks {
		if c.Result == schema.CheckProblem && subjects[c.Subject()] {
			p.Errorf("%q has two problems", c.Subject())
		}
		subjects[c.Subject()] = subjects[c.Subject()] || c.Result == schema.CheckProblem
		lines = append(lines, fmt.Sprintf("%s %s %s: %s → %s", c.Result, c.Area, c.Name, c.Message, c.Hint))
		problems += map[bool]int{true: 1}[c.Result == schema.CheckProblem]
		warnings += map[bool]int{true: 1}[c.Result == schema.CheckWarning]
	}
	if d.Problems != problems || d.Warnings != warnings {
		p.Errorf("%d problems and %d warnings were counted in %q", d.Problems, d.Warnings, lines)
	}
	return lines
}

// finds expects for each text one line with all its words, separated by " … ", and no line with a text after "no ".
func (p *patient) finds(want ...string) {
	p.Helper()
	lines := p.examine()
	for _, line := range want {
		if unwanted, ok := strings.CutPrefix(line, "no "); ok {
			if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, unwanted) }) {
				p.Errorf("something like %q in:\n%s", unwanted, strings.Join(lines, "\n"))
			}
			continue
		}
		words := strings.Split(line, " … ")
		if !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, words[0]) && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) })
		}) {
			p.Errorf("nothing like %q in:\n%s", line, strings.Join(lines, "\n"))
		}
	}
}

// answer lets requests for a path be answered by the test.
func (p *patient) answer(path string, handle http.HandlerFunc) {
	p.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		handle(w, r)
		return true
	}
}

func isVersion(version string) func(*patient) {
	return func(p *patient) {
		p.answer("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"gitVersion":%q}`, version) })
	}
}

func puts(document string) func(*patient) {
	return func(p *patient) { p.Server.Put(p, document) }
}

// heldUntil is a lock that jane took an hour before.
func heldUntil(renewed time.Time) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}\n---\n{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-site, namespace: solutionctl-system}, "+
		"spec: {holderIdentity: jane@there x, leaseDurationSeconds: 15, acquireTime: '2026-01-02T03:04:05.000000Z', renewTime: %q}}", renewed.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// refusesLocks makes the API server refuse Leases in the name of a webhook.
func refusesLocks(p *patient) {
	refusal := apierrors.NewForbidden(kube.GroupResource{Resource: "leases"}, "check", nil)
	refusal.ErrStatus.Message = `admission webhook "guard.example.com" denied the request: not here`
	refuses(p, "/leases", refusal)
}

// refuses makes the API server refuse all writes to a path.
func refuses(p *patient, path string, refusal *apierrors.StatusError) {
	p.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, path) {
			return false
		}
		clustertest.Fail(w, refusal)
		return true
	}
}

// TestCluster examines a cluster in which all is well, and in which one thing is not.
func TestCluster(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(*patient)
		want []string
	}{
		"all is well": {func(p *patient) { p.Added("shop", "1.0.0", deployertest.Content{}) }, []string{
			"ok cluster connection: … answers as user jane@example.com", "ok cluster version: Kubernetes v1.36.3", "ok cluster latency", "ok cluster clock",
			"ok cluster apis", "ok cluster webhooks", "ok cluster conversions", "ok cluster leaving",
			"ok rights look", "ok rights import", "ok rights activate", "ok rights environments", "ok rights deploy",
			"ok records locks: no lock is held", "ok records documents", "ok records pending", "ok records records", "ok records deployments: 2 of 2 deployments well",
			"skipped node registry: this host is not a node",
		}},
		"support that ends soon, has ended, and ends later": {func(p *patient) {
			until := func(days int) deployertest.Content {
				return deployertest.Content{Manifest: "supportedUntil: " + p.now().AddDate(0, 0, days).Format(time.DateOnly)}
			}
			p.Imported("shop", "0.9.0", until(-100))
			p.Added("shop", "1.0.0", until(29))
			p.Activated("bank", "1.0.0", until(-1))
			p.Activated("farm", "1.0.0", until(31))
		}, []string{
			"no shop 0.9.0 is in use", "warning records support: shop 1.0.0 is in use, and its support ends on … deploy compatibility shop",
			"warning records support: bank 1.0.0 is in use, and its support has ended on … deploy compatibility bank", "ok records support: farm 1.0.0 is supported until",
		}},
		"no Prometheus to ask": {func(*patient) {}, []string{"skipped records monitoring: the cluster has no Prometheus object"}},
		"a rule that no Prometheus selects": {func(p *patient) {
			p.Server.Put(p, prometheusKinds)
			p.Cluster.Refresh()
			p.Server.Put(p, "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}\n---\n{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}, "+
				"spec: {ruleSelector: {matchLabels: {release: kps}}, ruleNamespaceSelector: {}}}")
			p.Added("shop", "1.0.0", deployertest.Content{Files: map[string]string{"monitoring/rules.yaml": "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, " +
				"metadata: {name: shop}, spec: {groups: [{name: shop, rules: [{alert: Down, expr: up == 0}]}]}}"}})
		}, []string{
			"warning records monitoring: no Prometheus selects PrometheusRule site/shop: Prometheus monitoring/kps wants its label release=kps … deploy monitoring config --rule-label release=kps",
			"ok records deployments: 2 of 2 deployments well",
		}},
		"alerts about solutionctl itself that no Prometheus selects": {func(p *patient) {
			p.Server.Put(p, prometheusKinds)
			p.Cluster.Refresh()
			p.Server.Put(p, "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}\n---\n{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}, "+
				"spec: {ruleSelector: {matchLabels: {release: kps}}, ruleNamespaceSelector: {}}}")
			p.Added("shop", "1.0.0", deployertest.Content{})
			objects, err := monitoring.Objects("solutionctl-system", monitoring.Target{})
			if err != nil {
				p.Fatal(err)
			}
			p.Server.Put(p, string(objects))
		}, []string{
			"warning records monitoring: no Prometheus selects PrometheusRule solutionctl-system/solutionctl-operations: Prometheus monitoring/kps wants its label release=kps; " +
				"'solutionctl deploy serve --listen ADDRESS --print-monitoring --monitoring-label release=kps | kubectl apply -f -' on the host of the registry mends that",
		}},
		"images that no node keeps": {func(*patient) {}, []string{"skipped registry nodes: no node keeps the images of Solutions … deploy node preload --nodes all"}},
		"images that some nodes keep": {func(p *patient) {
			p.Added("shop", "1.0.0", deployertest.Content{})
			needed, _, err := p.Records.Needed(p.Context(), records.NeedOptions{})
			if err == nil {
				err = p.Records.RecordPreloaded(p.Context(), map[string]*records.NodeImages{"good": {Images: needed}, "old": {Images: needed, Unpinned: true}, "less": {Images: needed[1:]}}, nil)
			}
			if err != nil {
				p.Fatal(err)
			}
			for _, name := range []string{"good", "old", "less", "new"} {
				p.Server.Put(p, "{apiVersion: v1, kind: Node, metadata: {name: "+name+"}}")
			}
		}, []string{
			"warning registry nodes: node less lacks 1 of the … registry.solutionctl.invalid/shop-1.0.0/ … → solutionctl deploy node preload --nodes less",
			"warning registry nodes: node new lacks … → solutionctl deploy node preload --nodes new",
			"warning registry nodes: node old has the images … does not keep all of them", "no node good",
		}},
		"images that all nodes keep": {func(p *patient) {
			p.Added("shop", "1.0.0", deployertest.Content{})
			needed, _, err := p.Records.Needed(p.Context(), records.NeedOptions{})
			if err == nil {
				err = p.Records.RecordPreloaded(p.Context(), map[string]*records.NodeImages{"good": {Images: needed}}, nil)
			}
			if err != nil {
				p.Fatal(err)
			}
			p.Server.Put(p, "{apiVersion: v1, kind: Node, metadata: {name: good}}")
		}, []string{"ok registry nodes: the … of deployed Solutions stay on 1 node"}},
		"nothing was imported": {func(*patient) {}, []string{"skipped registry endpoints: the cluster knows no registry yet", "ok records records"}},

		"the server does not answer": {
			func(p *patient) {
				p.answer("/version", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			},
			[]string{"problem cluster connection: API server", "no cluster apis", "no records"},
		},
		"an old Kubernetes":     {isVersion("v1.29.4"), []string{"problem cluster version: Kubernetes v1.29.4 is older than 1.30 → upgrade the cluster"}},
		"the oldest Kubernetes": {isVersion("v1.30.0"), []string{"ok cluster version: Kubernetes v1.30.0"}},
		"a new Kubernetes":      {isVersion("v1.37.0-alpha.1"), []string{"warning cluster version: Kubernetes v1.37.0-alpha.1 is newer"}},
		"one of a distribution": {isVersion("v1.33.1+k3s1"), []string{"ok cluster version: Kubernetes v1.33.1+k3s1"}},
		"clocks are apart": {
			func(p *patient) {
				p.now = func() time.Time { return time.Now().Add(time.Hour) }
				c, err := cluster.Connect(cluster.Options{Kubeconfig: p.Server.Kubeconfig(p), Now: p.now, Retry: -1})
				if err != nil {
					p.Fatal(err)
				}
				p.Deployer = deployer.New(deployer.Config{Cluster: c, Now: p.now, Version: "1.0.0"})
			},
			[]string{"warning cluster clock: the clocks of this host and of the API server are … apart → synchronize both"},
		},

		"the server of an API is gone": {
			puts("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.metrics.example.com}, spec: {service: {name: metrics, namespace: site}}, " +
				"status: {conditions: [{type: Available, status: 'False', reason: MissingEndpoints, message: no endpoints for metrics}]}}"),
			[]string{"problem cluster apis: APIService v1.metrics.example.com does not work … no endpoints for metrics … kubectl delete apiservice v1.metrics.example.com"},
		},
		"the Service of a webhook is gone": {
			puts("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: guard.example.com, failurePolicy: Fail, " +
				"clientConfig: {service: {namespace: site, name: guard}}, rules: [{operations: [CREATE], apiGroups: [batch], resources: [jobs], apiVersions: [v1]}]}]}"),
			[]string{"problem cluster webhooks: ValidatingWebhookConfiguration guard asks webhook guard.example.com, which does not answer: Service site/guard does not exist → … kubectl delete validatingwebhookconfiguration guard"},
		},
		"a webhook that need not be asked": {
			puts("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: guard.example.com, failurePolicy: Ignore, " +
				"clientConfig: {service: {namespace: site, name: guard}}, rules: [{operations: [CREATE], apiGroups: [batch], resources: [jobs], apiVersions: [v1]}]}]}"),
			[]string{"ok cluster webhooks"},
		},
		"who converts custom resources is gone": {
			puts("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pizzas.example.com}, spec: {group: example.com, scope: Namespaced, " +
				"names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}], " +
				"conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: site, name: oven}}}}}}"),
			[]string{"problem cluster conversions: CustomResourceDefinition pizzas.example.com converts its objects by a webhook that does not answer … Service site/oven does not exist → … kubectl patch crd pizzas.example.com"},
		},
		"a namespace does not go": {
			func(p *patient) {
				p.Server.Put(p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: site, finalizers: [example.com/hold]}}")
				p.Deleted("Namespace", "", "site")
			},
			[]string{"warning cluster leaving: Namespace site is being deleted since … 'solutionctl deploy env delete site --namespace site' waits for it"},
		},
		"a definition does not go": {
			func(p *patient) {
				p.Server.Put(p, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pizzas.example.com, finalizers: [example.com/hold]}, spec: {group: example.com, "+
					"scope: Namespaced, names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}]}}")
				p.Deleted("CustomResourceDefinition", "", "pizzas.example.com")
			},
			[]string{"warning cluster leaving: CustomResourceDefinition pizzas.example.com is being deleted since"},
		},

		"few rights": {
			func(p *patient) {
				p.Server.May = func(a authorization.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" }
			},
			[]string{"ok rights look", "warning rights import: you do not have all permissions for import and unimport → missing: … coordination.k8s.io", "warning rights deploy: … in namespace site"},
		},
		"no right to look": {
			func(p *patient) {
				p.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != http.MethodGet || strings.Count(r.URL.Path, "/") < 3 {
						return false
					}
					clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "things"}, "", errors.New(`User "guest" cannot list resource "things" in API group ""`)))
					return true
				}
			},
			[]string{"ok cluster connection", "skipped cluster apis", "skipped cluster leaving", "skipped records locks", "skipped records documents", "skipped records records", "skipped registry endpoints", "skipped node registry: not checked: ", "skipped loader run"},
		},

		"a webhook of a Solution refuses locks": {
			func(p *patient) {
				approved := true
				p.Imported("shop", "1.0.0", deployertest.Content{Files: map[string]string{"operator/cluster/webhook.yaml": "{apiVersion: v1, kind: Service, metadata: {name: guard}, spec: {selector: {app: guard}}}\n---\n" +
					"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: guard.example.com, failurePolicy: Fail, " +
					"clientConfig: {service: {namespace: site, name: guard}}, rules: [{operations: [CREATE], apiGroups: [coordination.k8s.io], resources: [leases], apiVersions: [v1]}]}]}"}})
				if _, err := p.Activate(p.Context(), deployer.ActivateOptions{Solution: "shop", Version: "1.0.0", ClusterWide: &approved}); err != nil {
					p.Fatal(err)
				}
				refusesLocks(p)
			},
			[]string{"problem records locks: ValidatingWebhookConfiguration guard refuses locks … guard.example.com refuses it → remove the webhooks of Solution shop … solutionctl deploy deactivate shop --force-webhooks"},
		},
		"a webhook of another owner refuses locks": {
			func(p *patient) {
				p.Server.Put(p, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: guard.example.com, failurePolicy: Ignore}]}")
				p.Activated("shop", "1.0.0", deployertest.Content{})
				refusesLocks(p)
			},
			[]string{"problem records locks: ValidatingWebhookConfiguration guard refuses locks … guard.example.com refuses it → if it is not needed: kubectl delete validatingwebhookconfiguration guard"},
		},
		"a webhook that does not answer refuses ConfigMaps": {
			func(p *patient) {
				p.Server.Put(p, "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: inject}, webhooks: [{name: inject.example.com, failurePolicy: Fail, clientConfig: {url: https://inject.example.com}}]}")
				p.Activated("shop", "1.0.0", deployertest.Content{})
				refuses(p, "/configmaps", apierrors.NewInternalError(errors.New(`failed calling webhook "inject.example.com": failed to call webhook: connection refused`)))
			},
			[]string{"problem cluster webhooks: MutatingWebhookConfiguration inject refuses ConfigMaps in namespace solutionctl-system … inject.example.com … → if it is not needed: kubectl delete mutatingwebhookconfiguration inject"},
		},

		"another process is at work":         {puts(heldUntil(time.Now().Add(time.Minute))), []string{"warning records locks: jane@there is at work since 2026-01-02T03:04:05Z (lock env-site) → wait"}},
		"a process was at work, and is dead": {puts(heldUntil(time.Now().Add(-time.Hour))), []string{"warning records locks: jane@there took lock env-site at 2026-01-02T03:04:05Z, and gives no sign of life since … the next command acquires it"}},
		"a document is unreadable":           {puts("{apiVersion: v1, kind: Namespace, metadata: {name: metalk8s-solutions}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-solutions, namespace: metalk8s-solutions}, data: {shop: nonsense}}"), []string{"warning records documents: ConfigMap metalk8s-solutions/metalk8s-solutions, key shop"}},
		"something was begun, and does not work": {
			func(p *patient) {
				p.Activated("shop", "1.0.0", deployertest.Content{})
				p.Server.Stall("Deployment")
				if _, err := p.Add(p.Context(), deployer.AddOptions{Options: plan.Options{Timeout: time.Millisecond}, Environment: "site", Solution: "shop", Version: "1.0.0"}); err == nil {
					p.Fatal("it is ready all the same")
				}
			},
			[]string{"warning records pending: add of shop 1.0.0 in namespace site was begun by jane@example.com at … 'solutionctl deploy resume' finishes it", "warning records deployments: 1 of 2 deployments not well → solutionctl deploy status"},
		},
		"a record is damaged": {
			func(p *patient) {
				p.Added("shop", "1.0.0", deployertest.Content{})
				for _, name := range p.Server.Names("Secret") {
					if namespace, short, _ := strings.Cut(name, "/"); strings.HasPrefix(short, "state.") {
						p.Server.Put(p, "{apiVersion: v1, kind: Secret, metadata: {name: "+short+", namespace: "+namespace+", labels: {solutionctl.io/stores: state}}, data: {state.json.gz: AAAA}}")
					}
				}
			},
			[]string{"problem records records: record of site/shop: it cannot be read … solutionctl deploy repair site shop --records"},
		},
		"what was imported is damaged": {
			func(p *patient) {
				p.Imported("shop", "1.0.0", deployertest.Content{})
				for _, name := range p.Server.Names("Secret") {
					if namespace, short, _ := strings.Cut(name, "/"); strings.HasPrefix(short, "content.") {
						p.Deleted("Secret", namespace, short)
					}
				}
			},
			[]string{"problem records records: … shop-1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
			test.harm(p)
			p.finds(test.want...)
		})
	}
}

// TestWithoutHost: a user without access to this host still gets the checks of the cluster, and a note that others were
// skipped.
// TestUnlistedActive: a version that was activated on another machine is missing in the file of the host that imported it.
func TestUnlistedActive(t *testing.T) {
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	p.Activated("shop", "1.0.0", deployertest.Content{})
	p.Imported("idle", "1.0.0", deployertest.Content{})
	s, err := store.Open(filepath.Join(p.root, "store"))
	if err != nil {
		t.Fatal(err)
	}
	locked, err := s.LockWithin(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(locked.SetRegistryMode(schema.RegistryMetalK8s, "1.0.0"), locked.Unlock()); err != nil {
		t.Fatal(err)
	}
	const problem = "problem host active versions: "
	for active, want := range map[string]string{
		"{}": "does not list as active: shop-1.0.0;", "{shop: 0.9.0}": "in the cluster: 0.9.0 instead of shop-1.0.0;", "{shop: latest}": "", "{shop: 1.0.0}": "",
	} {
		text := "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: [/srv/shop-1.0.0.iso, /srv/idle-1.0.0.iso]\nactive: " + active + "\n"
		if err := os.WriteFile(filepath.Join(p.root, "solutions.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, line := range p.examine() {
			if strings.HasPrefix(line, problem) {
				found = line
			}
		}
		if (found != "") != (want != "") || want != "" && (!strings.Contains(found, want) || !strings.HasSuffix(found, ": solutionctl deploy activate shop 1.0.0")) {
			t.Errorf("active: %s: %q", active, found)
		}
	}
}

func TestWithoutHost(t *testing.T) {
	b := deployertest.New(t)
	b.Added("shop", "1.0.0", deployertest.Content{})
	d := doctor.Examine(t.Context(), doctor.Options{Deployer: b.Deployer, Now: time.Now})
	var hosts []string
	seen := map[string]bool{}
	for _, c := range d.Checks {
		seen[c.Area] = true
		if c.Area == "host" || c.Area == "node" {
			hosts = append(hosts, string(c.Result)+" "+c.Message)
		}
	}
	if len(hosts) != 1 || !strings.HasPrefix(hosts[0], "skipped its archives and its node were not checked") {
		t.Errorf("of the host it says %q", hosts)
	}
	for _, area := range []string{"cluster", "rights", "records", "registry"} {
		if !seen[area] {
			t.Errorf("nothing was said of area %s", area)
		}
	}
}

// secure is a TLS server that logs no failed handshakes.
func secure(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestRegistry asks endpoints of the registry as nodes do.
func TestRegistry(t *testing.T) {
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	none := p.Record("shop", "1.0.0", deployertest.Content{})
	none.Registry.Endpoints = []string{}
	if _, err := p.RecordImport(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	p.finds("problem registry endpoints: the cluster does not know where nodes find images → … solutionctl deploy registry add https://HOST:5000")

	has := false
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" && (!has || !strings.HasPrefix(r.URL.Path, "/v2/shop-1.0.0/shop-operator/manifests/sha256:")) {
			http.NotFound(w, r)
		}
	}
	server := secure(t, serve)
	other := secure(t, http.NotFound)
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	_, err := p.AddEndpoints(t.Context(), deployer.EndpointOptions{More: schema.ClusterRegistry{
		Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{"https://127.0.0.1:9", server.URL, other.URL, named},
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.finds(
		"problem registry endpoints: https://127.0.0.1:9 does not answer … solutionctl deploy registry remove https://127.0.0.1:9",
		"problem registry endpoints: "+server.URL+" does not serve shop-1.0.0 → import the archives on that host, too",
		"problem registry endpoints: "+other.URL+" does not answer: it answers 404 not found: this is not a registry",
		"problem registry endpoints: "+named+" has a certificate for other names and addresses: nodes refuse it → … --tls-name localhost",
		"ok registry certificate: the certificate of "+server.URL+" is valid until",
	)
	has = true
	p.finds("ok registry endpoints: " + server.URL + " serves all 1 imported versions")
	p.now = func() time.Time { return server.Certificate().NotAfter.Add(-time.Hour) }
	p.finds("warning registry certificate: the certificate of " + server.URL + " expires on … restart 'solutionctl deploy serve' there")

	if err := os.MkdirAll(filepath.Join(p.root, "etc/containerd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.root, "etc/containerd/config.toml"), []byte("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.finds("problem node registry: containerd is not configured to use the registry: … → solutionctl deploy node config")
}

// TestUntrustedRegistry: an endpoint has a certificate that nodes do not trust.
func TestUntrustedRegistry(t *testing.T) {
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	server := secure(t, http.NotFound)
	record := p.Record("shop", "1.0.0", deployertest.Content{})
	record.Registry.Endpoints, record.Registry.CA = []string{server.URL}, certificate(t, time.Now().Add(365*24*time.Hour))
	if _, err := p.RecordImport(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	p.finds("problem registry endpoints: " + server.URL + " has a certificate that no authority of the registry has signed: nodes refuse it → … solutionctl deploy registry add " + server.URL + " --replace")

	m := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	record = m.Record("shop", "1.0.0", deployertest.Content{})
	record.Registry = &schema.ClusterRegistry{Mode: schema.RegistryMetalK8s, Host: "metalk8s-registry-from-config.invalid", Endpoints: []string{}}
	if _, err := m.RecordImport(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	m.finds("skipped registry endpoints: MetalK8s' nginx serves the images")
}

// prometheusKinds are two definitions of the Prometheus operator.
const prometheusKinds = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: prometheuses.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: Prometheus, plural: prometheuses}, versions: [{name: v1, served: true, storage: true}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: prometheusrules.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: PrometheusRule, plural: prometheusrules}, versions: [{name: v1, served: true, storage: true}]}}
`
