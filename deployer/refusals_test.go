package deployer_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func add(version string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: version})
	}
}

func addTo(environment, namespace string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Add(ctx, deployer.AddOptions{Options: o, Environment: environment, Namespace: namespace, Solution: shop})
	}
}

func rollback(revision int64) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Rollback(ctx, deployer.RollbackOptions{Options: o, Environment: site, Solution: shop, Revision: revision})
	}
}

func remove(solution string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Remove(ctx, deployer.RemoveOptions{Options: o, Environment: site, Solution: solution})
	}
}

func deactivate(solution string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Deactivate(ctx, deployer.DeactivateOptions{Options: o, Solution: solution})
	}
}

func deleteSite(data plan.DataPolicy) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.DeleteEnvironment(ctx, environments.DeleteOptions{Options: o, Environment: site, Data: data})
	}
}

func createEnvironment(ctx context.Context, d *deployer.Deployer, _ plan.Options) (*schema.Operation, error) {
	return d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: "plant"})
}

func purge(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
	return d.Purge(ctx, environments.PurgeOptions{Options: o})
}

// must runs a verb that works.
func must(b *deployertest.Bed, run verb) *schema.Operation {
	b.Helper()
	done, err := run(b.Context(), b.Deployer, plan.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func replacing(names ...string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		o.Replace = names
		return add("1.0.0")(ctx, d, o)
	}
}

// Contents of versions.
var (
	plain    deployertest.Content
	coloured = deployertest.Content{Fields: "colour: {type: string}"}
	needing  = deployertest.Content{Manifest: "dependsOn: [{solution: base, version: '>=1.0.0'}]"}
)

// dials is a Solution of a chart that has a definition of its own, with one more field.
func dials(b *deployertest.Bed, field string) deployertest.Content {
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: dials.shop.example}\nspec: {group: shop.example, scope: Namespaced, " +
		"names: {kind: Dial, listKind: DialList, plural: dials, singular: dial}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {" +
		"spec: {type: object, properties: {hands: {type: integer}" + field + "}}}}}}]}\n"
	return deployertest.Content{Manifest: "components: [{name: dial, chart: charts/dial.tgz}]\n", Files: map[string]string{
		"charts/dial.tgz": deployertest.Chart(b, "dial", map[string]string{"crds/dials.yaml": definition, "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dial}\n"}),
	}}
}

// refusals are the cases that a verb refuses before anything is changed. Words are objects, versions and commands that the error names.
var refusals = []struct {
	name  string
	bed   func(*deployertest.Bed) // prepares the cluster
	run   verb
	code  report.Code
	words []string
}{
	{"activate what was not imported", func(*deployertest.Bed) {}, activate("1.0.0"), report.NotImported, []string{shop, "deploy import"}},
	{
		"activate another version than was imported", func(b *deployertest.Bed) { b.Imported(shop, "1.0.0", plain) },
		activate("2.0.0"), report.NotImported,
		[]string{"2.0.0", "1.0.0"},
	},
	{
		"activate on a Kubernetes that is not supported",
		func(b *deployertest.Bed) {
			b.Imported(shop, "1.0.0", deployertest.Content{Manifest: "kubernetesVersion: '<1.20'"})
		},
		activate("1.0.0"), report.Refused,
		[]string{"<1.20", "1.36.3"},
	},
	{
		"activate what makes stored objects lose a field",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", coloured)
			b.Imported(shop, "2.0.0", plain)
			b.Clock(shop, site, "red", "colour: red")
			b.Clock(shop, site, "plain", "hands: 2")
		},
		activate("2.0.0"), report.DataLoss,
		[]string{"Clock site/red", "spec.colour", "--accept-data-loss clocks.shop.example"},
	},
	{
		"activate a chart whose definition makes stored objects lose a field",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", dials(b, ", colour: {type: string}"))
			b.Imported(shop, "2.0.0", dials(b, ""))
			b.Server.Put(b.TB, "{apiVersion: shop.example/v1, kind: Dial, metadata: {name: red, namespace: "+site+"}, spec: {colour: red}}")
		},
		activate("2.0.0"), report.DataLoss,
		[]string{"Dial site/red", "spec.colour", "--accept-data-loss dials.shop.example"},
	},
	{
		"activate what makes stored objects invalid",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", coloured)
			b.Imported(shop, "2.0.0", deployertest.Content{Fields: "colour: {type: string, enum: [blue]}"})
			b.Clock(shop, site, "red", "colour: red")
		},
		activate("2.0.0"), report.Refused,
		[]string{"Clock site/red", "--accept-invalid clocks.shop.example"},
	},
	{
		"activate without what it needs to be active",
		func(b *deployertest.Bed) {
			b.Imported(shop, "1.0.0", deployertest.Content{Manifest: "dependsOn: [{solution: base, version: '>=1.0.0', scope: cluster}]"})
		},
		activate("1.0.0"), report.Refused,
		[]string{"base", ">=1.0.0"},
	},
	{
		"activate into a namespace of an environment",
		func(b *deployertest.Bed) {
			b.Imported(shop, "1.0.0", deployertest.Content{Files: map[string]string{
				"operator/cluster/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
			}})
			b.Namespace("other", "shop-system")
		},
		activate("1.0.0"), report.Refused,
		[]string{"shop-system", "deploy env delete other --namespace shop-system"},
	},
	{
		"accept the loss of what does not change", func(b *deployertest.Bed) { b.Imported(shop, "1.0.0", plain) },
		func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: shop, Losses: definitions.Losses{AcceptDataLoss: []string{"misspelt.shop.example"}}})
		},
		report.Usage,
		[]string{"misspelt.shop.example", "clocks.shop.example"},
	},

	{
		"add what needs a definition of others",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{Manifest: "operator: {requiresCRDs: [{name: clocks.bank.example, versions: [v1]}]}"})
		},
		add(""), report.Refused,
		[]string{"needs clocks.bank.example (v1)", "the archive does not bring", "install what brings it"},
	},
	{
		"add what is not active", func(b *deployertest.Bed) { b.Imported(shop, "1.0.0", plain) },
		add("1.0.0"), report.Refused,
		[]string{"clocks.shop.example", "deploy activate shop 1.0.0"},
	},
	{
		"add what cannot become active",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", coloured)
			b.Clock(shop, site, "red", "colour: red")
			b.Imported(shop, "2.0.0", deployertest.Content{Versions: "v2"})
		},
		add("2.0.0"), report.Refused,
		[]string{"clocks.shop.example", "spec.colour"},
	},
	{"add what was not imported", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, add("1.5.0"), report.NotImported, []string{"1.5.0", "1.0.0"}},
	{
		"add where a later version is", func(b *deployertest.Bed) { b.Added(shop, "1.1.0", plain); b.Imported(shop, "1.0.0", plain) },
		add("1.0.0"), report.Conflict,
		[]string{"version 1.1.0", "deploy downgrade"},
	},
	{
		"add what brings a role in another form",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", plain)
			b.Imported(shop, "1.2.0", deployertest.Content{Files: map[string]string{"operator/deploy/role.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: shop-operator}}"}})
		},
		add("1.2.0"), report.Invalid,
		[]string{"operator/deploy/role.yaml", "ClusterRoleBinding"},
	},
	{"add to no environment", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, addTo("nowhere", ""), report.NotFound, []string{"nowhere"}},
	{"add to no namespace", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, addTo(site, "nowhere"), report.NotFound, []string{"nowhere", site}},
	{
		"add to a namespace of another environment",
		func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain); b.Namespace("other", "elsewhere") },
		addTo(site, "elsewhere"), report.Conflict,
		[]string{"elsewhere", "other"},
	},
	{
		"add where another version is",
		func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain); b.Activated(shop, "1.1.0", plain) },
		add("1.1.0"), report.Conflict,
		[]string{"1.0.0", "deploy upgrade site shop 1.1.0"},
	},
	{
		"add an operator that could give itself rights",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{Role: "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
		},
		add("1.0.0"), report.Refused,
		[]string{"Role site/shop-operator", "for account site/shop-operator", "--allow change-rights:Role/site/shop-operator"},
	},
	{
		"add over what somebody else has made",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", plain)
			b.Server.Put(b.TB, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop-operator, namespace: site, labels: {app: mine}}}")
		},
		add("1.0.0"), report.Conflict,
		[]string{"ServiceAccount", "shop-operator", "--adopt"},
	},
	{
		"add where nodes do not know where images are",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", plain)
			if _, err := b.RemoveEndpoints(b.Context(), deployer.RemoveEndpointsOptions{Endpoints: []string{"http://127.0.0.1:9"}}); err != nil {
				b.Fatal(err)
			}
		},
		add("1.0.0"), report.Refused,
		[]string{"shop-1.0.0", records.RegistryRemedy().String(), "deploy node config"},
	},
	{
		"add without what it needs", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", needing) },
		add("1.0.0"), report.Refused,
		[]string{"base", ">=1.0.0"},
	},
	{
		"add into what is being deleted",
		func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", plain)
			b.Server.Put(b.TB, `{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: site, finalizers: [example.com/hold]}}`)
			b.Deleted("Namespace", "", site)
		},
		add("1.0.0"), report.Conflict,
		[]string{"namespace site"},
	},
	{"replace what is no object", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, replacing("Deployment"), report.Usage, []string{"KIND/NAME"}},
	{
		"replace what has data", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) },
		replacing("PersistentVolumeClaim/data"), report.Refused,
		[]string{"PersistentVolumeClaim"},
	},
	{
		"replace what is not part of it", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) },
		replacing("Deployment/other"), report.Usage,
		[]string{"Deployment/other", "Deployment/shop-operator"},
	},

	{"upgrade what is not there", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, change(records.Up, "1.0.0"), report.NotFound, []string{shop, site}},
	{
		"upgrade to a lower version",
		func(b *deployertest.Bed) { b.Added(shop, "1.1.0", plain); b.Imported(shop, "1.0.0", plain) },
		change(records.Up, "1.0.0"), report.Refused,
		[]string{"1.1.0", "deploy downgrade site shop 1.0.0"},
	},
	{
		"upgrade to what was not imported", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) },
		change(records.Up, "2.0.0"), report.NotImported,
		[]string{"2.0.0", "1.0.0"},
	},
	{
		"downgrade to a higher version",
		func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain); b.Imported(shop, "1.1.0", plain) },
		change(records.Down, "1.1.0"), report.Refused,
		[]string{"not its downgrade", "deploy upgrade"},
	},
	{"downgrade to no version", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) }, change(records.Down, ""), report.Usage, nil},
	{
		"upgrade over a version that is needed as a step",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", plain)
			b.Imported(shop, "1.1.0", plain)
			b.Imported(shop, "2.0.0", deployertest.Content{Manifest: "minUpgradeFrom: 1.1.0"})
		},
		change(records.Up, "2.0.0"), report.Refused,
		[]string{"1.1.0", "deploy upgrade site shop 1.1.0"},
	},
	{
		"upgrade over a version that was not imported",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", plain)
			b.Imported(shop, "2.0.0", deployertest.Content{Manifest: "minUpgradeFrom: 1.1.0"})
		},
		change(records.Up, "2.0.0"), report.Refused,
		[]string{"1.1.0", "2.0.0", "import"},
	},
	{
		"upgrade to what is not served",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", plain)
			b.Imported(shop, "1.1.0", deployertest.Content{Versions: "v1 v2"})
		},
		change(records.Up, "1.1.0"), report.Refused,
		[]string{"v2", "deploy activate shop 1.1.0"},
	},
	{
		"downgrade to a version that does not know a field",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.1.0", coloured)
			b.Imported(shop, "1.0.0", plain)
			b.Clock(shop, site, "red", "colour: red")
		},
		change(records.Down, "1.0.0"), report.DataLoss,
		[]string{"Clock site/red", "spec.colour"},
	},
	{
		"downgrade under a version that others need",
		func(b *deployertest.Bed) {
			b.Added("base", "1.0.0", plain)
			b.Imported("base", "0.9.0", plain)
			b.Added(shop, "1.0.0", needing)
		},
		func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: "base", Direction: records.Down, Version: "0.9.0"})
		},
		report.InUse,
		[]string{shop, ">=1.0.0"},
	},
	{
		"upgrade a Solution twice",
		func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain); b.Activated(shop, "1.1.0", plain) },
		func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Change(ctx, deployer.ChangeOptions{
				Options: o, Environment: site, Solution: shop, Direction: records.Up, Version: "1.1.0", With: []schema.SolutionAt{{Solution: shop, Version: "1.0.0"}},
			})
		},
		report.Usage,
		[]string{shop},
	},

	{"roll back what is not there", func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain) }, rollback(0), report.NotFound, []string{shop, site}},
	{"roll back the first revision", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) }, rollback(0), report.Refused, []string{"deploy history site shop"}},
	{"roll back to no revision", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) }, rollback(77), report.NotFound, []string{"77", "deploy history site shop"}},
	{
		"roll back past a field in use",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", plain)
			b.Activated(shop, "1.1.0", coloured)
			must(b, change(records.Up, "1.1.0"))
			b.Clock(shop, site, "red", "colour: red")
		},
		rollback(0), report.DataLoss,
		[]string{"Clock site/red", "spec.colour"},
	},

	{"remove what is not there", func(b *deployertest.Bed) { b.Added("base", "1.0.0", plain) }, remove(shop), report.NotFound, []string{shop, "base"}},
	{
		"remove the operator of custom resources",
		func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain); b.Clock(shop, site, "red", "hands: 2") },
		remove(shop), report.DataLoss,
		[]string{"1 of kind Clock", site, "--keep-data", "--delete-data"},
	},
	{
		"remove what others need", func(b *deployertest.Bed) { b.Added("base", "1.0.0", plain); b.Added(shop, "1.0.0", needing) },
		remove("base"), report.InUse,
		[]string{shop},
	},
	{
		"remove what is on no record",
		func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", plain)
			b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop}.SecretName())
		},
		remove(shop), report.Conflict,
		[]string{"Deployment site/shop-operator", "deploy remove site shop --adopt", "deploy repair site shop --records"},
	},

	{"deactivate what was not imported", func(*deployertest.Bed) {}, deactivate(shop), report.NotImported, []string{shop}},
	{
		"deactivate under custom resources",
		func(b *deployertest.Bed) { b.Activated(shop, "1.0.0", plain); b.Clock(shop, site, "red", "hands: 2") },
		deactivate(shop), report.DataLoss,
		[]string{"1 of kind Clock", "environment site", "--keep-crds", "--delete-data"},
	},
	{
		"deactivate what is deployed", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) },
		deactivate(shop), report.InUse,
		[]string{"environment site", "deploy remove", "--keep-crds"},
	},

	{
		"deactivate what others need to be active",
		func(b *deployertest.Bed) {
			b.Activated("base", "1.0.0", plain)
			b.Activated(shop, "1.0.0", deployertest.Content{Manifest: "dependsOn: [{solution: base, version: '>=1.0.0', scope: cluster}]"})
		},
		deactivate("base"), report.InUse,
		[]string{shop},
	},

	{
		"delete an environment with a Solution", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) },
		deleteSite(plan.RefuseData), report.InUse,
		[]string{"shop", "deploy env delete site --delete-data"},
	},
	{
		"delete an environment with volumes",
		func(b *deployertest.Bed) {
			b.Server.Put(b.TB, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: site}}")
		},
		deleteSite(plan.RefuseData), report.InUse,
		[]string{"data", "--delete-data"},
	},
	{
		"delete an environment with what is of others",
		func(b *deployertest.Bed) {
			b.Server.Put(b.TB, "{apiVersion: v1, kind: ConfigMap, metadata: {name: wiki, namespace: site}}")
		},
		deleteSite(plan.DeleteData), report.InUse,
		[]string{"ConfigMap site/wiki", "deploy env delete site --delete-data --delete-others"},
	},

	{
		"purge a cluster in use", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", plain) },
		purge, report.InUse,
		[]string{"environment site", "shop-1.0.0", "shop 1.0.0 is active", "namespace site"},
	},
}

