package deployer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// role is a role that is shipped, for the Solution of a bed. Its name is that of the group that it is bound to.
type role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule `json:"rules"`
}

// shipped reads files of roles as an administrator fills them in.
func (b *bed) shipped(files ...string) []role {
	b.Helper()
	var roles []role
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("../../../docs/installer-role", file))
		if err != nil {
			b.Fatal(err)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(string(data), "shop.example.com", b.Group), "shop", b.Solution)
		for document := range strings.SplitSeq(text, "\n---\n") {
			var one role
			if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
				b.Fatal(err)
			}
			one.Rules = single(one.Rules)
			roles = append(roles, one)
		}
	}
	return roles
}

// single makes rules that are about one resource each.
func single(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var list []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			one := rule
			one.Resources = []string{resource}
			list = append(list, one)
		}
	}
	return list
}

// group is the group with a role.
func (r role) group() string { return r.Name + "." + r.Namespace }

// inEnvironment reports that a role is to be bound in the namespaces of environments.
func (r role) inEnvironment() bool {
	return strings.HasSuffix(r.Name, "-environment") || strings.HasSuffix(r.Name, "-extras") || strings.Contains(r.Name, "-applications-") || r.isAboutLogs()
}

// isAboutLogs reports that no command that changes something needs the role.
func (r role) isAboutLogs() bool { return strings.HasPrefix(r.Name, "solutionctl-logs-") }

// grant makes a role, and binds it to its group, where it is to be bound in one namespace or everywhere.
func (b *bed) grant(r role) {
	b.Helper()
	data, err := yaml.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	b.create(string(data))
	if !r.inEnvironment() {
		b.bindGroup(r, r.Namespace)
	}
}

func (b *bed) bindGroup(r role, namespace string) {
	b.Helper()
	kind := "ClusterRoleBinding"
	if namespace != "" {
		kind = "RoleBinding"
	}
	b.create(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s, namespace: %q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: %s}]
