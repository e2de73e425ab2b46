//go:build linux

package faults

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Verb is a command that changes something, and what it is run on.
type Verb struct {
	Name string
	Args []string
	base base
	// prepare makes the environment; nil when there is none, and then no objects of users are in it.
	prepare [][]string
	// before is done to the base where there is no environment.
	before [][]string
	// drifts reports that an object of ours was deleted.
	drifts bool
	// forgets reports that the record of what is in the environment is lost.
	forgets bool
	// bare reports that there are no custom resources of users, with which the verb would be refused.
	bare bool
	// installed reports that Helm has a release of the component that is a chart.
	installed bool
	// files are on the host before.
	files map[string]string
	// changesBase reports that the verb changes what is imported or active.
	changesBase bool
	// deletes reports that the verb deletes custom resources; each must be in an export then.
	deletes bool
	// fails is the code that the command ends with when all is well; "" is none.
	fails string
	// resumes is a verb that was killed half way before.
	resumes *Verb
	// pods reports that pods of the loader run meanwhile.
	pods bool
	// inPod reports that the command is that of a pod of the loader, for a run that prepare has begun.
	inPod bool
	// finishes is another verb, which finishes what this one has begun: then all has to be as after that one.
	finishes *Verb
	// done are codes that the command may end with when it was complete before.
	done []string
	// back is another command that an administrator may run after one that was killed, to get back; nil is none.
	back []string
	// Short is how often the verb is killed in CI, where there is no time for more; 0 is never.
	Short int
}

// thens are the commands that may follow, besides the same one.
func (v *Verb) thens() []Then {
	var thens []Then
	if v.back != nil {
		thens = append(thens, Back)
	}
	if v.fails == "" { // else it would wait for what never becomes ready
		thens = append(thens, Resume)
	}
	if v.finishes != nil {
		thens = append(thens, Finish)
	}
	return thens
}

// Scenario is a digest of what is done with a verb: results of another scenario say nothing about this one.
func (v *Verb) Scenario() string {
	scenario := *v
	scenario.resumes, scenario.finishes = nil, nil // addresses; their names are names of verbs
	text := fmt.Sprintf("%+v %s%s%s%s%v%s%v%v", scenario, userInterface, wanted, newInterface+parts+otherParts+part("first", "one"), nowhere, planted, definition("Demo", "title"), chartFiles, helmed)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
}

// complete is an error unless a run ended as it should.
func (v *Verb) complete(r *result) error {
	if v.fails != "" && r.code() == v.fails {
		return nil
	}
	return r.ok()
}

// inEnvironment stands for the name of the environment of a run.
const inEnvironment = "$ENVIRONMENT"

var (
	create  = []string{"deploy", "env", "create", inEnvironment}
	add     = []string{"deploy", "add", inEnvironment, solution, oldest}
	addOld  = append(add, "--no-wait")
	addNew  = []string{"deploy", "add", inEnvironment, solution, newest, "--no-wait"}
	upgrade = []string{"deploy", "upgrade", inEnvironment, solution, newest}

	addParts = append(add, "--component", "first", "--component", "second")

	startLoader = []string{"deploy", "loader", "start", "-f", "loader.yaml", "--local"}
	startPod    = []string{"deploy", "loader", "start", "-f", "pod.yaml", "--no-wait"}
	loaderFiles = map[string]string{
		"loader.yaml":  loads(oldest, "first: true, second: true"),
		"fewer.yaml":   loads(oldest, "first: true, second: false"),
		"other.yaml":   loads(newest, "first: true, third: false"),
		"pod.yaml":     loads(oldest, "first: true, second: true") + nowhereJob,
		"repair.yaml":  loads(oldest, "first: true, second: true") + nowhereJob + "  repair: {mode: repair, schedule: 0 0 1 1 *}\n",
		"upgrade.yaml": loads(newest, "first: true, third: true") + nowhereJob,
		"gone.yaml":    strings.Replace(loads(oldest, "first: true"), inEnvironment, "elsewhere", 1),
	}
	environmentFiles = map[string]string{
		"parts.yaml":   has("{name: " + solution + ", version: " + oldest + ", components: {first: true, second: true}}"),
		"nothing.yaml": has(""),
	}

	rollBack   = []string{"deploy", "rollback", inEnvironment, solution}
	remove     = []string{"deploy", "remove", inEnvironment, solution, "--keep-data"}
	deactivate = []string{"deploy", "deactivate", solution, "--keep-crds"}
	createApp  = []string{"deploy", "app", "create", inEnvironment, "own", "--kind", "Demo", "--set", "title=Own"}
)