// TestRefusals: a verb and its plan refuse the same, and change nothing.
func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			b := deployertest.New(t)
			r.bed(b)
			for _, dryRun := range []bool{true, false} {
				b.Writes()
				_, err := r.run(t.Context(), b.Deployer, plan.Options{DryRun: dryRun, Refuse: true})
				deployertest.Refused(t, err, r.code, r.words...)
				writes := b.Writes()
				if !dryRun {
					writes = slices.DeleteFunc(writes, isLock)
				}
				if len(writes) > 0 {
					t.Errorf("dry run %t wrote %q", dryRun, writes)
				}
			}
		})
	}
}

// TestRefusedImports checks that an imported version cannot be replaced while it is in use.
func TestRefusedImports(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	deployertest.Refused(t, b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-1.0.0"}), report.InUse, "active", "environment site")
	other := b.Record(shop, "1.0.0", coloured)
	other.SHA256 = b.Record(shop, "9.9.9", plain).SHA256
	_, err := b.RecordImport(t.Context(), other)
	deployertest.Refused(t, err, report.Replaced, site)
	if err = b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-3.0.0"}); err != nil {
		t.Errorf("what is not imported is forgotten already: %v", err)
	}
	_, err = b.AddEndpoints(t.Context(), deployer.EndpointOptions{More: schema.ClusterRegistry{Mode: schema.RegistryMetalK8s, Host: schema.RegistryHostMetalK8s}})
	deployertest.Refused(t, err, report.Refused, "own")
}

