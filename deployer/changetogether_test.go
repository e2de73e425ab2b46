package deployer_test

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestTogether changes two Solutions of which each version needs its like of the other: none can go first, and both go back.
func TestTogether(t *testing.T) {
	b := deployertest.New(t)
	needs := func(version string) deployertest.Content {
		return deployertest.Content{Manifest: "dependsOn: [{solution: base, version: '" + version + "'}]"}
	}
	b.Added("base", "1.0.0", plain)
	b.Added(shop, "1.0.0", needs("^1"))
	b.Imported("base", "2.0.0", plain)
	b.Imported(shop, "2.0.0", needs("^2"))
	_, err := change(records.Up, "2.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "--with base=2.0.0")

	upgrade := deployer.ChangeOptions{
		Environment: site, Solution: shop, Direction: records.Up, Version: "2.0.0", With: []schema.SolutionAt{{Solution: "base", Version: "2.0.0"}},
	}
	have := func(want string) {
		t.Helper()
		document := b.Server.Object("ConfigMap", site, metalk8s.EnvironmentConfigMap)
		data, _, _ := unstructured.NestedStringMap(document.Object, "data")
		if !maps.Equal(data, map[string]string{"base": want, shop: want}) {
			t.Errorf("deployed are %v", data)
		}
	}
	done, err := b.Change(t.Context(), upgrade)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, part := range done.Parts {
		parts = append(parts, part.Solution+" "+part.Version)
	}
	if diff := cmp.Diff([]string{"shop 2.0.0", "base 2.0.0"}, parts); diff != "" {
		t.Error(diff)
	}
	have("2.0.0")
	for range 2 { // they go back together, and once
		must(b, rollback(0))
		have("1.0.0")
	}
}

// host keeps archives, DIR/SOLUTION-VERSION.iso, of which it has only the names.
type host struct {
	*deployertest.Bed
	store    map[schema.SolutionAt]bool
	contents map[string]deployertest.Content // by version
}

func (h host) Import(_ context.Context, files ...string) error {
	for _, file := range files {
		version := strings.TrimSuffix(strings.TrimPrefix(path.Base(file), shop+"-"), ".iso")
		h.store[schema.SolutionAt{Solution: shop, Version: version}] = true
		h.Imported(shop, version, h.contents[version])
	}
	return nil
}

func (host) Judge(context.Context, ...string) error { return nil }

func (h host) Unimport(ctx context.Context, id string) error {
	maps.DeleteFunc(h.store, func(at schema.SolutionAt, _ bool) bool { return at.ID() == id })
	return h.RecordUnimport(ctx, deployer.UnimportOptions{ID: id})
}

func (h host) Stored() ([]schema.SolutionAt, error) { return slices.Collect(maps.Keys(h.store)), nil }

func (h host) Identify(file string) (*schema.Solution, error) {
	p, err := h.Payload(file)
	return p.Solution, err
}

func (h host) Payload(file string) (*render.Payload, error) {
	version := strings.TrimSuffix(strings.TrimPrefix(path.Base(file), shop+"-"), ".iso")
	return deployertest.Payload(h.TB, shop, version, h.contents[version]), nil
}

// TestConverge checks that a configuration file is carried out step by step, and that a second run has nothing to do.
func TestConverge(t *testing.T) {
	h := host{deployertest.New(t), map[schema.SolutionAt]bool{}, map[string]deployertest.Content{"1.0.0": coloured, "1.1.0": coloured}}
	file := func(active string, versions ...string) *schema.SolutionsConfiguration {
		c := schema.NewSolutionsConfiguration()
		for _, version := range versions {
			c.Archives = append(c.Archives, "/mnt/shop-"+version+".iso")
		}
		if active != "" {
			c.Active[shop] = active
		}
		return c
	}
	for _, step := range []struct {
		name string
		file *schema.SolutionsConfiguration
		want string // import; activate; deactivate; unimport
		code report.Code
	}{
		{"active without an archive", file("3.0.0", "1.0.0"), "", report.Refused},
		{"the first", file("latest", "1.0.0", "1.1.0"), "1.0.0 1.1.0; 1.1.0; ; ", ""},
		{"an import was killed before its last step", file("latest", "1.0.0", "1.1.0"), "1.0.0; ; ; ", ""},
		{"an activation was killed before its last step", file("latest", "1.0.0", "1.1.0"), "; 1.1.0; ; ", ""},
		{"an older one, in an older form", &schema.SolutionsConfiguration{
			APIVersion: schema.OlderAPIVersion, Kind: schema.KindSolutionsConfiguration,
			Solutions: []schema.SolutionArchives{{Name: shop, Archives: []string{"/mnt/shop-1.0.0.iso", "/mnt/shop-1.1.0.iso"}, ActiveVersion: "1.0.0"}},
		}, "; 1.0.0; ; ", ""},
		{"one that makes objects lose a field", file("2.0.0", "1.0.0", "1.1.0", "2.0.0"), "2.0.0; 2.0.0; ; ", report.DataLoss},
		{"one that is in use leaves", file("1.1.0", "1.1.0"), "; 1.1.0; ; 1.0.0", report.InUse},
		{"it is not in use any more", file("1.1.0", "1.1.0"), "; 1.1.0; ; 1.0.0", ""},
		{"none", file(""), "; ; 1.1.0; 1.1.0", ""},
		{"a removal was killed before the archive went", file(""), "; ; ; 1.1.0", ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			switch step.name {
			case "one that makes objects lose a field":
				h.Clock(shop, site, "red", "colour: red")
			case "one that is in use leaves":
				h.Deleted("Clock", site, "red")
				must(h.Bed, add("1.0.0"))
			case "it is not in use any more":
				must(h.Bed, remove(shop))
			case "an import was killed before its last step":
				if err := h.Records.Documents.RemoveVersion(t.Context(), shop, "1.0.0"); err != nil {
					t.Fatal(err)
				}
			case "an activation was killed before its last step":
				if err := h.Records.Documents.SetActive(t.Context(), shop, ""); err != nil {
					t.Fatal(err)
				}
			case "a removal was killed before the archive went":
				h.store[schema.SolutionAt{Solution: shop, Version: "1.1.0"}] = true
			}
			converge := func(o plan.Options) (*schema.Convergence, error) {
				shown, err := h.PlanConvergence(t.Context(), deployer.PlanConvergenceOptions{Configuration: step.file, Host: h})
				if err != nil {
					return nil, err
				}
				return shown, h.Converge(t.Context(), deployer.ConvergeOptions{Options: o, Plan: shown, Host: h})
			}
			h.Writes()
			shown, err := converge(plan.Options{DryRun: true})
			if writes := h.Writes(); report.CodeOf(err) != step.code || len(writes) > 0 {
				t.Errorf("plan: %v; it wrote %q", err, writes)
			}
			if shown != nil {
				deployertest.Valid(t, "convergence", shown)
			}
			if shown != nil && steps(shown) != step.want {
				t.Errorf("planned %q, want %q", steps(shown), step.want)
			}
			_, err = converge(plan.Options{})
			if step.code != "" {
				deployertest.Refused(t, err, step.code)
				if writes := slices.DeleteFunc(h.Writes(), isLock); len(writes) > 0 {
					t.Errorf("it wrote %q", writes)
				}
				return
			}
			if again, failure := converge(plan.Options{}); err != nil || failure != nil || !again.Empty() {
				t.Errorf("%v; again: %+v, %v", err, again, failure)
			}
		})
	}
}

