package deployer_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestUnchangedWithoutLock checks that adding a deployed version again waits for no lock and writes nothing, and that anything else takes the lock,
// which another process holds here.
func TestUnchangedWithoutLock(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(b *deployertest.Bed) // what happened since the first addition; nil for nothing
		version string
		options plan.Options
		code    report.Code
	}{
		"nothing happened":                        {version: "1.0.0"},
		"of a namespace that has another version": {version: "1.1.0", code: report.Locked},
		"an object was changed": {func(b *deployertest.Bed) {
			edit(b, "ConfigMap", "shop-operator-config", "changed", "data", "operator.yaml")
		}, "1.0.0", plan.Options{}, report.Locked},
		"an object was deleted": {func(b *deployertest.Bed) { b.Deleted("Role", site, "shop-operator") }, "1.0.0", plan.Options{}, report.Locked},
		"the document has another version": {func(b *deployertest.Bed) {
			edit(b, "ConfigMap", "metalk8s-environment", "1.1.0", "data", shop)
		}, "1.0.0", plan.Options{}, report.Locked},
		"another operation failed": {func(b *deployertest.Bed) {
			b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				refuses := r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && r.URL.Query().Get("dryRun") == ""
				if refuses {
					clustertest.Fail(w, apierrors.NewBadRequest("no"))
				}
				return refuses
			}
			if _, err := upgrade("1.1.0")(b.Context(), b.Deployer, plan.Options{}); err == nil {
				b.Fatal("it did not fail")
			}
			b.Server.Answer = nil
		}, "1.0.0", plan.Options{}, report.Locked},
		"another plan is expected": {version: "1.0.0", options: plan.Options{Expect: "sha256:0"}, code: report.Locked},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			content := deployertest.Content{Files: map[string]string{ // the cluster has no such kind
				"monitoring/monitor.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: shop}\nspec: {selector: {}, endpoints: []}\n",
			}}
			b.Activated(shop, "1.1.0", content)
			b.Imported(shop, "1.0.0", content)
			must(b, add("1.0.0"))
			if test.before != nil {
				test.before(b)
			}
			if _, err := b.Cluster.Lock(t.Context(), cluster.LockOf(site), cluster.LockOptions{Identity: "jane@there"}); err != nil {
				t.Fatal(err)
			}
			b.Writes()
			done, err := add(test.version)(t.Context(), b.Deployer, test.options)
			if report.CodeOf(err) != test.code || err == nil && !done.Empty() {
				t.Errorf("%v, %+v", err, done)
			}
			if writes := b.Writes(); test.code == "" && len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
}
