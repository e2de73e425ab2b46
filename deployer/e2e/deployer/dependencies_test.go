package deployer_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// another is a bed of another Solution for the same environment.
func (b *bed) another(name string) *bed {
	other := *b
	other.Solution = b.Solution + name
	other.Group = other.Solution + ".example"
	return &other
}

// needing is an archive that needs others: pairs of a bed and a range, perhaps with a scope.
func needing(b *bed, rest string) content {
	return content{Manifest: "dependsOn: [{solution: " + b.Solution + ", " + rest + "}]"}
}

func (b *bed) remove(namespace string) error {
	b.Helper()
	_, err := b.Remove(b.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution, Namespace: namespace})
	return err
}

func TestDependencyInAnEnvironment(t *testing.T) {
	t.Parallel()
	db := newJudgment(t)
	app := db.another("app")
	app.imported("1.0.0", needing(db, `version: ">=1.1 <2"`))
	if _, err := app.Activate(t.Context(), deployer.ActivateOptions{Solution: app.Solution}); err != nil {
		t.Fatalf("to be active it needs nothing: %v", err)
	}
	_, err := app.add("1.0.0")
	app.refused(err, report.Refused, app.Solution+" 1.0.0 in environment "+app.Env+" needs "+db.Solution, "it is not there", "import a version")
	db.activated("1.0.0", content{})
	db.imported("1.1.0", content{})
	db.imported("2.0.0", content{})
	_, err = app.add("1.0.0")
	app.refused(err, report.Refused, "deploy add "+app.Env+" "+db.Solution+" 1.1.0")
	db.mustAdd("1.0.0")
	_, err = app.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true}, Environment: app.Env, Solution: app.Solution})
	app.refused(err, report.Refused, "there is 1.0.0", "deploy upgrade "+app.Env+" "+db.Solution+" 1.1.0")
	if _, err = db.change(records.Up, "1.1.0"); err != nil {
		t.Fatal(err)
	}
	app.mustAdd("1.0.0")

	// A version that others need cannot be removed or changed.
	needs := app.Solution + " 1.0.0 in environment " + app.Env + " needs " + db.Solution + " >=1.1 <2"
	db.refused(db.remove(""), report.InUse, needs, "deploy remove "+app.Env+" "+app.Solution)
	_, err = db.change(records.Up, "2.0.0")
	db.refused(err, report.InUse, needs)
	_, err = db.change(records.Down, "1.0.0")
	db.refused(err, report.InUse, needs)
	_, err = db.Rollback(t.Context(), deployer.RollbackOptions{Options: plan.Options{NoWait: true}, Environment: db.Env, Solution: db.Solution})
	db.refused(err, report.InUse, needs)
	db.refused(db.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: db.Solution + "-1.1.0"}), report.InUse, db.Env)

	// One namespace of the environment is enough.
	more := db.Env + "-more"
	db.environment(db.Env, more)
	o := deployer.AddOptions{Options: plan.Options{NoWait: true}, Environment: db.Env, Namespace: more, Solution: db.Solution, Version: "1.1.0"}
	if _, err = db.Add(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err = db.remove(db.Env); err != nil {
		t.Fatal(err)
	}
	_, err = db.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: db.Env, Namespace: more, Data: plan.DeleteData})
	db.refused(err, report.InUse, needs)
	if err := app.remove(""); err != nil {
		t.Fatal(err)
	}
	if err := db.remove(""); err != nil {
		t.Fatal(err)
	}
}

func TestDependencyOnWhatIsActive(t *testing.T) {
	t.Parallel()
	dns := newJudgment(t)
	app := dns.another("app")
	app.imported("1.0.0", needing(dns, `version: ">=1.1", scope: cluster`))
	dns.imported("1.0.0", content{})
	_, err := app.Activate(t.Context(), deployer.ActivateOptions{Solution: app.Solution})
	app.refused(err, report.Refused, app.Solution+" 1.0.0 needs "+dns.Solution+" >=1.1 to be active", "import a version")
	dns.imported("1.1.0", content{})
	_, err = app.Activate(t.Context(), deployer.ActivateOptions{Solution: app.Solution})
	app.refused(err, report.Refused, "deploy activate "+dns.Solution+" 1.1.0")
	dns.activated("1.1.0", content{})
	app.activated("1.0.0", needing(dns, `version: ">=1.1", scope: cluster`))
	app.mustAdd("1.0.0")
	_, err = dns.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: dns.Solution, Data: plan.KeepData})
	dns.refused(err, report.InUse, app.Solution+" 1.0.0 in environment "+app.Env, app.Solution+" 1.0.0 needs")
	_, err = dns.Activate(t.Context(), deployer.ActivateOptions{Solution: dns.Solution, Version: "1.0.0"})
	dns.refused(err, report.InUse, app.Solution)
	if err = app.remove(""); err != nil {
		t.Fatal(err)
	}
	_, err = dns.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: dns.Solution})
	dns.refused(err, report.InUse, "deploy deactivate "+app.Solution)
}

