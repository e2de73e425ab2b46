package deployer_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// export is one that a test can read.
type export struct{ strings.Builder }

func (e *export) open(write func(io.Writer) error) error { return write(e) }

// edit changes an object under another field manager.
func edit(b *deployertest.Bed, kind, name, value string, field ...string) {
	b.Helper()
	object := b.Server.Object(kind, site, name)
	if object == nil {
		object = b.Server.Object(kind, "", name)
	}
	if value == "" {
		unstructured.RemoveNestedField(object.Object, field...)
	} else if err := unstructured.SetNestedField(object.Object, value, field...); err != nil {
		b.Fatal(err)
	}
	b.Put(object)
}

// TestDrift checks that a read-only user finds every difference to what was deployed, and that repair restores those and nothing else.
func TestDrift(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(*deployertest.Bed)
		want   []string // what is found and brought back
		// notRepaired marks a difference that repair reports and leaves alone.
		notRepaired bool
	}{
		{"nothing", func(*deployertest.Bed) {}, nil, false},
		{"what others add", func(b *deployertest.Bed) { edit(b, "ConfigMap", "shop-operator-config", "x", "data", "theirs") }, nil, false},
		{
			"a field", func(b *deployertest.Bed) {
				edit(b, "ConfigMap", "shop-operator-config", "changed", "data", "operator.yaml")
			},
			[]string{"update ConfigMap site/shop-operator-config"},
			false,
		},
		{
			"a label that was removed", func(b *deployertest.Bed) {
				edit(b, "Deployment", "shop-operator", "", "metadata", "labels", "app.kubernetes.io/version")
			},
			[]string{"update Deployment site/shop-operator"},
			false,
		},
		{"an object that is gone", func(b *deployertest.Bed) { b.Deleted("Role", site, "shop-operator") }, []string{"create Role site/shop-operator"}, false},
		{
			"the version that MetalK8s reads", func(b *deployertest.Bed) { edit(b, "ConfigMap", metalk8s.EnvironmentConfigMap, "9.9.9", "data", shop) },
			[]string{"update ConfigMap site/metalk8s-environment"},
			false,
		},
		{
			"the version that MetalK8s reads, which is gone", func(b *deployertest.Bed) { edit(b, "ConfigMap", metalk8s.EnvironmentConfigMap, "", "data", shop) },
			[]string{"update ConfigMap site/metalk8s-environment"},
			false,
		},
		{
			"the version that MetalK8s reads, which is none", func(b *deployertest.Bed) {
				edit(b, "ConfigMap", metalk8s.EnvironmentConfigMap, "no version\nat all", "data", shop)
			},
			[]string{"update ConfigMap site/metalk8s-environment"},
			false,
		},
		{
			"the active version", func(b *deployertest.Bed) {
				if err := b.Records.Documents.SetActive(b.Context(), shop, ""); err != nil {
					b.Fatal(err)
				}
			},
			[]string{"update ConfigMap metalk8s-solutions/metalk8s-solutions"},
			false,
		},
		{
			"a definition", func(b *deployertest.Bed) {
				edit(b, "CustomResourceDefinition", "clocks.shop.example", "Watch", "spec", "names", "kind")
			},
			[]string{"update " + clocks},
			true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Added(shop, "1.0.0", plain)
			test.damage(b)
			b.Writes()
			found, err := b.Diff(t.Context(), survey.Selection{Environment: "", Solution: shop})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, changes(found)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			planned, err := b.Repair(t.Context(), deployer.RepairOptions{Options: plan.Options{DryRun: true}, Selection: survey.Selection{Solution: shop}})
			if err != nil || !planned.Planned {
				t.Fatalf("%+v, %v", planned, err)
			}
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("looking wrote %q", writes)
			}
			done, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Solution: shop}})
			if err != nil {
				t.Fatal(err)
			}
			if test.notRepaired {
				if !done.Empty() || !strings.Contains(strings.Join(done.Notices, "\n"), "deploy activate shop 1.0.0") {
					t.Errorf("%+v", done)
				}
				return
			}
			if diff := cmp.Diff(test.want, changes(done)); diff != "" {
				t.Errorf("repaired (-want +got):\n%s", diff)
			}
			if left, err := b.Diff(t.Context(), survey.Selection{}); err != nil || !left.Empty() {
				t.Errorf("left: %q, %v", changes(left), err)
			}
		})
	}
}

