package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// UninstallOptions select what to uninstall, and what to do with data and with the host.
type UninstallOptions struct {
	// Names are Solutions, to uninstall with all their versions, or archives (files or ids), to uninstall that version only.
	Names       []string
	Environment string
	// Data is the policy for custom resources. KeepData keeps their CustomResourceDefinitions as well.
	Data plan.DataPolicy
	// Export returns the destination of the custom resources of a Solution, which are exported before they are deleted; name is for the file.
	Export func(name string) definitions.Export
	// DeleteEnvironment deletes the environment, which has to be empty then.
	DeleteEnvironment bool
	// CleanHost undoes on this host what the installation of the first archive has done: the files of this node, the endpoint in the
	// cluster and the unit of the registry. It is refused while the host keeps other archives.
	CleanHost bool
	Serve     host.ServeOptions
	Endpoint  string      // as in [Options]
	Node      node.Config // the name of this node and the directory of its files
	// Untrust is the name of a key that is not trusted any more; "" trusts the same keys as before.
	Untrust string
	Deploy  plan.Options
}

// UninstallPlan is the inverse of an installation that has not begun. It is for one [UninstallPlan.Run].
type UninstallPlan struct {
	schema.Uninstallation

	installer *Installer
	o         UninstallOptions
	leaving   []*leaving // those that need others come before them
	run       []func(context.Context) error

	keepsEnvironment bool
}

// leaving is a Solution that is uninstalled, and where it is.
type leaving struct {
	solution string
	version  string               // the only one that goes; "" stands for all of them
	here     []records.Deployment // in the environment
	others   []records.Deployment // in other environments
	active   string               // version
	versions []string             // those that are imported, and go
}

// PlanUninstall returns the steps of the inverse of an installation. The error is the reason why it cannot begin.
func (i *Installer) PlanUninstall(ctx context.Context, o UninstallOptions) (*UninstallPlan, error) {
	if o.DeleteEnvironment && o.Data == plan.KeepData {
		return nil, report.Errorf(report.Usage, "an environment cannot be deleted while custom resources are kept in it").
			WithHint("keep the environment, or delete the data, too: %s", report.Accept("delete-data"))
	}
	p := &UninstallPlan{installer: i, o: o}
	p.Environment, p.Steps, p.Notices = o.Environment, []schema.InstallStep{}, []string{}
	p.o.Deploy.Expect = "" // it is about the whole
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	environment := []func(context.Context) error{p.planEnvironment, p.planDeactivation}
	dead, err := p.deadAPI(ctx)
	if err != nil {
		return nil, err
	}
	if dead != "" {
		slices.Reverse(environment)
		p.note("deactivation comes before the environment is deleted: " + dead + " does not answer, and no namespace is deleted completely while it is there")
	}
	for _, plan := range slices.Concat([]func(context.Context) error{p.planRemoval}, environment, []func(context.Context) error{p.planUnimport, p.planHost, p.planUntrust}) {
		if err = plan(ctx); err != nil {
			return nil, err
		}
	}
	p.Digest = digestOf(p.Uninstallation)
	return p, checkExpected(o.Deploy.Expect, p.Digest)
}

// Empty reports whether no step is left to do.
func (p *UninstallPlan) Empty() bool { return !anyPlanned(p.Steps) }

// Run does the planned steps. Their states report how far it came, also when there is an error.
func (p *UninstallPlan) Run(ctx context.Context) error {
	return runSteps(ctx, p.installer.Host.Sink, p.Steps, p.run)
}

// Confirmation returns the question to ask before it is run. Data is deleted when a name was typed.
func (p *UninstallPlan) Confirmation() report.Confirmation {
	if p.o.Data != plan.DeleteData {
		return report.Confirmation{Question: "Uninstall this"}
	}
	name := p.Environment
	if len(p.leaving) == 1 {
		name = p.leaving[0].solution
	}
	return report.Confirmation{Question: "Every custom resource of it will be deleted", Name: name}
}