// TestRefusedEnvironments: which namespaces never become part of an environment.
func TestRefusedEnvironments(t *testing.T) {
	b := deployertest.New(t, "{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}")
	b.Activated(shop, "1.0.0", deployertest.Content{Files: map[string]string{
		"operator/cluster/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
	}})
	b.Imported("base", "1.0.0", plain)
	for _, r := range []struct {
		name, namespace string
		adopt           bool
		code            report.Code
	}{
		{"one of Kubernetes", "kube-system", true, report.Refused},
		{"that of a Solution", "shop-system", true, report.Refused},
		{"that a Solution may have", "base-system", false, report.Refused},
		{"one of another owner", "theirs", false, report.Conflict},
		{"no name of a namespace", "The_Plant", false, report.Usage},
	} {
		t.Run(r.name, func(t *testing.T) {
			b.Writes()
			_, err := b.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "plant", Namespace: r.namespace, Adopt: r.adopt})
			deployertest.Refused(t, err, r.code)
			if writes := slices.DeleteFunc(b.Writes(), isLock); len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
	done, err := b.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "plant", Namespace: "theirs", Adopt: true})
	if err != nil || !slices.Equal(changes(done), []string{"adopt Namespace theirs"}) {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestMissingRights checks that a run without all of its rights changes nothing, and lists those that are missing.
func TestMissingRights(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	for _, r := range []struct {
		name, verb, resource string
		run                  verb
	}{
		{"no locks", "create", "leases", add("1.0.0")},
		{"no records", "create", "secrets", add("1.0.0")},
		{"no workloads", "create", "deployments", add("1.0.0")},
		{"no look at what starts", "watch", "deployments", add("1.0.0")},
		{"no shared document", "update", "configmaps", add("1.0.0")},
		{"no definitions", "delete", "customresourcedefinitions", deactivate(shop)},
		{"no namespaces", "create", "namespaces", createEnvironment},
	} {
		t.Run(r.name, func(t *testing.T) {
			b.Server.May = func(a authorization.ResourceAttributes) bool {
				return a.Verb != "*" && (a.Verb != r.verb || a.Resource != r.resource)
			}
			defer func() { b.Server.May = nil }()
			b.Writes()
			_, err := r.run(t.Context(), b.Connect(), plan.Options{})
			deployertest.Refused(t, err, report.Forbidden, r.verb, r.resource)
			if writes := slices.DeleteFunc(b.Writes(), isLock); len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
	t.Run("no rights to give away", func(t *testing.T) {
		b.Server.May = func(a authorization.ResourceAttributes) bool {
			return a.Verb != "*" && a.Verb != "escalate" && a.Verb != "bind" && (a.Resource != "pods" || a.Verb != "list")
		}
		defer func() { b.Server.May = nil }()
		_, err := add("1.0.0")(t.Context(), b.Connect(), plan.Options{})
		deployertest.Refused(t, err, report.Forbidden, "list", "pods")
	})
}

// TestHeldLock checks that two administrators cannot change one environment at once, and that a plan needs no lock.
func TestHeldLock(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	lock, err := b.Cluster.Lock(t.Context(), "env-site", cluster.LockOptions{Identity: "somebody@elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	other := b.Connect()
	_, err = add("1.0.0")(t.Context(), other, plan.Options{})
	deployertest.Refused(t, err, report.Locked, "somebody@elsewhere")
	if _, err = add("1.0.0")(t.Context(), other, plan.Options{DryRun: true}); err != nil {
		t.Errorf("plan: %v", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := add("1.0.0")(t.Context(), other, plan.Options{}); err != nil {
		t.Error(err)
	}
}

// TestAccepted: what was refused and then accepted is done, and the next run knows that.
func TestAccepted(t *testing.T) {
	t.Run("a hazard", func(t *testing.T) {
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", deployertest.Content{Role: "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
		_, err := b.Add(t.Context(), deployer.AddOptions{Environment: site, Solution: shop, Rendering: plan.Rendering{AcceptHazards: []string{"escalate"}}})
		if err != nil {
			t.Fatal(err)
		}
		if again := must(b, add("1.0.0")); !again.Empty() {
			t.Errorf("what was accepted is forgotten: %q", changes(again))
		}
	})
	t.Run("an object of another owner", func(t *testing.T) {
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", plain)
		b.Server.Put(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop-operator, namespace: site, labels: {app: mine}}}")
		done, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Adopt: true})
		if err != nil || !slices.Contains(changes(done), "adopt ServiceAccount site/shop-operator") {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("a removal of what is on no record", func(t *testing.T) {
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", plain)
		b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop}.SecretName())
		if _, err := remove(shop)(t.Context(), b.Deployer, plan.Options{Adopt: true}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"Deployment", "ServiceAccount", "Role", "RoleBinding"} {
			if left := b.Server.Names(kind); len(left) > 0 {
				t.Errorf("%s %q are there yet", kind, left)
			}
		}
		if broken, err := b.Broken(t.Context()); err != nil || len(broken) > 0 {
			t.Errorf("%+v, %v", broken, err)
		}
	})
	t.Run("new rights, which are reported", func(t *testing.T) {
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", plain)
		b.Activated(shop, "1.1.0", deployertest.Content{Role: "- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}"})
		done := must(b, change(records.Up, "1.1.0"))
		if text := strings.Join(done.Notices, "\n"); !strings.Contains(text, "new right") || !strings.Contains(text, "services") {
			t.Errorf("%q", done.Notices)
		}
		for _, step := range []struct {
			revision int64
			version  string
		}{{1, "1.0.0"}, {2, "1.1.0"}} {
			if done := must(b, rollback(step.revision)); done.Version != step.version {
				t.Errorf("revision %d has version %s, want %s", step.revision, done.Version, step.version)
			}
		}
	})
}