func steps(c *schema.Convergence) string {
	versions := func(list []schema.SolutionAt) string {
		var texts []string
		for _, at := range list {
			texts = append(texts, at.Version)
		}
		return strings.Join(texts, " ")
	}
	var imports []schema.SolutionAt
	for _, i := range c.Import {
		imports = append(imports, i.SolutionAt)
	}
	return strings.Join([]string{versions(imports), versions(c.Activate), versions(c.Deactivate), versions(c.Unimport)}, "; ")
}

// TestRolesSuffice: who has the roles that are made for a Solution, and nothing else, can do everything with it.
func TestRolesSuffice(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Imported(shop, "1.1.0", coloured)
	b.Namespace(site, "annex")
	grants, err := b.Roles(t.Context(), rights.RolesOptions{Solution: shop, Environment: site, Installers: "installers", Applications: "users"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := grants.YAML()
	if err != nil || !strings.Contains(string(text), "name: installers") || !strings.Contains(string(text), "clocks") {
		t.Errorf("%s, %v", text, err)
	}
	var installer []rbacv1.ClusterRole
	for _, item := range grants.Items {
		if role, ok := item.(rbacv1.ClusterRole); ok && strings.HasPrefix(role.Name, "solutionctl-installer-") {
			installer = append(installer, role)
		}
	}
	b.Server.May = func(a authorization.ResourceAttributes) bool {
		return slices.ContainsFunc(installer, func(role rbacv1.ClusterRole) bool {
			return (role.Namespace == "" || role.Namespace == a.Namespace) && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Verbs, a.Verb) && slices.Contains(rule.APIGroups, a.Group) &&
					slices.Contains(rule.Resources, strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")) &&
					(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
			})
		})
	}
	installers := b.Connect()
	for _, s := range life {
		if _, err := s.run(t.Context(), installers, plan.Options{}); err != nil {
			t.Fatalf("%s: %v\n%q", s.name, err, report.Hints(err))
		}
	}
	if missing, err := installers.Cluster.Missing(t.Context(), cluster.Permission{Verb: "get", Resource: "secrets", Namespace: "kube-system"}); err != nil || len(missing) != 1 {
		t.Errorf("they may read the Secrets of Kubernetes: %v", err)
	}
}