// TestRepairRefuses checks that repair refuses to overwrite an object that another user may have created on purpose.
func TestRepairRefuses(t *testing.T) {
	b := deployertest.New(t)
	_, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Solution: shop}})
	deployertest.Refused(t, err, report.NotFound, shop)
	b.Added(shop, "1.0.0", plain)
	b.Deleted("ServiceAccount", site, "shop-operator")
	b.Server.Put(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop-operator, namespace: site}}")
	_, err = b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Solution: shop}})
	deployertest.Refused(t, err, report.Conflict, "ServiceAccount site/shop-operator", "--adopt")
	if done, err := b.Repair(t.Context(), deployer.RepairOptions{Options: plan.Options{Adopt: true}}); err != nil || done.Empty() {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestRebuild checks that a lost or unreadable record is made again from the cluster, and that nothing else is changed.
func TestRebuild(t *testing.T) {
	record := func(namespace string) string { return record.Key{Namespace: namespace, Name: shop}.SecretName() }
	for _, test := range []struct {
		name, namespace, version string
		lose                     func(*deployertest.Bed)
		notices                  []string // words of the notices
	}{
		{"lost", site, "1.0.0", func(b *deployertest.Bed) { b.Deleted("Secret", cluster.SystemNamespace, record(site)) }, nil},
		{"lost, and MetalK8s' document with it", site, "1.0.0", func(b *deployertest.Bed) {
			b.Deleted("Secret", cluster.SystemNamespace, record(site))
			b.Deleted("ConfigMap", site, metalk8s.EnvironmentConfigMap)
		}, nil},
		{"that of the cluster", "", "1.1.0", func(b *deployertest.Bed) { b.Deleted("Secret", cluster.SystemNamespace, record("")) }, nil},
		{"unreadable", site, "1.0.0", func(b *deployertest.Bed) {
			secret := b.Server.Object("Secret", cluster.SystemNamespace, record(site))
			secret.Object["data"] = map[string]any{"state.json.gz": "H4sIAAAA"}
			b.Put(secret)
		}, nil},
		{"lost, with an edited object", site, "1.0.0", func(b *deployertest.Bed) {
			b.Deleted("Secret", cluster.SystemNamespace, record(site))
			edit(b, "ConfigMap", "shop-operator-config", "changed", "data", "operator.yaml")
			b.Deleted("Role", site, "shop-operator")
		}, []string{"ConfigMap site/shop-operator-config", "Role site/shop-operator", "deploy add site shop 1.0.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Added(shop, "1.0.0", plain)
			b.Activated(shop, "1.1.0", coloured)
			test.lose(b)
			broken, err := b.Broken(t.Context())
			if err != nil || len(broken) != 1 || !strings.Contains(broken[0].Cure, "--records") {
				t.Fatalf("broken: %+v, %v", broken, err)
			}
			b.Writes()
			planned, err := b.RebuildRecords(t.Context(), rebuild.Options{Options: plan.Options{DryRun: true}})
			if err != nil || len(planned.Parts) != 1 || planned.Parts[0].Version != test.version {
				t.Fatalf("%+v, %v", planned, err)
			}
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("the plan wrote %q", writes)
			}
			done, err := b.RebuildRecords(t.Context(), rebuild.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(changes(planned), changes(done)); diff != "" {
				t.Errorf("what was planned was not done:\n%s", diff)
			}
			for _, write := range b.Writes() {
				if !isLock(write) && !strings.Contains(write, "/namespaces/solutionctl-system/secrets") {
					t.Errorf("it changed an object: %s", write)
				}
			}
			for _, word := range test.notices {
				if !strings.Contains(strings.Join(done.Notices, "\n"), word) {
					t.Errorf("nothing about %q in %q", word, done.Notices)
				}
			}
			if broken, err := b.Broken(t.Context()); err != nil || len(broken) > 0 {
				t.Errorf("still broken: %+v, %v", broken, err)
			}
			if again, err := b.RebuildRecords(t.Context(), rebuild.Options{}); err != nil || !again.Empty() {
				t.Errorf("%+v, %v", again, err)
			}
			if test.namespace != "" && test.notices == nil { // the record is good for what comes next
				must(b, remove(shop))
			}
		})
	}
	t.Run("of what is not imported any more", func(t *testing.T) {
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", plain)
		b.Deleted("Secret", cluster.SystemNamespace, records.ImportsName)
		b.Deleted("Secret", cluster.SystemNamespace, record(site))
		_, err := b.RebuildRecords(t.Context(), rebuild.Options{Selection: survey.Selection{Environment: site}})
		deployertest.Refused(t, err, report.NotImported, shop, record(site))
	})
}

// TestHeld: what finalizers keep is listed, and let go only as it was listed.
func TestHeld(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Server.Put(t, "{apiVersion: shop.example/v1, kind: Clock, metadata: {name: a, namespace: site, finalizers: [example.com/hold]}, spec: {hands: 2}}")
	b.Server.Put(t, "{apiVersion: shop.example/v1, kind: Clock, metadata: {name: b, namespace: site, finalizers: [example.com/hold]}, spec: {hands: 2}}")
	held := func() (names []string, list []environments.Held) {
		t.Helper()
		list, err := b.Held(t.Context(), environments.HeldOptions{Environment: site})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			names = append(names, h.String())
		}
		return names, list
	}
	if names, _ := held(); len(names) > 0 {
		t.Errorf("nobody has deleted %q", names)
	}
	var out export
	o := environments.DeleteOptions{Options: plan.Options{Timeout: 10}, Environment: site, Data: plan.DeleteData, Export: out.open}
	_, err := b.DeleteEnvironment(t.Context(), o)
	deployertest.Refused(t, err, report.Timeout, "deploy env delete site --delete-data --force-finalizers")
	names, list := held()
	if diff := cmp.Diff([]string{"Clock site/a: example.com/hold", "Clock site/b: example.com/hold"}, names); diff != "" {
		t.Fatal(diff)
	}

	// The list was made before another finalizer was added, so the consent does not cover it.
	clock := b.Server.Object("Clock", site, "a")
	clock.SetFinalizers([]string{"example.com/other"})
	b.Put(clock)
	o.Release = list
	_, err = b.DeleteEnvironment(t.Context(), o)
	deployertest.Refused(t, err, report.Conflict, "Clock site/a")

	_, o.Release = held()
	planned := o
	planned.DryRun = true
	b.Writes()
	done, err := b.DeleteEnvironment(t.Context(), planned)
	if err != nil || !slices.Contains(changes(done), "update Clock site/a") || len(b.Writes()) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	o.Timeout = 0
	if _, err = b.DeleteEnvironment(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if left := b.Server.Names("Clock"); len(left) > 0 || slices.Contains(b.Server.Names("Namespace"), site) {
		t.Errorf("%q are there yet", left)
	}
	if !strings.Contains(out.String(), `"hands":2`) {
		t.Errorf("exported: %s", out.String())
	}
}

// TestDeleteWithoutNamespace checks that an environment whose namespace is already deleted loses its objects elsewhere as well.
func TestDeleteWithoutNamespace(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Deleted("Namespace", "", site)
	_, err := b.Resume(t.Context(), deployer.ResumeOptions{Environment: site})
	deployertest.Refused(t, err, report.NotFound, site)
	if done, err := b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: site}); err != nil || len(done.Parts) == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: site, Name: shop}); err != nil || state.Current != nil {
		t.Errorf("%+v, %v", state, err)
	}
	if done, err := b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: site}); err != nil || !done.Empty() || len(done.Notices) == 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
}

