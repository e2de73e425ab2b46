package deployer_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// host imports archives of the bed by their path, DIR/VERSION.iso, into a store that has only their names.
type host struct {
	*bed
	store    map[schema.SolutionAt]bool
	contents map[string]content // of versions
}

func newHost(b *bed) host { return host{b, map[schema.SolutionAt]bool{}, map[string]content{}} }

func versionIn(file string) string { return strings.TrimSuffix(path.Base(file), ".iso") }

func (h host) Import(_ context.Context, files ...string) error {
	for _, file := range files {
		version := versionIn(file)
		h.store[schema.SolutionAt{Solution: h.Solution, Version: version}] = true
		h.imported(version, h.contents[version])
	}
	return nil
}

func (h host) Judge(context.Context, ...string) error { return nil }

func (h host) Unimport(ctx context.Context, id string) error {
	if err := h.RecordUnimport(ctx, deployer.UnimportOptions{ID: id}); err != nil {
		return err
	}
	maps.DeleteFunc(h.store, func(at schema.SolutionAt, _ bool) bool { return at.ID() == id })
	return nil
}

func (h host) Stored() ([]schema.SolutionAt, error) { return slices.Collect(maps.Keys(h.store)), nil }

func (h host) Identify(file string) (*schema.Solution, error) {
	p, err := h.Payload(file)
	return p.Solution, err
}

func (h host) Payload(file string) (*render.Payload, error) {
	return h.payload(versionIn(file), h.contents[versionIn(file)]), nil
}

// converge applies a configuration.
func (h host) converge(c *schema.SolutionsConfiguration, o deployer.ConvergeOptions) (*schema.Convergence, error) {
	h.Helper()
	plan, err := h.PlanConvergence(h.Context(), deployer.PlanConvergenceOptions{Configuration: c, Host: h})
	if err != nil {
		return nil, err
	}
	o.Plan, o.Host = plan, h
	return plan, h.Converge(h.Context(), o)
}

// flat is the configuration of versions, of which one is active or with "" none.
func (h host) flat(active string, versions ...string) *schema.SolutionsConfiguration {
	c := schema.NewSolutionsConfiguration()
	for _, v := range versions {
		c.Archives = append(c.Archives, "/mnt/"+v+".iso")
	}
	if active != "" {
		c.Active[h.Solution] = active
	}
	return c
}

// TestConvergenceAcceptsLoss: a version is judged before it is imported, and what it would lose goes to a file.
func TestConvergenceAcceptsLoss(t *testing.T) {
	t.Parallel()
	h := newHost(newJudgment(t))
	h.contents["1.0.0"] = content{Fields: "colour: {type: string}"}
	if _, err := h.converge(h.flat("1.0.0", "1.0.0"), deployer.ConvergeOptions{}); err != nil {
		t.Fatal(err)
	}
	h.newClock(h.Env, "wall", "colour: red")

	both := h.flat("2.0.0", "1.0.0", "2.0.0")
	_, err := h.converge(both, deployer.ConvergeOptions{})
	h.refused(err, report.DataLoss, "Clock "+h.Env+"/wall: spec.colour", "--accept-data-loss "+h.crdName())
	if len(h.store) > 1 {
		t.Errorf("it was imported before: %v", h.store)
	}
	var out exported
	o := deployer.ConvergeOptions{
		Options: plan.Options{DryRun: true}, AcceptDataLoss: []string{h.crdName()},
		Export: func(string) definitions.Export { return out.open },
	}
	planned, err := h.converge(both, o)
	if err != nil || out.Len() > 0 || !slices.ContainsFunc(planned.Notices, func(n string) bool { return strings.HasPrefix(n, "accepted loss of data: ") }) {
		t.Errorf("%+v, %v", planned, err)
	}
	o.DryRun = false
	if _, err = h.converge(both, o); err != nil {
		t.Fatal(err)
	}
	if !out.closed || !strings.Contains(out.String(), `"colour":"red"`) {
		t.Errorf("exported %q", out.String())
	}
	again, err := h.converge(both, o)
	if err != nil || !again.Empty() {
		t.Errorf("the same command again: %+v, %v", again, err)
	}

	// Environments hold a version up: all versions are shown, the one that is not imported yet, too.
	h.mustAdd("2.0.0")
	h.contents["3.0.0"] = content{Versions: "v3", Fields: "face: {type: string}"}
	_, err = h.converge(h.flat("3.0.0", "1.0.0", "2.0.0", "3.0.0"), deployer.ConvergeOptions{})
	h.refused(err, report.InUse, "environment "+h.Env)
	refused, ok := errors.AsType[*definitions.IncompatibleError](err)
	if !ok {
		t.Fatal(err)
	}
	h.compatible(refused.Compatibility, nil, "2.0.0 active: 1.0.0 yes; 2.0.0 yes; 3.0.0 no (no)")
}
