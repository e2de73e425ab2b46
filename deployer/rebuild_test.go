package deployer_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/survey"

	"github.com/solutionctl/solutionctl/schema/report"
)

// TestRebuildComponents: records of components are made again as that of their Solution is, and passwords stay.
func TestRebuildComponents(t *testing.T) {
	record := func(component string) string {
		return record.Key{Namespace: site, Name: shop, Component: component}.SecretName()
	}
	loseContent := func(b *deployertest.Bed, component string) {
		for _, name := range b.Server.Names("Secret") {
			if short, ok := strings.CutPrefix(name, cluster.SystemNamespace+"/"); ok && strings.HasPrefix(short, "content."+shop+"."+component+".") {
				b.Deleted("Secret", cluster.SystemNamespace, short)
			}
		}
	}
	lose := func(b *deployertest.Bed, components ...string) {
		for _, component := range components {
			b.Deleted("Secret", cluster.SystemNamespace, record(component))
		}
	}
	for _, test := range []struct {
		name    string
		lose    func(*deployertest.Bed)
		records int
		notice  string
	}{
		{"a record", func(b *deployertest.Bed) { lose(b, "db") }, 1, ""},
		{"an unreadable record", func(b *deployertest.Bed) {
			secret := b.Server.Object("Secret", cluster.SystemNamespace, record("db"))
			secret.Object["data"] = map[string]any{"state.json.gz": "H4sIAAAA"}
			b.Put(secret)
		}, 1, ""},
		{"what was rendered", func(b *deployertest.Bed) { loseContent(b, "db") }, 1, "shop.db: the values of --values"},
		{"a record and what was rendered", func(b *deployertest.Bed) { loseContent(b, "db"); lose(b, "db") }, 1, "shop.db: the values of --values"},
		{"those of all components", func(b *deployertest.Bed) { lose(b, "db", "api") }, 2, ""},
		{"that of the Solution", func(b *deployertest.Bed) { lose(b, "") }, 1, ""},
		{"all records", func(b *deployertest.Bed) { lose(b, "", "db", "api", "extra") }, 4, "shop.db: the values of --values"},
		{"all records, and what was rendered", func(b *deployertest.Bed) {
			lose(b, "", "db", "api", "extra")
			loseContent(b, "db")
		}, 4, "shop.db: the values of --values"},
		{"the rendered objects, with an edited password", func(b *deployertest.Bed) {
			edit(b, "Secret", "db-password", base64.StdEncoding.EncodeToString([]byte("01234567890123456 89")), "data", "password")
			loseContent(b, "db")
		}, 1, "Secret site/db-password keeps its values in password"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Activated(shop, "1.0.0", parts(t, nil))
			must(b, choose(t, nil, "extra"))
			test.lose(b)
			was := state(b)
			if broken, err := b.Broken(t.Context()); err != nil || len(broken) != test.records {
				t.Errorf("broken: %+v, %v", broken, err)
			}
			b.Writes()
			done, err := b.RebuildRecords(t.Context(), rebuild.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, write := range b.Writes() {
				if !isLock(write) && !strings.Contains(write, "/namespaces/solutionctl-system/secrets") {
					t.Errorf("it changed an object: %s", write)
				}
			}
			if notices := strings.Join(done.Notices, "\n"); !strings.Contains(notices, test.notice) || test.notice == "" && notices != "" || strings.Contains(notices, was["db-password"]) {
				t.Errorf("the notices are %q, and not %q", notices, test.notice)
			}
			if broken, failure := b.Broken(t.Context()); failure != nil || len(broken) > 0 {
				t.Errorf("still broken: %+v, %v", broken, failure)
			}
			if repaired, failure := b.Repair(t.Context(), deployer.RepairOptions{}); failure != nil || !repaired.Empty() {
				t.Errorf("repair: %v, %v", changes(repaired), failure)
			}
			if diff := cmp.Diff(was, state(b)); diff != "" {
				t.Errorf("it is not as it was:\n%s", diff)
			}
			again, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
			if edited := strings.Contains(test.notice, "keeps its values"); edited {
				deployertest.Refused(t, err, report.Conflict, "Secret site/db-password", ".data.password")
			} else if err != nil || !again.Empty() {
				t.Errorf("adding it again: %v, %v", changes(again), err)
			}
			must(b, remove(shop))
			if got := there(b); got != "" {
				t.Errorf("removed, and left: %s", got)
			}
		})
	}
}