// TestPurgeLeavesOthers checks that the system namespace stays if it has objects of others, with these objects only.
func TestPurgeLeavesOthers(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	must(b, deleteSite(plan.RefuseData))
	if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-1.0.0"}); err != nil {
		t.Fatal(err)
	}
	b.Server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: solutionctl-system}}")
	done := must(b, purge)
	if !strings.Contains(strings.Join(done.Notices, "\n"), "theirs") {
		t.Errorf("%q", done.Notices)
	}
	if left := b.Server.Names("Secret"); !slices.Equal(left, []string{"solutionctl-system/theirs"}) {
		t.Errorf("left: %q", left)
	}
	if again := must(b, purge); !again.Empty() {
		t.Errorf("%+v", again)
	}
}

// TestEndpoints: where nodes find images is added to, judged before it is written, and never mixed up.
func TestEndpoints(t *testing.T) {
	b := deployertest.New(t)
	add := func(dryRun bool, endpoints ...string) (*schema.ClusterRegistry, error) {
		return b.AddEndpoints(t.Context(), deployer.EndpointOptions{
			DryRun: dryRun, More: schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: endpoints},
		})
	}
	b.Writes()
	if planned, err := add(true, "http://10.0.0.1:5000"); err != nil || len(planned.Endpoints) != 1 || len(b.Writes()) > 0 {
		t.Errorf("%+v, %v", planned, err)
	}
	for _, endpoint := range []string{"http://10.0.0.1:5000", "http://10.0.0.2:5000", "http://10.0.0.1:5000"} {
		if _, err := add(false, endpoint); err != nil {
			t.Fatal(err)
		}
	}
	left, err := b.RemoveEndpoints(t.Context(), deployer.RemoveEndpointsOptions{Endpoints: []string{"http://10.0.0.1:5000"}})
	if err != nil || !slices.Equal(left.Endpoints, []string{"http://10.0.0.2:5000"}) {
		t.Errorf("%+v, %v", left, err)
	}
	_, err = b.RemoveEndpoints(t.Context(), deployer.RemoveEndpointsOptions{Endpoints: []string{"http://10.0.0.9:5000"}})
	deployertest.Refused(t, err, report.NotFound, "http://10.0.0.9:5000")
}