`, kind, r.Name, namespace, r.Kind, r.Name, r.group()))
}

// trial is a user who lacks one verb of one rule.
type trial struct {
	*deployer.Deployer
	role   role   // without the verb
	roles  []role // all that the user has
	rule   rbacv1.PolicyRule
	verb   string
	caught string // the command that needs it
}

func (r trial) String() string {
	return fmt.Sprintf("%s %v %v in %s", r.verb, r.rule.Resources, r.rule.ResourceNames, r.role.Name)
}

// user returns the verbs for a member of the groups of some roles.
func (b *bed) user(name string, roles []role) *deployer.Deployer {
	b.Helper()
	var groups []string
	for _, r := range roles {
		groups = append(groups, r.group())
	}
	file, err := b.in.KubeconfigFor(name, groups...)
	if err != nil {
		b.Fatal(err)
	}
	return b.connect(file)
}

// trials makes a user for each verb of each rule of those roles that are selected, in short mode for every eighth of them.
func (b *bed) trials(roles []role, selected func(role) bool) []*trial {
	b.Helper()
	var all []*trial
	for at, r := range roles {
		if !selected(r) {
			continue
		}
		for i, rule := range r.Rules {
			for _, verb := range rule.Verbs {
				n := len(all)
				one := &trial{role: r, rule: rule, verb: verb}
				one.role.Name = fmt.Sprintf("trial-%d-%s", n, r.Name)
				one.role.Rules = slices.Clone(r.Rules)
				one.role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
				if len(rule.Verbs) == 1 {
					one.role.Rules = slices.Delete(one.role.Rules, i, i+1)
				}
				one.roles = slices.Clone(roles)
				one.roles[at] = one.role
				all = append(all, one)
			}
		}
	}
	if testing.Short() {
		all = everyEighth(all)
	}
	for n, one := range all {
		b.grant(one.role)
		one.Deployer = b.user(fmt.Sprintf("trial-%d", n), one.roles)
	}
	return all
}

// command is one command of the life of a Solution. Where there is a dry run, which asks for all rights that the command needs,
// trials use it.
type command struct {
	name    string
	prepare func()
	run     func(d *deployer.Deployer, o plan.Options) error
	dry     bool
}

func (b *bed) life() []command {
	ctx := b.Context()
	app := apps.Options{Environment: b.Env, Kind: "clock", Name: "one"}
	clock := func() bool { return b.find(b.clock(), b.Env, "one") != nil }
	created, hands := 0, 0
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	return []command{
		{"activate", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: b.Solution, Version: "1.1.0"})
			return err
		}, true},
		{"add", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Add(ctx, deployer.AddOptions{Options: o, Environment: b.Env, Solution: b.Solution, Version: "1.0.0"})
			return err
		}, true},
		{"env create", func() { created++ }, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: fmt.Sprintf("%s-%d", b.Env, created)})
			return err
		}, false},
		{"app create", func() {
			if clock() {
				must(b.Apps.Delete(ctx, app))
			}
		}, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.Apps.Create(ctx, apps.CreateOptions{Options: app, Values: []byte("hands: 2\n")})
			return err
		}, false},
		{"app set", func() { hands++ }, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.Apps.Set(ctx, apps.SetOptions{Options: app, Set: []string{fmt.Sprintf("hands=%d", hands)}})
			return err
		}, false},
		{"upgrade", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Change(ctx, deployer.ChangeOptions{Options: o, Direction: records.Up, Environment: b.Env, Solution: b.Solution, Version: "1.1.0"})
			return err
		}, true},
		{"rollback", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Rollback(ctx, deployer.RollbackOptions{Options: o, Environment: b.Env, Solution: b.Solution})
			return err
		}, true},
		{"repair", func() {
			if config := b.find(configMaps, b.Env, b.Solution+"-operator-config"); config != nil {
				must(b.Cluster.Delete(ctx, config, cluster.DeleteOptions{}))
			}
		}, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Repair(ctx, deployer.RepairOptions{Options: o, Selection: survey.Selection{Environment: b.Env, Solution: b.Solution}})
			return err
		}, true},
		{"app delete", func() {
			if !clock() {
				b.newClock(b.Env, "one", "hands: 1")
			}
		}, func(d *deployer.Deployer, _ plan.Options) error { return d.Apps.Delete(ctx, app) }, false},
		{"remove", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Remove(ctx, deployer.RemoveOptions{Options: o, Environment: b.Env, Solution: b.Solution})
			return err
		}, true},
		{"env delete", nil, func(d *deployer.Deployer, o plan.Options) error {
			others, err := d.Survey.Others(ctx, survey.OthersOptions{Environment: b.Env}) // the kinds that the role has nothing to do with
			if err != nil {
				return err
			}
			_, err = d.DeleteEnvironment(ctx, environments.DeleteOptions{Options: o, Environment: b.Env, Others: others})
			return err
		}, true},
		{"deactivate", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Deactivate(ctx, deployer.DeactivateOptions{Options: o, Solution: b.Solution})
			return err
		}, true},
	}
}

// TestRoles checks the shipped and the generated roles in a cluster that no other test changes: what a user lacks is compared with what
// changes anywhere.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1})
	// These take away what they have brought; what others leave would need rights, too.
	t.Run("installer", func(t *testing.T) { testInstallerRole(t, c) })
	t.Run("generated", func(t *testing.T) { testGeneratedRoles(t, c) })
	t.Run("applications", func(t *testing.T) { testApplicationsRole(t, c) })
	t.Run("reader", func(t *testing.T) { testReaderRole(t, c) })
}

// testInstallerRole: who has the roles of docs/installer-role can do everything with a Solution, waiting included, and needs
// every verb of them. Without one, the command that needs it names the rule and changes nothing.
func testInstallerRole(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	b := newBedOn(t, c)
	b.imported("1.0.0", content{})
	b.imported("1.1.0", content{Role: "- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}"})
	roles := b.shipped("installer.yaml", "solution.yaml")
	installer, trials := b.installer(roles, func(role) bool { return true })
	b.wantFound(b.examine(installer, time.Now), "ok rights look", "ok rights activate", "ok rights environments", "ok rights deploy")
	b.live(b.life(), installer, trials)
}

// installer makes a user who has all of the roles, and one for each verb of those that are selected who lacks it.
func (b *bed) installer(roles []role, selected func(role) bool) (*deployer.Deployer, []*trial) {
	b.Helper()
	for _, r := range roles {
		b.grant(r)
	}
	trials := b.trials(roles, selected)
	for _, r := range roles {
		if r.inEnvironment() {
			b.bindGroup(r, b.Env)
		}
	}
	for _, one := range trials {
		if one.role.inEnvironment() {
			b.bindGroup(one.role, b.Env)
		}
	}
	last := trials[len(trials)-1]
	await(b.T, func() (bool, bool) {
		missing, err := last.Cluster.Missing(b.Context(), cluster.Permission{Verb: "bind", Group: roleGroup, Resource: "roles", Namespace: b.Env, Name: b.Solution + "-operator"})
		return true, err == nil && len(missing) == 0
	})
	return b.user("installer", roles), trials
}

// everyEighth always has the last trial, as tests wait for its rights.
func everyEighth(trials []*trial) (some []*trial) {
	for i := (len(trials) - 1) % 8; i < len(trials); i += 8 {
		some = append(some, trials[i])
	}
	return some
}

// live runs commands as each user who lacks a verb that none needed so far, and then as the one who has all.
func (b *bed) live(commands []command, installer *deployer.Deployer, trials []*trial) {
	b.Helper()
	for _, c := range commands {
		for _, one := range trials {
			if one.caught == "" {
				b.try(c, one)
			}
		}
		if c.prepare != nil {
			c.prepare()
		}
		if err := c.run(installer, plan.Options{Timeout: testcluster.Deadline(time.Minute)}); err != nil {
			b.Fatalf("%s: %v\n%q", c.name, err, report.Hints(err))
		}
	}
	for _, one := range trials {
		if one.caught == "" {
			b.Errorf("no command needs %s", one)
		}
	}
}

const roleGroup = "rbac.authorization.k8s.io"

// try runs a command without a right. When that fails, nothing may have changed, and the message must name the rule.
func (b *bed) try(c command, one *trial) {
	b.Helper()
	if c.prepare != nil {
		c.prepare()
	}
	before := b.snapshot()
	err := c.run(one.Deployer, plan.Options{DryRun: c.dry})
	if err == nil {
		return
	}
	one.caught = c.name
	if diff := cmp.Diff(before, b.snapshot()); diff != "" {
		b.Errorf("%s without %s: %v\nchanged something: %s", c.name, one, err, diff)
	}
	text := strings.Join(report.Hints(err), "\n")
	if report.CodeOf(err) != report.Forbidden {
		b.Errorf("%s without %s: %v\n%s", c.name, one, err, text)
		return
	}
	wanted, verbs := one.rule.Resources[0], []string{one.verb}
	switch one.verb {
	case "bind", "escalate":
		wanted, verbs = "pods", []string{"get", "list"} // what the operator gets would have to be the installer's
	default:
		wanted = strings.Replace(wanted, "*", "clocks", 1)
	}
	if one.verb == "create" || one.verb == "patch" {
		verbs = []string{"create", "patch"} // what is applied takes both
	}
	named := false
	for _, rule := range hintedRule.FindAllStringSubmatch(text, -1) {
		list := strings.Split(strings.ReplaceAll(rule[2], `"`, ""), ", ")
		foreign := slices.ContainsFunc(list, func(v string) bool { return !slices.Contains(verbs, v) })
		if rule[1] != wanted || foreign {
			b.Errorf("%s without %s: the hint asks for more:\n%s", c.name, one, text)
		}
		named = named || rule[1] == wanted && (slices.Contains(list, one.verb) || wanted == "pods")
	}
	if !named {
		b.Errorf("%s without %s is not explained: %v\n%s", c.name, one, err, text)
	}
}