// TestLostComponentsAreFound: a removal leaves nothing behind of a component whose record is lost, also when it is interrupted.
func TestLostComponentsAreFound(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop, Component: "db"}.SecretName())
	_, err := remove(shop)(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Conflict, "ConfigMap site/db", "Secret site/db-password", "--adopt", "--records")
	for number := 1; ; number++ {
		mend := endingAt(b, number)
		_, err := remove(shop)(t.Context(), b.Deployer, plan.Options{Adopt: true})
		if mend(); err == nil {
			break
		}
		if number > 50 {
			t.Fatalf("it never ends: %v", err)
		}
	}
	if got := there(b); got != "" {
		t.Errorf("removed, and left: %s", got)
	}
}

// TestRebuildClusterComponents: the same for what lives in the cluster.
func TestRebuildClusterComponents(t *testing.T) {
	content := parts(t, map[string]string{
		"components/agent.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: agent}\nrules: []\n",
	})
	content.Manifest += "  - {name: agent, manifests: components/agent.yaml, scope: cluster}\n"
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", content)
	approved := true
	for _, wanted := range []bool{false, true} {
		choice := components.Choice{Components: map[string]bool{"agent": wanted}}
		if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0", ClusterWide: &approved, Parts: plan.Parts{Choice: choice}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, component := range []string{"", "agent"} {
		b.Deleted("Secret", cluster.SystemNamespace, record.Key{Name: shop, Component: component}.SecretName())
	}
	if done, err := b.RebuildRecords(t.Context(), rebuild.Options{}); err != nil || len(done.Parts) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	must(b, deactivate(shop))
	if b.Server.Object("ConfigMap", "shop-system", "agent") != nil {
		t.Error("the component is still there")
	}
}

// TestRepairAfterRebuild checks that what was deleted or edited before a record was rebuilt is a difference, which a repair does not judge and leaves
// to a deployment.
func TestRepairAfterRebuild(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace(site, site+"-2")
	b.Activated(shop, "1.0.0", coloured)
	if _, err := b.Add(t.Context(), deployer.AddOptions{Environment: site, Namespace: site, Solution: shop, Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop}.SecretName())
	b.Deleted("ServiceAccount", site, "shop-operator")
	edit(b, "ConfigMap", "shop-operator-config", "changed", "data", "operator.yaml")
	if _, err := b.RebuildRecords(t.Context(), rebuild.Options{}); err != nil {
		t.Fatal(err)
	}
	selection := survey.Selection{Environment: site, Solution: shop}
	diff, err := b.Diff(t.Context(), selection)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(changes(diff)); !strings.Contains(got, "create ServiceAccount site/shop-operator") || !strings.Contains(got, "update ConfigMap site/shop-operator-config") {
		t.Errorf("the differences are %s", got)
	}
	edit(b, "Deployment", "shop-operator", "", "metadata", "labels", "app.kubernetes.io/version") // a repair has this to do
	repaired, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: selection})
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "'solutionctl deploy add site shop 1.0.0 --namespace site' restores it"
	if got := strings.Join(repaired.Notices, "\n"); strings.Count(got, remedy) != 2 || b.Server.Object("ServiceAccount", site, "shop-operator") != nil {
		t.Errorf("the repair reports %s", got)
	}
	if diff, err = b.Diff(t.Context(), selection); err != nil || len(changes(diff)) != 2 || strings.Count(strings.Join(diff.Notices, "\n"), remedy) != 2 {
		t.Errorf("after the repair: %v, %q, %v", changes(diff), diff.Notices, err)
	}
	if _, err = b.Add(t.Context(), deployer.AddOptions{Environment: site, Namespace: site, Solution: shop, Version: "1.0.0", Options: plan.Options{Force: true}}); err != nil {
		t.Fatal(err)
	}
	if b.Server.Object("ServiceAccount", site, "shop-operator") == nil || b.Server.Object("Deployment", site+"-2", "shop-operator") != nil {
		t.Errorf("the command of the notice did not restore it in its namespace only")
	}
	if diff, err = b.Diff(t.Context(), selection); err != nil || len(changes(diff)) > 0 {
		t.Errorf("there are differences after it: %v, %v", changes(diff), err)
	}
}