func TestDependenciesInALoop(t *testing.T) {
	t.Parallel()
	a := newJudgment(t)
	b := a.another("b")
	a.imported("1.0.0", needing(b, "scope: cluster"))
	b.imported("1.0.0", needing(a, "scope: cluster"))
	_, err := a.Activate(t.Context(), deployer.ActivateOptions{Solution: a.Solution})
	a.refused(err, report.Refused, "they need each other: "+a.Solution+" → "+b.Solution+" → "+a.Solution, "deploy apply -f FILE")
}

// archives are the archives of several beds, DIR/ID.iso.
type archives map[string]struct {
	*bed
	version string
	content
}

func (a archives) add(b *bed, version string, c content) {
	a[b.Solution+"-"+version] = struct {
		*bed
		version string
		content
	}{b, version, c}
}

func (a archives) Import(_ context.Context, files ...string) error {
	for _, file := range files {
		one := a[versionIn(file)]
		one.imported(one.version, one.content)
	}
	return nil
}

func (a archives) Judge(context.Context, ...string) error { return nil }

func (a archives) Unimport(ctx context.Context, id string) error {
	return a[id].RecordUnimport(ctx, deployer.UnimportOptions{ID: id})
}

func (a archives) Stored() ([]schema.SolutionAt, error) {
	var all []schema.SolutionAt
	for id, one := range a {
		catalog, err := one.Records.Catalog(one.Context())
		if err != nil {
			return nil, err
		}
		for _, i := range catalog.Imports() {
			if i.ID() == id {
				all = append(all, schema.SolutionAt{Solution: i.Name, Version: i.Version})
			}
		}
	}
	return all, nil
}

func (a archives) Identify(file string) (*schema.Solution, error) {
	p, err := a.Payload(file)
	return p.Solution, err
}

func (a archives) Payload(file string) (*render.Payload, error) {
	one := a[versionIn(file)]
	return one.payload(one.version, one.content), nil
}

// converge has these archives, by their ids, and of each Solution the last one active.
func (a archives) converge(b *bed, ids ...string) (*schema.Convergence, error) {
	b.Helper()
	c := schema.NewSolutionsConfiguration()
	for _, id := range ids {
		c.Archives = append(c.Archives, "/mnt/"+id+".iso")
		c.Active[a[id].Solution] = a[id].version
	}
	plan, err := b.PlanConvergence(b.Context(), deployer.PlanConvergenceOptions{Configuration: c, Host: a})
	if err != nil {
		return nil, err
	}
	return plan, b.Converge(b.Context(), deployer.ConvergeOptions{Plan: plan, Host: a})
}

// TestConvergenceFollowsDependencies activates what others need first, and deactivates it last.
func TestConvergenceFollowsDependencies(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestConverge and TestOrderOfDependencies without a cluster")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	a := b.another("a") // comes first by its name, and last by what it needs
	a.Solution = "a" + b.Solution
	a.Group = a.Solution + ".example"
	needs, first := a.Solution+"-1.0.0", b.Solution+"-1.0.0"
	all := archives{}
	all.add(a, "1.0.0", needing(b, "scope: cluster"))
	all.add(b, "1.0.0", content{})
	order := func(list []schema.SolutionAt) (ids []string) {
		for _, at := range list {
			ids = append(ids, at.ID())
		}
		return ids
	}
	_, err := all.converge(b, needs)
	b.refused(err, report.Refused, a.Solution+" 1.0.0 needs "+b.Solution)
	catalog, err := b.Records.Catalog(t.Context())
	if err != nil || len(catalog.Imports()) > 0 {
		t.Errorf("something was imported: %+v, %v", catalog, err)
	}
	plan, err := all.converge(b, needs, first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order(plan.Activate), []string{first, needs}); diff != "" {
		t.Error(diff)
	}
	_, err = all.converge(b, needs)
	b.refused(err, report.InUse, a.Solution+" 1.0.0 needs "+b.Solution)

	// They change together, and only together.
	all.add(a, "2.0.0", needing(b, `version: ">=2", scope: cluster`))
	all.add(b, "2.0.0", needing(a, `version: ">=2", scope: cluster`))
	old := []string{needs, first}
	_, err = all.converge(b, append(old, a.Solution+"-2.0.0")...)
	b.refused(err, report.Refused, a.Solution+" 2.0.0 needs "+b.Solution+" >=2")
	if _, err = all.converge(b, append(old, a.Solution+"-2.0.0", b.Solution+"-2.0.0")...); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*bed{a, b} {
		_, err = one.Activate(t.Context(), deployer.ActivateOptions{Solution: one.Solution, Version: "1.0.0"})
		one.refused(err, report.InUse, "2.0.0 needs "+one.Solution+" >=2 to be active", "deploy apply -f FILE")
	}
	again, err := all.converge(b, append(old, a.Solution+"-2.0.0", b.Solution+"-2.0.0")...)
	if err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err = all.converge(b, old...); err != nil {
		t.Fatal(err)
	}
	if plan, err = all.converge(b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order(plan.Deactivate), []string{needs, first}); diff != "" {
		t.Error(diff)
	}
}
