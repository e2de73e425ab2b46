package deployer_test

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	site   = deployertest.Environment
	shop   = "shop"
	clocks = "CustomResourceDefinition clocks.shop.example"
)

// verb is one that an administrator runs.
type verb func(context.Context, *deployer.Deployer, plan.Options) (*schema.Operation, error)

// step is a verb in the life of a Solution.
type step struct {
	name    string
	run     verb
	planned []string // changes that the plan has, as "create Role site/shop-operator"
	// records is the recorded state afterwards: the active version, the version in MetalK8s' document, and the last operations.
	records string
	gone    []string // objects that are not there any more, as "Role site/shop-operator"
}

// The verbs on the shop, in its environment.
func activate(version string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: shop, Version: version})
	}
}

func change(to records.Direction, version string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: shop, Direction: to, Version: version})
	}
}

// life is the whole life of a Solution of which versions 1.0.0 and 1.1.0 are imported.
var life = []step{
	{
		name: "activate 1.0.0", run: activate("1.0.0"), records: "1.0.0 active, none here; cluster: activate 1.0.0",
		planned: []string{"create " + clocks, "update ConfigMap metalk8s-solutions/metalk8s-solutions"},
	},
	{
		name: "env create, a second namespace", records: "1.0.0 active, none here; cluster: activate 1.0.0", planned: []string{"create Namespace annex"},
		run: func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			if o.DryRun { // has none: the plan lists the changes instead
				create := schema.Change{Action: schema.ActionCreate, Object: schema.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: "annex"}}
				return &schema.Operation{Planned: true, Parts: []schema.OperationPart{{Changes: []schema.Change{create}}}}, nil
			}
			return d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: site, Namespace: "annex"})
		},
	},
	{
		name: "add 1.0.0", records: "1.0.0 active, 1.0.0 here; cluster: activate 1.0.0; site: add 1.0.0",
		run: add(""),
		planned: []string{
			"create ConfigMap site/shop-operator-config", "create Deployment site/shop-operator", "create Role site/shop-operator",
			"create ServiceAccount site/shop-operator", "create Deployment annex/shop-operator",
		},
	},
	{
		name: "activate 1.1.0", run: activate("latest"), planned: []string{"update " + clocks},
		records: "1.1.0 active, 1.0.0 here; cluster: activate 1.1.0; site: add 1.0.0",
	},
	{
		name: "upgrade", run: change(records.Up, ""), planned: []string{"update Deployment site/shop-operator", "update Deployment annex/shop-operator"},
		records: "1.1.0 active, 1.1.0 here; cluster: activate 1.1.0; site: upgrade 1.1.0",
	},
	{
		name: "downgrade", run: change(records.Down, "1.0.0"), planned: []string{"update Deployment site/shop-operator"},
		records: "1.1.0 active, 1.0.0 here; cluster: activate 1.1.0; site: downgrade 1.0.0",
	},
	{
		name: "rollback", planned: []string{"update Deployment site/shop-operator"}, records: "1.1.0 active, 1.1.0 here; cluster: activate 1.1.0; site: rollback 1.1.0",
		run: rollback(0),
	},
	{
		name: "remove", planned: []string{"delete Deployment site/shop-operator", "delete Role site/shop-operator"},
		run:     remove(shop),
		records: "1.1.0 active, none here; cluster: activate 1.1.0; site: remove", gone: []string{"Deployment site/shop-operator", "Role annex/shop-operator", "ServiceAccount site/shop-operator"},
	},
	{
		name: "env delete", planned: []string{"delete Namespace site", "delete Namespace annex"},
		run:     deleteSite(plan.RefuseData),
		records: "1.1.0 active, none here; cluster: activate 1.1.0", gone: []string{"Namespace site", "Namespace annex", "Lease solutionctl-system/env-site", "Lease solutionctl-system/env-annex"},
	},
	{
		name: "deactivate", planned: []string{"delete " + clocks}, records: "none active, none here; cluster: deactivate", gone: []string{clocks},
		run: deactivate(shop),
	},
}

