package deployer_test

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// host imports archives of the bed by their path, DIR/VERSION.iso, into a store that has only their names.
type host struct {
	*bed
	store map[schema.SolutionAt]bool
}

func (h host) Import(_ context.Context, files ...string) error {
	for _, file := range files {
		version := strings.TrimSuffix(path.Base(file), ".iso")
		h.store[schema.SolutionAt{Solution: h.Solution, Version: version}] = true
		h.imported(version, content{})
	}
	return nil
}

func (h host) Unimport(ctx context.Context, id string) error {
	if err := h.RecordUnimport(ctx, id); err != nil {
		return err
	}
	maps.DeleteFunc(h.store, func(at schema.SolutionAt, _ bool) bool { return at.ID() == id })
	return nil
}

func (h host) Stored() ([]schema.SolutionAt, error) { return slices.Collect(maps.Keys(h.store)), nil }

func (h host) Identify(file string) (*schema.Solution, error) {
	return h.payload(strings.TrimSuffix(path.Base(file), ".iso"), content{}).Solution, nil
}

// converge applies a configuration.
func (h host) converge(c *schema.SolutionsConfiguration, o deployer.Options) (*schema.Convergence, error) {
	h.Helper()
	plan, err := h.PlanConvergence(h.Context(), c, h)
	if err != nil {
		return nil, err
	}
	return plan, h.Converge(h.Context(), plan, h, o)
}

func TestConvergence(t *testing.T) {
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{})) // what other tests imported is in no configuration
	h := host{b, map[schema.SolutionAt]bool{}}
	flat := func(active string, versions ...string) *schema.SolutionsConfiguration {
		c := schema.NewSolutionsConfiguration()
		for _, v := range versions {
			c.Archives = append(c.Archives, "/mnt/"+v+".iso")
		}
		if active != "" {
			c.Active[b.Solution] = active
		}
		return c
	}
	at := func(version string) []schema.SolutionAt {
		return []schema.SolutionAt{{Solution: b.Solution, Version: version}}
	}

	_, err := h.converge(flat("3.0.0", "1.0.0"), deployer.Options{})
	b.refused(err, report.Refused, "version 3.0.0", "none of the archives")

	first, err := h.converge(flat("latest", "1.0.0", "1.1.0"), deployer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Import) != 2 || !cmp.Equal(first.Activate, at("1.1.0")) {
		t.Errorf("%+v", first)
	}
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if err = schema.ValidateOutput("convergence", data); err != nil {
		t.Error(err)
	}
	again, err := h.converge(flat("latest", "1.0.0", "1.1.0"), deployer.Options{})
	if err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}

	// Runs were killed before their last step: of an import, of an activation.
	if err = (&metalk8s.Documents{Cluster: b.Cluster}).RemoveVersion(t.Context(), b.Solution, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	again, err = h.converge(flat("latest", "1.0.0", "1.1.0"), deployer.Options{})
	if err != nil || len(again.Import) != 1 || again.Import[0].SolutionAt != at("1.0.0")[0] {
		t.Errorf("%+v, %v", again, err)
	}
	b.forgetActive()
	again, err = h.converge(flat("latest", "1.0.0", "1.1.0"), deployer.Options{})
	if err != nil || !cmp.Equal(again.Activate, at("1.1.0")) {
		t.Errorf("%+v, %v", again, err)
	}

	older := &schema.SolutionsConfiguration{APIVersion: schema.OlderAPIVersion, Kind: schema.KindSolutionsConfiguration, Solutions: []schema.SolutionArchives{
		{Name: b.Solution, Archives: []string{"/mnt/1.0.0.iso", "/mnt/1.1.0.iso"}, ActiveVersion: "1.0.0"},
	}}
	back, err := h.converge(older, deployer.Options{})
	if err != nil || !cmp.Equal(back.Activate, at("1.0.0")) {
		t.Errorf("%+v, %v", back, err)
	}

	b.mustAdd("1.0.0")
	_, err = h.converge(flat("", "1.1.0"), deployer.Options{})
	b.refused(err, report.InUse, b.Env)
	if _, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	planned, err := h.converge(flat("", "1.1.0"), deployer.Options{DryRun: true})
	if err != nil || !planned.Planned || !cmp.Equal(planned.Unimport, at("1.0.0")) || !cmp.Equal(planned.Deactivate, at("1.0.0")) {
		t.Errorf("%+v, %v", planned, err)
	}
	b.get(definitions, "", b.crdName())
	if _, err = h.converge(flat("", "1.1.0"), deployer.Options{}); err != nil {
		t.Fatal(err)
	}
	if b.find(definitions, "", b.crdName()) != nil {
		t.Error("it is still active")
	}
	catalog, err := b.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := catalog.Of(b.Solution); len(left) != 1 || left[0].Version != "1.1.0" {
		t.Errorf("imported: %+v", left)
	}

	if err = b.RecordUnimport(t.Context(), b.Solution+"-1.1.0"); err != nil { // a run was killed before the archive was removed
		t.Fatal(err)
	}
	planned, err = h.converge(flat(""), deployer.Options{})
	if err != nil || !cmp.Equal(planned.Unimport, at("1.1.0")) || len(h.store) > 0 {
		t.Errorf("%+v, %v", planned, err)
	}
}