var upgraded = &Verb{Name: "upgrade", Args: upgrade, base: activeNew, prepare: [][]string{create, addOld}, back: append(rollBack, "--no-wait"), Short: 3}

// nowhereJob is for a Job whose pods no node takes.
const nowhereJob = `  image: registry.invalid/solutionctl@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  job: {nodeSelector: {nowhere: "true"}}
`

// loads is a configuration of the loader.
func loads(version, components string) string {
	return `apiVersion: solutionctl.io/v1alpha1
kind: LoaderConfiguration
spec:
  environments:
    - name: ` + inEnvironment + `
      solutions: [{name: ` + solution + `, version: ` + version + `, components: {` + components + `}}]
`
}

// has is the environment in the input of "apply -f".
func has(solutions string) string {
	return "apiVersion: solutionctl.io/v1alpha1\nkind: EnvironmentConfiguration\nspec: {name: " + inEnvironment + ", solutions: [" + solutions + "]}\n"
}

// The launcher, while pods do what it has planned.
var (
	startedLoader = &Verb{
		Name: "loader start", Args: []string{"deploy", "loader", "start", "-f", "pod.yaml"}, base: activeOld, prepare: [][]string{create}, files: loaderFiles, pods: true, back: remove,
		Short: 1,
	}
	upgradedLoader = &Verb{
		Name: "loader start to another version", Args: []string{"deploy", "loader", "start", "-f", "upgrade.yaml"}, base: activeNew,
		prepare: [][]string{create, append(addParts, "--no-wait")}, files: loaderFiles, pods: true, back: append(rollBack, "--no-wait"),
	}
)

// LeftOut are the other commands that change a cluster or a host that deploys: why they are not killed here, and the tests that they have.
var LeftOut = []struct{ Command, Reason string }{
	{"deploy install", "each step does the work of another command; `TestKilled` of `deployer/install` ends it at each write to the cluster"},
	{"deploy uninstall", "each step does the work of another command; `TestKilled` of `deployer/install` ends it at each write to the cluster"},
	{"deploy push", "it needs a registry of the site; `TestPushContinues` of `build/oci` ends it at each request that writes"},
	{"deploy store sync", "it imports archives of another host, one by one; `TestSyncFinishes` of `deployer/host`"},
	{"deploy registry add", "it writes one record; `TestEndpointsOfSeveralHosts` of `deployer/records`"},
	{"deploy registry remove", "it writes one record; `TestRemoveEndpoints` of `deployer/records`"},
	{"deploy cluster name", "it writes one record; `TestNameCluster` of `deployer`"},
	{"deploy monitoring config", "it writes one record; `TestConfigureMonitoring` of `deployer`"},
	{"deploy node preload", "it needs a container runtime; `TestKilled` of `deployer/preload` ends it while its Jobs run"},
	{"deploy affected", "it writes a cache; `TestPowerCut` of `cmd/solutionctl` cuts the power at each step"},
	{"deploy notify", "it replaces one file, after the message was sent; `deploy_notify.txtar`"},
	{"trust add", "it changes files only; `TestPowerCut` of `cmd/solutionctl` cuts the power at each step"},
	{"trust import", "it changes files only; `TestPowerCut` of `cmd/solutionctl` cuts the power at each step"},
	{"trust remove", "it changes files only; `TestPowerCut` of `cmd/solutionctl` cuts the power at each step"},
	{"trust revoke", "it changes files only; `TestPowerCut` of `cmd/solutionctl` cuts the power at each step"},
	{"deploy serve", "it runs until it is stopped, and changes no cluster; `deploy_serve.txtar`"},
	{"deploy ui", "it runs until it is stopped, and does the work of other commands"},
	{"dev", "it runs until it is stopped, and does the work of other commands"},
}

