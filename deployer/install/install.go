// Package install takes Solutions from files on a host to running applications: one plan over what the host, its cluster and an
// environment need, in the order in which the steps need each other.
//
//   - [Installer.Plan] finds out which steps are done and what the others would do, and changes nothing.
//   - [Plan.Run] does the others.
//   - [Installer.PlanUninstall] and [UninstallPlan.Run] are the inverse.
//
// Each step is a use case that has a command of its own, and can be repeated: the same installation run again changes nothing, and
// one that was interrupted anywhere is finished by the same command.
package install

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Installer installs Solutions on a host and in its cluster.
type Installer struct {
	Host     *host.Host // with its Cluster
	Deployer *deployer.Deployer
	Services Services // the service manager of the host
	Root     string   // below it are the files of the node and the units: "/"
	Program  string   // the path of this program, which the unit of the registry starts
	TrustDir string   // where Key is stored
}

// Options say what is installed, and how.
type Options struct {
	Import      host.ImportOptions // of the archives, which are files
	Environment string
	// Key is trusted before the archives are verified, under the name KeyName. Nil trusts no other key than before.
	Key     *key.Public
	KeyName string
	// Serve is how this host serves images, and Endpoint the URL at which nodes reach it: "" is the address of this host that
	// leads to the API server, and the port that Serve listens on.
	Serve    host.ServeOptions
	Endpoint string
	Node     node.Config // without endpoints and certificates, which the cluster has
	Deploy   plan.Options
}

// Plan is an installation that has not begun. It is for one [Plan.Run].
type Plan struct {
	schema.Installation

	installer *Installer
	o         Options
	wanted    []plan.Wanted
	imported  bool                          // all of them, before
	run       []func(context.Context) error // for each of the steps
}

// Plan returns the steps of an installation. The error is the reason why it cannot begin.
func (i *Installer) Plan(ctx context.Context, o Options) (*Plan, error) {
	if err := plan.CheckAllow(o.Deploy.Allow); err != nil {
		return nil, err
	}
	p := i.begin(o)
	for _, plan := range []func(context.Context) error{p.planTrust, p.planImport, p.planImages, p.planDeployment} {
		if err := plan(ctx); err != nil {
			return nil, err
		}
	}
	p.Digest = digestOf(p.Installation)
	p.o.Deploy.Expect = "" // it is about the whole
	return p, checkExpected(o.Deploy.Expect, p.Digest)
}

// PlanImages returns the steps of an installation by which nodes get images: serve, register and configure.
func (i *Installer) PlanImages(ctx context.Context, o Options) (*Plan, error) {
	p := i.begin(o)
	return p, p.planImages(ctx)
}

// PlanNode returns the step by which this node gets images from the recorded endpoints; none where this host is not a node.
func (i *Installer) PlanNode(ctx context.Context, o Options, registry *schema.ClusterRegistry) (*Plan, error) {
	p := i.begin(o)
	if p.o.Endpoint == "" && len(registry.Endpoints) > 0 {
		p.o.Endpoint = registry.Endpoints[0]
	}
	return p, p.planNode(ctx, registry)
}

// begin returns a plan without steps.
func (i *Installer) begin(o Options) *Plan {
	p := &Plan{installer: i, o: o}
	p.Environment = o.Environment
	p.Archives, p.Steps, p.Powers, p.Notices = []schema.InstalledArchive{}, []schema.InstallStep{}, []schema.Power{}, []string{}
	return p
}

// Empty reports whether no step is left to do.
func (p *Plan) Empty() bool { return !anyPlanned(p.Steps) }

// Unapproved are the powers that allow does not name and that were not approved before.
func (p *Plan) Unapproved() []schema.Power { return p.o.Deploy.Unallowed(p.Powers) }

// Approve allows powers in this run that the user was shown. What the run finds beyond these is refused.
func (p *Plan) Approve(list []schema.Power) { p.o.Deploy.Approve(list) }

// Run carries out the remaining steps. Their states show the progress, even after an error.
func (p *Plan) Run(ctx context.Context) error {
	return runSteps(ctx, p.installer.Host.Sink, p.Steps, p.run)
}

// add adds a step. One that is done has nothing to run.
func (p *Plan) add(s schema.InstallStep, run func(context.Context) error) {
	p.Steps, p.run = append(p.Steps, s), append(p.run, run)
}