// hintedRule finds the resource and the verbs of a rule in a hint.
var hintedRule = regexp.MustCompile(`resources: \["([^"]*)"\]\n(?:  resourceNames: .*\n)?  verbs: \[(.*)\]`)

// snapshot returns the state of everything that commands may change.
func (b *bed) snapshot() map[string]string {
	b.Helper()
	state := map[string]string{}
	for _, kind := range []kube.GroupVersionKind{configMaps, secrets, roles, deployments, crds, namespaces, b.clock()} {
		for object, err := range b.Cluster.ListMetadata(b.Context(), kind, "", metav1.ListOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			version := object.GetResourceVersion()
			if kind == deployments || kind == crds || kind == namespaces {
				version = fmt.Sprint(object.GetGeneration()) // controllers write their status
			}
			if ours := object.GetNamespace(); !strings.HasPrefix(ours, "kube-") && object.GetName() != "kube-root-ca.crt" && object.GetDeletionTimestamp() == nil {
				state[cluster.Name(kind.Kind, ours, object.GetName())] = version
			}
		}
	}
	return state
}

// testReaderRole: who has the roles of docs/installer-role/reader.yaml sees everything and changes nothing.
func testReaderRole(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	b := newBedOn(t, c)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	roles := b.shipped("reader.yaml")
	for _, r := range roles {
		b.grant(r)
		if r.inEnvironment() {
			b.bindGroup(r, b.Env)
		}
	}
	reader := b.user("reader", roles)
	await(t, func() (bool, bool) {
		missing, err := reader.Cluster.Missing(t.Context(), cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: metalk8s.SolutionsNamespace, Name: metalk8s.SolutionsConfigMap})
		return true, err == nil && len(missing) == 0
	})
	b.patch(b.get(configMaps, b.Env, b.Solution+"-operator-config"), `{"data": {"operator.yaml": "changed"}}`)
	drift, err := reader.Diff(t.Context(), survey.Selection{Environment: b.Env, Solution: b.Solution})
	if err != nil || drift.Empty() {
		t.Errorf("%+v, %v", drift, err)
	}
	status, err := reader.Survey.Status(t.Context(), survey.StatusOptions{Drift: true})
	if err != nil || !status.HasDrift() {
		t.Errorf("%+v, %v", status, err)
	}
	history, err := reader.Records.History(t.Context(), records.HistoryOptions{Environment: b.Env, Solution: b.Solution})
	if err != nil || len(history.Operations) != 1 {
		t.Errorf("%+v, %v", history, err)
	}
	_, err = reader.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: b.Env, Solution: b.Solution}})
	b.refused(err, report.Forbidden, "leases")
}

