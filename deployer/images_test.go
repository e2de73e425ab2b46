package deployer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestImagesAreServed checks, with a registry that lacks some images, that a change is refused before the first write if no node could
// pull its images. A rollback only reports that.
func TestImagesAreServed(t *testing.T) {
	var served atomic.Value // the versions that the registry has
	served.Store("1.0.0")
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.URL.Path, "/v2/demo-")
		if version, _, _ := strings.Cut(rest, "/"); rest != "" && !strings.Contains(served.Load().(string), version) {
			http.NotFound(w, r)
		}
	}))
	defer registry.Close()
	quick := plan.Options{NoWait: true}
	s := clustertest.Start(t)
	d := connected(t, s)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		record := importing(t, "demo", version)
		record.Registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{registry.URL}}
		if _, err := d.RecordImport(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	must := func(done *schema.Operation, err error) *schema.Operation {
		t.Helper()
		if err != nil {
			t.Fatalf("%v %q", err, report.Hints(err))
		}
		return done
	}
	must(d.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "test"}))
	must(d.Activate(t.Context(), deployer.ActivateOptions{Options: quick, Solution: "demo", Version: "1.1.0"}))

	add := deployer.AddOptions{Options: quick, Environment: "test", Solution: "demo", Version: "1.1.0"}
	change := deployer.ChangeOptions{Options: quick, Environment: "test", Solution: "demo", Version: "1.1.0", Direction: records.Up}
	back := deployer.RollbackOptions{Options: quick, Environment: "test", Solution: "demo"}
	refused := func(err error) {
		t.Helper()
		if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), registry.URL+" does not serve demo-1.1.0") {
			t.Fatalf("%v", err)
		}
		for _, request := range s.Requests() {
			if method, path, _ := strings.Cut(request, " "); method != http.MethodGet && !strings.HasSuffix(path, "(dry run)") && !strings.Contains(path, "/leases") && !strings.Contains(path, "accessreviews") {
				t.Errorf("%s %s", method, path)
			}
		}
	}
	s.Requests()
	_, err := d.Add(t.Context(), add)
	refused(err)
	add.Version = "1.0.0"
	must(d.Add(t.Context(), add))
	s.Requests()
	_, err = d.Change(t.Context(), change)
	refused(err)
	served.Store("1.0.0 1.1.0")
	must(d.Change(t.Context(), change))
	served.Store("1.1.0")
	if done := must(d.Rollback(t.Context(), back)); !strings.Contains(strings.Join(done.Notices, "\n"), "does not serve demo-1.0.0") || done.Version != "1.0.0" {
		t.Errorf("%+v", done)
	}
}