// add adds a step. One that is done has nothing to run.
func (p *UninstallPlan) add(s schema.InstallStep, run func(context.Context) error) {
	p.Steps, p.run = append(p.Steps, s), append(p.run, run)
}

// note adds notices that are not there yet: a plan and its run have most of them in common.
func (p *UninstallPlan) note(texts ...string) {
	for _, text := range texts {
		if !slices.Contains(p.Notices, text) {
			p.Notices = append(p.Notices, text)
		}
	}
}

// find finds out where the named Solutions are.
func (p *UninstallPlan) find(ctx context.Context) error {
	imports, err := p.installer.Deployer.Records.Imports(ctx)
	if err != nil {
		return err
	}
	for _, name := range p.o.Names {
		at, err := identify(name)
		if err != nil {
			return err
		}
		l := &leaving{solution: at.Solution, version: at.Version}
		if slices.ContainsFunc(p.leaving, func(other *leaving) bool { return other.solution == l.solution }) {
			return report.Errorf(report.Usage, "Solution %s is named twice", l.solution).WithHint("name it once, without a version for all of them")
		}
		if err := p.locate(ctx, l, imports); err != nil {
			return err
		}
		p.leaving = append(p.leaving, l)
	}
	return p.sort(ctx)
}

// identify returns what an argument names: an archive by its file, or by its id when there is no such file; else a Solution.
func identify(name string) (schema.SolutionAt, error) {
	at, full := host.UnimportOptions{Archive: name}.At()
	isFile := strings.ContainsRune(name, os.PathSeparator) || strings.HasSuffix(name, ".iso")
	if !isFile {
		if !full {
			at = schema.SolutionAt{Solution: name}
		}
		return at, nil
	}
	manifest, err := archive.Identify(name)
	switch {
	case err == nil:
		return schema.SolutionAt{Solution: manifest.Metadata.Name, Version: manifest.Spec.Version}, nil
	case errors.Is(err, fs.ErrNotExist) && full: // the name that 'build' gives
		return at, nil
	case errors.Is(err, fs.ErrNotExist):
		return at, report.Errorf(report.NotFound, "%w", err).WithHint("name the Solution instead of its archive")
	}
	return at, err
}

// locate finds out where a Solution is deployed, active and imported.
func (p *UninstallPlan) locate(ctx context.Context, l *leaving, imports []schema.Import) error {
	deployed, err := p.installer.Deployer.Records.Deployments(ctx, l.solution)
	if err != nil {
		return err
	}
	for _, there := range deployed {
		if there.Environment == p.Environment {
			l.here = append(l.here, there)
		} else {
			l.others = append(l.others, there)
		}
	}
	if l.version != "" && len(l.here) > 0 && !slices.ContainsFunc(l.here, func(there records.Deployment) bool { return there.Version == l.version }) {
		return report.Errorf(report.Usage, "environment %s has version %s of %s, not %s", p.Environment, l.here[0].Version, l.solution, l.version).
			WithHint("name the Solution, to uninstall all of its versions: %s", report.Run("deploy uninstall", l.solution).With("env", p.Environment))
	}
	if l.active, err = p.installer.Deployer.Records.Active(ctx, l.solution); err != nil {
		return err
	}
	entries, err := p.installer.Host.Store.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries { // ordered by version
		if e.Name == l.solution && (l.version == "" || l.version == e.Version) {
			l.versions = append(l.versions, e.Version)
		}
	}
	for _, i := range imports {
		if i.Name == l.solution && (l.version == "" || l.version == i.Version) && !slices.Contains(l.versions, i.Version) {
			return report.Errorf(report.Refused, "%s was imported on another host, by %s", i.ID(), i.ImportedBy).WithHint("run the command on the host that has %s", i.Archive.Path)
		}
	}
	if len(l.here)+len(l.others)+len(l.versions) == 0 && l.active == "" {
		p.note("no version of Solution " + l.solution + " is imported, active or deployed")
	}
	return nil
}
