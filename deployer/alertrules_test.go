package deployer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
)

// rules are the alert rules of the shop, in the cluster or in its environments.
func rules(annotations string) deployertest.Content {
	return deployertest.Content{Files: map[string]string{
		"monitoring/rules.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: shop, annotations: {" + annotations + "}}\n" +
			"spec: {groups: [{name: shop, rules: [{alert: Down, expr: shop_up == 0}]}]}\n",
	}}
}

// TestRulesMoveToEnvironments checks that rules deployed once for the cluster move to the environments in the next version. Each step
// reports what it changes and what remains, and there is no drift in between.
func TestRulesMoveToEnvironments(t *testing.T) {
	b := deployertest.New(t)
	b.MonitoringKinds("PrometheusRule")
	b.Activated(shop, "1.0.0", rules("solutionctl.io/scope: cluster"))
	b.Imported(shop, "1.1.0", rules(""))
	must(b, add("1.0.0"))
	if b.Server.Object("PrometheusRule", "shop-system", shop) == nil || b.Server.Object("PrometheusRule", site, shop) != nil {
		t.Fatal("the rules of 1.0.0 are not where they are said to be")
	}
	done := must(b, activate("1.1.0"))
	if got := changes(done); !slices.Contains(got, "delete PrometheusRule shop-system/shop") {
		t.Errorf("activating does %q", got)
	}
	notices := strings.Join(done.Notices, "\n")
	for _, want := range []string{
		"PrometheusRule shop-system/shop goes: alerting rules belong to environments",
		"no alerting rules are in " + site + " until the Solution is deployed there again: solutionctl deploy add ENVIRONMENT shop VERSION",
	} {
		if !strings.Contains(notices, want) {
			t.Errorf("activating says %q, not %q", notices, want)
		}
	}
	differences, err := b.Diff(t.Context(), survey.Selection{Solution: shop})
	if got := changes(differences); err != nil || len(got) > 0 {
		t.Errorf("between the steps the differences are %q, %v", got, err)
	}
	if got := changes(must(b, change("upgrade", "1.1.0"))); !slices.Contains(got, "create PrometheusRule "+site+"/shop") {
		t.Errorf("the upgrade does %q", got)
	}
	expression := func() string {
		groups := b.Server.Object("PrometheusRule", site, shop).Object["spec"].(map[string]any)["groups"].([]any)
		return groups[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["expr"].(string)
	}
	if got := expression(); got != `shop_up{namespace="`+site+`"} == 0` {
		t.Errorf("the rule is about %s", got)
	}
	if again := must(b, activate("1.1.0")).Notices; strings.Contains(strings.Join(again, "\n"), "rules") {
		t.Errorf("activating once more says %q", again)
	}
}