// TestLife checks that the plan of each verb changes nothing, that the verb does what was planned, and that it has nothing to do when it
// is run again.
func TestLife(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", deployertest.Content{})
	b.Imported(shop, "1.1.0", deployertest.Content{Fields: "colour: {type: string}", Role: "- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}"})
	for _, s := range life {
		if ok := t.Run(s.name, func(t *testing.T) { s.check(t, b) }); !ok {
			return // what follows begins here
		}
	}
	t.Run("unimport and purge", func(t *testing.T) {
		last := step{
			run:     purge,
			planned: []string{"delete Namespace solutionctl-system", "delete Secret solutionctl-system/imports"}, records: "none active, none here",
			gone: []string{"Namespace solutionctl-system", "Secret solutionctl-system/imports", "Lease solutionctl-system/cluster"},
		}
		for _, id := range []string{"shop-1.0.0", "shop-1.1.0"} {
			if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		last.check(t, b)
	})
}

func (s *step) check(t *testing.T, b *deployertest.Bed) {
	t.Helper()
	b.Writes()
	planned, err := s.run(t.Context(), b.Deployer, plan.Options{DryRun: true})
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if writes := b.Writes(); len(writes) > 0 || !planned.Planned || planned.Empty() {
		t.Errorf("planned %t, empty %t; the plan wrote %q", planned.Planned, planned.Empty(), writes)
	}
	for _, change := range s.planned {
		if plan := changes(planned); !slices.Contains(plan, change) {
			t.Errorf("%q is not in the plan: %q", change, plan)
		}
	}
	if planned.Digest != "" {
		deployertest.Valid(t, "operation", planned)
		expectsOther(t, b, s.run, planned)
	}
	done, err := s.run(t.Context(), b.Deployer, plan.Options{Expect: planned.Digest})
	if err != nil {
		t.Fatal(err)
	}
	if done.Digest != planned.Digest {
		t.Errorf("digest %s, and %s of the plan", done.Digest, planned.Digest)
	}
	if diff := cmp.Diff(changes(planned), changes(done)); diff != "" || done.Planned {
		t.Errorf("what was planned was not done (-planned +done):\n%s", diff)
	}
	deployertest.Valid(t, "operation", done)
	if got := recorded(t, b); got != s.records {
		t.Errorf("records:\n%s, want\n%s", got, s.records)
	}
	for _, name := range s.gone {
		kind, object, _ := strings.Cut(name, " ")
		if slices.Contains(b.Server.Names(kind), object) {
			t.Errorf("%s is there yet", name)
		}
	}
	b.Writes()
	again, err := s.run(t.Context(), b.Deployer, plan.Options{})
	if err != nil || !again.Empty() {
		t.Errorf("again: %+v, %v", again, err)
	}
	if writes := slices.DeleteFunc(b.Writes(), isLock); len(writes) > 0 {
		t.Errorf("the second run wrote %q", writes)
	}
}

// isLock reports whether a request is for a lock, or for the namespace of locks.
func isLock(request string) bool {
	return strings.Contains(request, "/leases") || strings.HasSuffix(request, "/namespaces/solutionctl-system")
}

// changes returns the effective changes of an operation, as "create Role site/shop-operator", sorted.
func changes(o *schema.Operation) []string {
	var list []string
	for _, part := range o.Parts {
		for _, c := range part.Changes {
			if !slices.Contains([]schema.Action{schema.ActionNone, schema.ActionKeep, schema.ActionSkip}, c.Action) {
				list = append(list, string(c.Action)+" "+c.Object.String())
			}
		}
	}
	slices.Sort(list)
	return list
}

// recorded returns the records of the Solution.
func recorded(t *testing.T, b *deployertest.Bed) string {
	t.Helper()
	orNone := func(version string, err error) string {
		if err != nil {
			t.Error(err)
		}
		if version == "" {
			return "none"
		}
		return version
	}
	here := ""
	if document := b.Server.Object("ConfigMap", site, metalk8s.EnvironmentConfigMap); document != nil {
		here, _, _ = unstructured.NestedString(document.Object, "data", shop)
	}
	text := fmt.Sprintf("%s active, %s here", orNone(b.Records.Active(t.Context(), shop)), orNone(here, nil))
	for _, place := range []string{"", site} {
		state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: place, Name: shop})
		if err != nil {
			t.Fatal(err)
		}
		if state.Pending != nil {
			text += "; pending " + state.Pending.Operation
		}
		if state.Current != nil {
			text += "; " + stdcmp.Or(place, "cluster") + ": " + strings.TrimSpace(state.Current.Operation+" "+state.Current.Version)
		}
	}
	return text
}
