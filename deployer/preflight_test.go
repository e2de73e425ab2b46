package deployer_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// TestPreflight: a plan that adds pods comes with checks, what a user must not list is not known, and a plan without changes asks nothing.
func TestPreflight(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	var mu sync.Mutex
	var asked []string
	forbidden := false
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, list := range []string{"/api/v1/nodes", "/api/v1/pods", "/resourcequotas", "/persistentvolumes"} {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, list) {
				asked = append(asked, list)
				if forbidden {
					clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "nodes"}, "", errors.New(`User "guest" cannot list resource "nodes" in API group ""`)))
					return true
				}
			}
		}
		return false
	}
	checks := func(run verb, o plan.Options) (results string) {
		t.Helper()
		asked = nil
		done, err := run(t.Context(), b.Deployer, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range done.Preflight {
			results += string(c.Name) + " " + string(c.Result) + "\n"
		}
		slices.Sort(asked)
		return results + strings.Join(slices.Compact(asked), " ") // a long list has pages
	}
	dry := plan.Options{DryRun: true}
	const node = "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}, conditions: [{type: Ready, status: 'True'}]}}"
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"no node", func() {}, "kubernetes pass\nimages warning\nroom fail\nquota pass\n/api/v1/nodes /api/v1/pods /resourcequotas"},
		{"a node", func() { b.Server.Put(t, node) }, "kubernetes pass\nimages warning\nroom pass\nquota pass\n/api/v1/nodes /api/v1/pods /resourcequotas"},
		{"a quota", func() {
			b.Server.Put(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: site}, spec: {hard: {pods: '0'}}}")
		}, "kubernetes pass\nimages warning\nroom pass\nquota fail\n/api/v1/nodes /api/v1/pods /resourcequotas"},
		{"no permission", func() { forbidden = true }, "kubernetes pass\nimages warning\nroom unknown\nquota unknown\n/api/v1/nodes /resourcequotas"},
	} {
		step.do()
		if got := checks(add("1.0.0"), dry); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
	}
	forbidden = false
	if got := checks(add("1.0.0"), plan.Options{}); got != "" {
		t.Errorf("while it is added: %s", got)
	}
	if got := checks(add("1.0.0"), dry); got != "" {
		t.Errorf("without changes: %s", got)
	}
	b.Activated(shop, "1.1.0", plain)
	if got, want := checks(change(records.Up, "1.1.0"), dry), "kubernetes pass\nimages warning\nroom pass\nquota fail\n/api/v1/nodes /resourcequotas"; got != want {
		t.Errorf("for an upgrade:\ngot  %s\nwant %s", got, want)
	}
	if got := checks(remove(shop), dry); got != "" {
		t.Errorf("for a removal: %s", got)
	}
}
