package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// ProjectBuilder builds the archives of a project while it is developed.
type ProjectBuilder interface {
	// State changes when a local file changes that a build reads.
	State(ctx context.Context) (string, error)
	// Identify returns the name and version in solution.yaml, and a digest of what the archive would hold.
	Identify(ctx context.Context) (at schema.SolutionAt, digest string, err error)
	// Key returns the key by which the archives are signed, and its name in a trust store.
	Key(ctx context.Context) (public *key.Public, name string, err error)
	// Build checks the project, and writes a version of it into a directory: signed, unless that is left out.
	Build(ctx context.Context, version, dir string, signed bool) (archive string, err error)
	// EndRound closes the images that Identify and Build have read. The next round reads them again.
	EndRound()
}

// pollInterval is how often a project is looked at for changes. One that changes is built when it has been the same for so long.
const pollInterval = 300 * time.Millisecond

// AddDevelopment makes cmd the command that builds a project, deploys it and follows its log. Its argument is the project, which open
// opens.
func AddDevelopment(a *cli.App, cmd *cobra.Command, open func(project string) ProjectBuilder) {
	d := &development{installation: newInstallation(a, cmd)}
	flags := cmd.Flags()
	flags.BoolVarP(&d.watch, "watch", "w", false, "do it again on each change of the project, until interrupted")
	flags.BoolVar(&d.logs, "logs", true, "follow the log of what was deployed until interrupted")
	flags.Lookup("insecure-skip-verify").Usage = "do not sign, and import without a trusted signature, if the policy allows it"
	for _, name := range []string{"key", "bundle", "in-place"} { // of archives of others
		cli.Must(flags.MarkHidden(name))
	}
	d.wait = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d.ProjectBuilder = open(append(args, ".")[0])
		return d.develop(cmd.Context())
	}
}

// development is a run of 'dev'.
type development struct {
	*installation
	ProjectBuilder
	watch, logs bool
}

func (d *development) develop(ctx context.Context) error {
	if d.watch {
		return d.watchProject(ctx)
	}
	solution, err := d.round(ctx)
	if err != nil || !d.logs {
		return err
	}
	return d.follow(ctx, solution)
}

// watchProject does a round for each state of the project. What fails is shown, and mended by the next change.
func (d *development) watchProject(ctx context.Context) error {
	_, _, err := d.Identify(ctx)
	d.EndRound()
	if report.CodeOf(err) == report.Usage {
		return err // there is no project
	}
	for ctx.Err() == nil {
		state, err := d.State(ctx)
		if err != nil {
			break // it ends with ctx only
		}
		d.RenewSink()
		d.watchState(ctx, state)
	}
	return nil
}

// watchState does a round, and returns when the project is in another state: also in the middle of the round, because what
// is deployed may never become ready.
func (d *development) watchState(ctx context.Context, state string) {
	here, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		d.awaitChange(here, state)
		cancel()
	}()
	solution, err := d.round(here)
	if err == nil && d.logs {
		err = d.follow(here, solution)
	}
	if here.Err() == nil {
		if err != nil {
			d.PrintFailure(err)
		}
		fmt.Fprintln(d.Err.Text(), "waiting for a change of the project; Ctrl-C ends")
	}
	<-changed
	d.Sink.Close() // what was interrupted may have bars on the screen
	if ctx.Err() == nil {
		fmt.Fprintln(d.Err.Text(), "the project has changed")
	}
}

// awaitChange returns when the project is in another state and has not changed since the last look, or when ctx ends.
func (d *development) awaitChange(ctx context.Context, state string) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := state
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := d.State(ctx)
		if err != nil || now != state && now == last {
			return
		}
		last = now
	}
}

// round builds the project, and takes the archive to where it runs. It returns the name of the Solution.
func (d *development) round(ctx context.Context) (solution string, err error) {
	defer d.EndRound()
	at, digest, err := d.Identify(ctx)
	if err != nil {
		return "", err
	}
	installer, o, err := d.prepare(nil)
	if err != nil {
		return "", err
	}
	version, err := installer.DevelopmentVersion(ctx, at.Solution, at.Version, digest, d.Now())
	if err != nil {
		return "", err
	}
	signed := !d.imports.SkipVerify
	if signed && o.Key == nil {
		if o.Key, o.KeyName, err = d.Key(ctx); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp("", "solutionctl-dev-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	archive, err := d.Build(ctx, version, dir, signed)
	if err != nil {
		return "", err
	}
	o.Import.Archives = []string{archive}
	return at.Solution, d.deploy(ctx, installer, o, schema.SolutionAt{Solution: at.Solution, Version: version})
}

// deploy does what 'deploy install' does, and unimports earlier versions that nothing uses. The version before is in use until its
// successor runs, and goes with the next round: operators are configured with all imported versions, and start again when one goes.
func (d *development) deploy(ctx context.Context, installer *install.Installer, o install.Options, at schema.SolutionAt) error {
	planned, err := installer.Plan(ctx, o)
	if err != nil {
		return hintAtVersion(err, at)
	}
	ask, err := d.mustConfirm(ctx, installer, planned, at.Solution)
	if err == nil && ask {
		err = d.confirmPlan(ctx, planned)
	}
	if err != nil {
		return d.explain(err)
	}
	if !planned.Empty() {
		removed, err := installer.RemoveDevelopment(ctx, at.Solution, at.Version)
		if err != nil {
			return err
		}
		if len(removed) > 0 {
			planned.Notices = append(planned.Notices, "unimported: "+strings.Join(removed, ", "))
		}
	}
	return d.finish(planned, planned.Run(ctx))
}

// mustConfirm reports whether a plan has more than a further round of development has: it changes the host, whose keys are
// trusted or what can be done to the cluster, makes an environment, or replaces a release.
func (d *development) mustConfirm(ctx context.Context, installer *install.Installer, planned *install.Plan, solution string) (bool, error) {
	if planned.Empty() {
		return false, nil
	}
	usual := []string{"import", "activate", "deploy"}
	if len(planned.Unapproved()) > 0 || slices.ContainsFunc(planned.Steps, func(s schema.InstallStep) bool {
		return s.State == schema.StepPlanned && !slices.Contains(usual, s.Step)
	}) {
		return true, nil
	}
	return installer.ReplacesRelease(ctx, solution)
}

// hintAtVersion adds what a developer does about a version that is not higher than the imported ones.
func hintAtVersion(err error, at schema.SolutionAt) error {
	if report.CodeOf(err) != report.Downgrade {
		return err
	}
	return report.Errorf(report.Downgrade, "%w", err).
		WithHint("raise spec.version in solution.yaml: development versions such as %s come before the release of the same number", at.Version)
}

// follow shows the log of a Solution until ctx ends.
func (d *development) follow(ctx context.Context, solution string) error {
	view := &logsView{clusterFlags: d.clusterFlags}
	view.o.Environment, view.o.Solution, view.o.Follow, view.o.Tail = d.environment, solution, true, defaultTail
	if err := view.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