// Verbs are the commands that are killed.
var Verbs = []*Verb{
	{Name: "import", Args: []string{"deploy", "import", "--allow-downgrade", archiveOf(oldest), archiveOf(newest)}, base: empty, changesBase: true},
	{Name: "unimport", Args: []string{"deploy", "unimport", solution, newest}, base: imported, changesBase: true, done: []string{"not-found"}},
	{Name: "activate", Args: []string{"deploy", "activate", solution, oldest}, base: imported, changesBase: true, back: deactivate},
	{
		Name: "activate over another version", Args: []string{"deploy", "activate", solution, newest}, base: activeOld, changesBase: true,
		prepare: [][]string{create, addOld}, back: []string{"deploy", "activate", solution, oldest},
	},
	{Name: "deactivate", Args: []string{"deploy", "deactivate", solution}, base: activeOld, changesBase: true},
	{
		Name: "deactivate --keep-crds", Args: deactivate, base: activeOld, changesBase: true,
		prepare: [][]string{create, addOld}, back: []string{"deploy", "activate", solution, oldest},
	},
	{
		Name: "deactivate --delete-data", Args: []string{"deploy", "deactivate", solution, "--delete-data", "--yes"}, base: activeOld, changesBase: true,
		prepare: [][]string{create, addOld}, deletes: true,
	},
	{
		Name: "apply -f", Args: []string{"deploy", "apply", "-f", "configuration.yaml", "--allow-downgrade"}, base: empty, changesBase: true,
	},
	{
		Name: "apply -f with fewer", Args: []string{"deploy", "apply", "-f", "fewer.yaml"}, base: activeOld, changesBase: true,
		files: map[string]string{"fewer.yaml": fewer},
	},
	{
		Name: "apply -f an environment", Args: []string{"deploy", "apply", "-f", "parts.yaml"}, base: activeOld, prepare: [][]string{create},
		files: environmentFiles, back: remove,
	},
	{
		Name: "apply -f an environment --prune", Args: []string{"deploy", "apply", "-f", "nothing.yaml", "--prune"}, base: activeOld,
		prepare: [][]string{create, append(addParts, "--no-wait")}, files: environmentFiles, bare: true, back: append(addParts, "--no-wait"),
	},
	{Name: "env create", Args: append(create, "--description", "For tests"), base: activeOld, Short: 1},
	{
		Name: "env delete", Args: []string{"deploy", "env", "delete", inEnvironment, "--delete-data", "--delete-others", "--yes"}, base: activeOld,
		prepare: [][]string{create, addOld}, deletes: true, done: []string{"not-found"},
	},
	{Name: "add", Args: add, base: activeOld, prepare: [][]string{create}, back: remove},
	{
		Name: "remove --keep-data", Args: remove, base: activeOld,
		prepare: [][]string{create, addOld}, done: []string{"not-found"}, back: addOld, Short: 2,
	},
	{
		Name: "remove --delete-data", Args: []string{"deploy", "remove", inEnvironment, solution, "--delete-data", "--yes"}, base: activeOld,
		prepare: [][]string{create, addOld}, deletes: true, done: []string{"not-found"},
	},
	upgraded,
	{
		Name: "upgrade --on-failure rollback", Args: []string{"deploy", "upgrade", inEnvironment, solution, broken, "--on-failure", "rollback", "--timeout", "3s"},
		base: activeBroken, prepare: [][]string{create, addOld}, back: append(rollBack, "--no-wait"), fails: "timeout",
	},
	{Name: "resume", Args: []string{"deploy", "resume"}, base: activeNew, prepare: [][]string{create, addOld}, back: append(rollBack, "--no-wait"), resumes: upgraded},
	{
		Name: "downgrade", Args: []string{"deploy", "downgrade", inEnvironment, solution, oldest}, base: activeNew,
		prepare: [][]string{create, addNew}, back: append(rollBack, "--no-wait"),
	},
	{
		Name: "rollback", Args: rollBack, base: activeNew,
		prepare: [][]string{create, addOld, append(upgrade, "--no-wait")}, back: append(upgrade, "--no-wait"),
	},
	{Name: "repair", Args: []string{"deploy", "repair", inEnvironment}, base: activeOld, prepare: [][]string{create, addOld}, drifts: true},
	{Name: "repair --records", Args: []string{"deploy", "repair", inEnvironment, "--records"}, base: activeOld, prepare: [][]string{create, addOld}, forgets: true},
	{
		Name: "add with components", Args: addParts, base: activeOld, prepare: [][]string{create}, back: remove, Short: 2, // "add" does less of the same
	},
	{
		Name: "add with a chart", Args: append(add, "--component", charted, "--set", charted+".password=FromTheSite1234"), base: activeOld,
		prepare: [][]string{create}, back: remove,
	},
	{
		Name: "add adopting", Args: append(add, "--component", charted, "--adopt-helm", charted), base: activeOld, prepare: [][]string{create}, installed: true, back: remove,
	},
	{
		Name: "add without a component", Args: append(add, "--component", "second=false"), base: activeOld,
		prepare: [][]string{create, append(addParts, "--no-wait")}, back: append(rollBack, "--no-wait"),
	},
	{
		Name: "upgrade with components", Args: append(upgrade, "--component", "third"), base: activeNew,
		prepare: [][]string{create, append(addParts, "--no-wait")}, back: append(rollBack, "--no-wait"),
	},
	{
		Name: "rollback with components", Args: rollBack, base: activeNew,
		prepare: [][]string{create, append(addParts, "--no-wait"), append(upgrade, "--component", "third", "--no-wait")}, back: append(upgrade, "--no-wait"),
	},
	{
		Name: "remove with components", Args: remove, base: activeOld,
		prepare: [][]string{create, append(addParts, "--no-wait")}, done: []string{"not-found"}, back: append(addParts, "--no-wait"),
	},
	{
		Name: "loader start --local", Args: startLoader, base: activeOld, prepare: [][]string{create}, files: loaderFiles, back: remove,
	},
	{
		Name: "loader start --local to another version", Args: []string{"deploy", "loader", "start", "-f", "other.yaml", "--local"}, base: activeNew,
		prepare: [][]string{create, append(addParts, "--no-wait")}, files: loaderFiles, back: append(rollBack, "--no-wait"),
	},
	{
		Name: "loader start --local without a component", Args: []string{"deploy", "loader", "start", "-f", "fewer.yaml", "--local"}, base: activeOld,
		prepare: [][]string{create, startLoader}, files: loaderFiles, back: append(rollBack, "--no-wait"),
	},
	startedLoader,
	upgradedLoader,
	{
		Name: "loader start with repairs", Args: []string{"deploy", "loader", "start", "-f", "repair.yaml"}, base: activeOld, prepare: [][]string{create}, files: loaderFiles, pods: true,
	},
	{
		Name: "loader run", Args: loaderRun("parameters.json"), base: activeOld, prepare: [][]string{create, startPod}, files: loaderFiles,
		inPod: true, finishes: startedLoader, Short: 1,
	},
	{
		Name: "loader run to another version", Args: loaderRun("parameters.json"), base: activeNew,
		prepare: [][]string{create, append(addParts, "--no-wait"), {"deploy", "loader", "start", "-f", "upgrade.yaml", "--no-wait"}}, files: loaderFiles,
		inPod: true, finishes: upgradedLoader,
	},
	{
		Name: "loader stop --prune", Args: []string{"deploy", "loader", "stop", "-f", "gone.yaml", "--prune", "--yes"}, base: activeOld,
		prepare: [][]string{create, startLoader}, files: loaderFiles, bare: true, back: startLoader,
	},
	{
		Name: "loader repair", Args: []string{"deploy", "loader", "repair", "-f", "loader.yaml"}, base: activeOld,
		prepare: [][]string{create, startLoader}, files: loaderFiles, drifts: true,
	},
	{
		Name: "purge", Args: []string{"deploy", "purge", "--yes"}, base: imported, changesBase: true,
		before: [][]string{{"deploy", "unimport", solution, oldest}, {"deploy", "unimport", solution, newest}},
	},
	{
		Name: "app create", Args: []string{"deploy", "app", "create", inEnvironment, "more", "--kind", "Demo", "--set", "title=More"}, base: activeOld,
		prepare: [][]string{create, addOld}, done: []string{"conflict"},
	},
	{
		Name: "app set", Args: []string{"deploy", "app", "set", inEnvironment, "own", "title=Other"}, base: activeOld,
		prepare: [][]string{create, addOld, createApp},
	},
	{
		Name: "app scale", Args: []string{"deploy", "app", "scale", inEnvironment, "own", "3"}, base: activeOld,
		prepare: [][]string{create, addOld, createApp},
	},
	{
		Name: "app delete", Args: []string{"deploy", "app", "delete", inEnvironment, "own", "--yes"}, base: activeOld,
		prepare: [][]string{create, addOld, createApp}, done: []string{"not-found"},
	},
	{
		Name: "node config", Args: []string{"deploy", "node", "config", "--root", "node", "--runtime", "containerd", "--endpoint", "https://10.0.0.1:5000", "--node", "one"},
		base: activeOld, Short: 3,
		files: map[string]string{"node/etc/containerd/config.toml": "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"},
	},
}
