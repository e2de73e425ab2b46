package deployer_test

import (
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema/report"
)

// mayAs answers access reviews for a user in the group of installers of an environment's roles.
func mayAs(grants *rights.Grants) func(authorization.ResourceAttributes) bool {
	return func(a authorization.ResourceAttributes) bool {
		return slices.ContainsFunc(grants.Items, func(item any) bool {
			role, ok := item.(rbacv1.ClusterRole)
			if !ok || strings.Contains(role.Name, "applications") ||
				role.Kind == "Role" && role.Namespace != a.Namespace || strings.HasSuffix(role.Name, "-environment") && a.Namespace != site {
				return false
			}
			return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Resources, strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")) &&
					slices.Contains(r.Verbs, a.Verb) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
			})
		})
	}
}

// TestRolesOfComponents checks that the roles printed for a Solution with components suffice to add it with all of its hooks, upgrade,
// repair and remove it.
func TestRolesOfComponents(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace(site, site)
	b.Activated(shop, "1.0.0", withHooks(t))
	b.Imported(shop, "1.1.0", withHooks(t))
	roles := func() *rights.Grants {
		grants, err := b.Roles(t.Context(), rights.RolesOptions{Solution: shop, Environment: site, Installers: "installers"})
		if err != nil {
			t.Fatal(err)
		}
		return grants
	}
	grants := roles()
	if told := strings.Join(grants.Notices, "\n"); !strings.Contains(told, "component identity of shop-1.0.0 is a chart") {
		t.Errorf("nobody is told what the roles of a chart depend on: %s", told)
	}
	installer := func(what string, run func(d *deployer.Deployer) error) {
		t.Helper()
		b.Only(nowhere, mayAs(grants))
		err := run(b.Connect())
		b.Server.May, b.Server.Answer = nil, nil
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, strings.Join(report.Hints(err), "\n"))
		}
	}
	installer("add", func(d *deployer.Deployer) error {
		_, err := d.Add(t.Context(), deployer.AddOptions{Environment: site, Solution: shop, Version: "1.0.0"})
		return err
	})
	b.Deleted("Secret", site, "scheduler")
	installer("repair", func(d *deployer.Deployer) error {
		_, err := d.Repair(t.Context(), deployer.RepairOptions{})
		return err
	})
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.1.0"}); err != nil {
		t.Fatal(err)
	}
	installer("upgrade", func(d *deployer.Deployer) error {
		_, err := d.Change(t.Context(), deployer.ChangeOptions{Environment: site, Solution: shop, Direction: "upgrade", Version: "1.1.0"})
		return err
	})
	installer("remove", func(d *deployer.Deployer) error {
		_, err := d.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop})
		return err
	})
}
