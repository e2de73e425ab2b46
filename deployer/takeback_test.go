package deployer_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestTakenBack: an upgrade that fails takes back what it has begun, and not the deployed version of a namespace that it has not changed.
func TestTakenBack(t *testing.T) {
	const second = site + "-2"
	upgrade := func(b *deployertest.Bed, namespace, version string, options deployer.ChangeOptions) error {
		options.Environment, options.Solution, options.Direction = site, shop, records.Up
		options.Namespace, options.Version = namespace, version
		_, err := b.Change(t.Context(), options)
		return err
	}
	refuseOnce := func(b *deployertest.Bed, key record.Key) {
		refused := false
		b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if refused || r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/secrets/"+key.SecretName()) {
				return false
			}
			refused = true
			clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "secrets"}, "", errors.New("exceeded quota")))
			return true
		}
	}
	waiting := deployer.ChangeOptions{RollBack: true, Options: plan.Options{Timeout: 10}}
	for name, test := range map[string]struct {
		fail  func(*deployertest.Bed) error // an upgrade from 1.1.0 to 1.2.0
		first string                        // the versions afterwards
		other string
		back  bool // the error reports that everything is back
	}{
		"before it is recorded": {func(b *deployertest.Bed) error {
			refuseOnce(b, record.Key{Namespace: site, Name: shop})
			return upgrade(b, site, "1.2.0", waiting)
		}, "1.1.0", "1.1.0", false},
		"in another namespace": {func(b *deployertest.Bed) error {
			if err := upgrade(b, site, "1.2.0", deployer.ChangeOptions{}); err != nil {
				return err
			}
			stallOnce(b, second)
			return upgrade(b, "", "1.2.0", waiting)
		}, "1.2.0", "1.1.0", true},
		"where an application is not ready": {func(b *deployertest.Bed) error {
			if err := upgrade(b, "", "1.2.0", deployer.ChangeOptions{}); err != nil {
				return err
			}
			b.Clock(shop, site, "wall", "hands: 2")
			clock := b.Server.Object("Clock", site, "wall")
			clock.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "no battery"}}}
			b.Put(clock)
			again := waiting
			again.WaitApps = true
			return upgrade(b, "", "1.2.0", again)
		}, "1.2.0", "1.2.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Namespace(site, second)
			b.Added(shop, "1.0.0", plain)
			b.Activated(shop, "1.1.0", coloured)
			if err := upgrade(b, "", "1.1.0", deployer.ChangeOptions{}); err != nil {
				t.Fatal(err)
			}
			b.Activated(shop, "1.2.0", coloured)
			err := test.fail(b)
			if b.Server.Answer = nil; err == nil {
				t.Fatal("it has not failed")
			}
			if back := strings.Contains(err.Error(), "everything is back"); back != test.back || report.CodeOf(err) == report.Failure {
				t.Errorf("is back: %t, want %t: %v", back, test.back, err)
			}
			for namespace, want := range map[string]string{site: test.first, second: test.other} {
				state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: namespace, Name: shop})
				if err != nil {
					t.Fatal(err)
				}
				if state.Pending != nil || state.Current.Version != want {
					t.Errorf("namespace %s has %s, want %s; pending: %v", namespace, state.Current.Version, want, state.Pending)
				}
			}
		})
	}
}

// stallOnce keeps the operator of a namespace from becoming ready until it is written again.
func stallOnce(b *deployertest.Bed, namespace string) {
	writes := 0
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+namespace+"/deployments/shop-operator") && r.URL.Query().Get("dryRun") == "" {
			if writes++; writes == 1 {
				b.Server.Stall("Deployment")
			} else {
				b.Server.Stall()
			}
		}
		return false
	}
}
