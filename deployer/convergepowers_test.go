package deployer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestConvergeNeedsApproval checks that a configuration whose active version has powers without approval is refused before anything is
// imported or changed. A dry run lists the missing approvals; it is refused only if no approval would help.
func TestConvergeNeedsApproval(t *testing.T) {
	evil := deployertest.Content{Files: map[string]string{"operator/deploy/crds/evil_crd.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
 metadata: {name: evils.apps}, spec: {group: apps, scope: Namespaced, names: {kind: Evil, plural: evils}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
`}}
	broken := wide("{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}\n")
	h := host{deployertest.New(t), map[schema.SolutionAt]bool{}, map[string]deployertest.Content{"1.0.0": plain, "1.1.0": wide(clusterAdmin), "1.2.0": evil, "1.3.0": broken}}
	converge := func(version string, o plan.Options) (*schema.Convergence, error) {
		t.Helper()
		c := schema.NewSolutionsConfiguration()
		for have := range h.contents {
			if have < version && have < "1.2.0" || have == version {
				c.Archives = append(c.Archives, "/mnt/shop-"+have+".iso")
			}
		}
		c.Active[shop] = version
		planned, err := h.PlanConvergence(t.Context(), deployer.PlanConvergenceOptions{Configuration: c, Host: h})
		if err != nil {
			t.Fatal(err)
		}
		return planned, h.Converge(t.Context(), deployer.ConvergeOptions{Options: o, Plan: planned, Host: h})
	}
	unchanged := func(versions ...string) {
		t.Helper()
		if writes := slices.DeleteFunc(h.Writes(), isLock); len(writes) > 0 {
			t.Errorf("it wrote %q", writes)
		}
		if len(h.store) != len(versions) {
			t.Errorf("stored are %v, want %q", h.store, versions)
		}
	}
	if _, err := converge("1.0.0", plan.Options{}); err != nil {
		t.Fatal(err)
	}
	h.Writes()
	planned, err := converge("1.1.0", plan.Options{DryRun: true})
	if err != nil || !slices.ContainsFunc(planned.Notices, func(n string) bool {
		return strings.Contains(n, "shop-1.1.0") && strings.Contains(n, "mallory") && strings.Contains(n, "--allow")
	}) {
		t.Errorf("the dry run does not show it: %+v, %v", planned, err)
	}
	unchanged("1.0.0")
	_, err = converge("1.1.0", plan.Options{})
	deployertest.Refused(t, err, report.Refused, "activate shop-1.1.0", "mallory", "--allow")
	unchanged("1.0.0")
	missing, ok := errors.AsType[*plan.PowersError](err)
	if !ok || !missing.CanBeApproved() {
		t.Fatalf("nobody can approve of %v", err)
	}
	if _, err = converge("1.1.0", plan.Options{Allow: missing.Allowances()}); err != nil {
		t.Fatal(err)
	}
	if planned, err = converge("1.1.0", plan.Options{}); err != nil || !planned.Empty() {
		t.Errorf("again: %+v, %v", planned, err)
	}
	h.Writes()
	for _, dry := range []bool{true, false} {
		_, err = converge("1.2.0", plan.Options{DryRun: dry, Allow: []string{"defines-foreign-apis"}})
		deployertest.Refused(t, err, report.Refused, "activate shop-1.2.0", "no approval allows")
		unchanged("1.0.0", "1.1.0")
	}
	_, err = converge("1.3.0", plan.Options{})
	deployertest.Refused(t, err, report.Refused, "activate shop-1.3.0", "cannot bring an object of this kind")
	unchanged("1.0.0", "1.1.0")
}