// testApplicationsRole: who has the role of docs/installer-role/applications.yaml in the namespace of an environment, and no other
// right, runs applications there, and needs every verb of it.
func testApplicationsRole(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	b := newBedOn(t, c)
	b.imported("1.0.0", content{Versions: "v1", Scale: true})
	b.activated("1.1.0", content{Versions: "v1", Scale: true, Fields: "colour: {type: string}"})
	b.mustAdd("1.0.0")
	elsewhere := b.Env + "-elsewhere"
	b.environment(b.Env, elsewhere)

	all := b.shipped("applications.yaml")
	trials := b.trials(all, func(role) bool { return true })
	for _, one := range trials {
		b.bindGroup(one.role, b.Env)
	}
	for _, r := range all { // last: who has them is waited for
		b.grant(r)
		b.bindGroup(r, b.Env)
	}
	admin := b.user("applications", all)
	await(t, func() (bool, bool) {
		missing, err := admin.Cluster.Missing(t.Context(), cluster.Permission{Verb: "patch", Group: b.Group, Resource: "clocks", Subresource: "scale", Namespace: b.Env})
		return true, err == nil && len(missing) == 0
	})

	ctx := t.Context()
	app := apps.Options{Environment: b.Env, Name: "one", Timeout: testcluster.Deadline(time.Minute)}
	hands := 0
	there := func() {
		if b.find(b.clock(), b.Env, "one") == nil {
			b.newClock(b.Env, "one", "hands: 1")
		}
	}
	b.live([]command{
		{"app create", func() {
			if clock := b.find(b.clock(), b.Env, "one"); clock != nil {
				if err := b.Cluster.Delete(ctx, clock, cluster.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.Apps.Create(ctx, apps.CreateOptions{Options: app, Set: []string{"hands=2"}})
			return err
		}, false},
		{"app set", func() { there(); hands++ }, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.Apps.Set(ctx, apps.SetOptions{Options: app, Set: []string{fmt.Sprintf("hands=%d", hands)}})
			return err
		}, false},
		{"app scale", there, func(d *deployer.Deployer, _ plan.Options) error {
			_, err := d.Apps.Scale(ctx, apps.ScaleOptions{Options: app, Replicas: 1})
			return err
		}, false},
		{"app list", there, func(d *deployer.Deployer, _ plan.Options) error {
			list, err := d.Apps.List(ctx, apps.Options{Environment: b.Env})
			if err == nil && len(list.Apps) != 1 {
				err = fmt.Errorf("%+v", list)
			}
			return err
		}, false},
		{"app get, with its events", there, func(d *deployer.Deployer, _ plan.Options) error {
			one, err := d.Apps.Get(ctx, app)
			if err == nil {
				_, err = d.Apps.Events(ctx, one, time.Now())
			}
			return err
		}, false},
		{"app delete", there, func(d *deployer.Deployer, _ plan.Options) error { return d.Apps.Delete(ctx, app) }, false},
	}, admin, trials)

	// The form is that of the version in the environment, not that of the active one; so it is for an administrator.
	for _, d := range []*deployer.Deployer{admin, b.Deployer} {
		kind, err := d.Apps.Kind(ctx, apps.Options{Environment: b.Env, Namespace: b.Env})
		if err != nil {
			t.Fatal(err)
		}
		if fields := kind.Fields(); len(fields) != 2 || fields[0].Path != "hands" || fields[1].Path != "replicas" {
			t.Errorf("fields: %+v", fields)
		}
	}
	// Nothing outside of the namespace is theirs.
	_, err := admin.Apps.List(ctx, apps.Options{Environment: b.Env, Namespace: elsewhere})
	b.refused(err, report.Forbidden, elsewhere)
	_, err = admin.Apps.List(ctx, apps.Options{Environment: "other"})
	b.refused(err, report.Forbidden, "--namespace")
	_, err = admin.Survey.Status(ctx, survey.StatusOptions{})
	b.refused(err, report.Forbidden)

	// A user with write access may list any kinds there: that makes no other kind accessible.
	document := b.get(configMaps, b.Env, b.Solution+"-applications")
	b.patch(document, `{"binaryData": {"applications.json.gz": "bm90IGd6aXA="}}`)
	_, err = admin.Apps.List(ctx, apps.Options{Environment: b.Env, Kind: "clock"})
	b.refused(err, report.Corrupt, b.Solution+"-applications")
	offered, err := admin.Apps.List(ctx, apps.Options{Environment: b.Env})
	if err != nil || len(offered.Apps) != 0 {
		t.Errorf("a damaged document offers something: %+v, %v", offered, err)
	}
	if _, err = b.Apps.List(ctx, apps.Options{Environment: b.Env}); err != nil {
		t.Errorf("an administrator depends on it: %v", err)
	}
}

// generated are the roles that are made for the bed's Solution.
func (b *bed) generated(o rights.RolesOptions) []role {
	b.Helper()
	o.Solution = b.Solution
	grants, err := b.Roles(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	text, err := grants.YAML()
	if err != nil {
		b.Fatal(err)
	}
	var roles []role
	for document := range strings.SplitSeq(string(text), "---\n") {
		var one role
		if strings.Contains(document, "kind:") {
			if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
				b.Fatalf("%v\n%s", err, document)
			}
			roles = append(roles, one)
		}
	}
	return roles
}

// testGeneratedRoles: who has the roles that 'deploy roles' makes of what an archive has can do everything with it, and needs every
// verb of them. What the operator gets in the whole cluster is granted by its name.
func testGeneratedRoles(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	b := newBedOn(t, c)
	b.imported("1.0.0", content{})
	b.imported("1.1.0", content{RoleKind: "ClusterRole"})
	roles := b.generated(rights.RolesOptions{Environment: b.Env})
	apps := roles[len(roles)-1]
	roles = roles[:len(roles)-1]
	if want := "solutionctl-applications-" + b.Solution; apps.Name != want {
		t.Fatalf("the last role is %s, not %s", apps.Name, want)
	}
	installer, trials := b.installer(roles, func(r role) bool { return !r.isAboutLogs() })
	life := slices.DeleteFunc(b.life(), func(c command) bool { return strings.HasPrefix(c.name, "app ") })
	remove := slices.IndexFunc(life, func(c command) bool { return c.name == "remove" })
	// A removal with data deletes its custom resources. That is not a dry run: the user who exports can read.
	life[remove].prepare = func() {
		if b.find(b.clock(), b.Env, "one") == nil {
			b.newClock(b.Env, "one", "hands: 1")
		}
	}
	life[remove].run = func(d *deployer.Deployer, o plan.Options) error {
		_, err := d.Remove(t.Context(), deployer.RemoveOptions{
			Options: o, Environment: b.Env, Solution: b.Solution, Data: plan.DeleteData, Export: new(exported).open,
		})
		return err
	}
	b.live(life, installer, trials)
}
