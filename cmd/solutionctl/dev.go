package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/deploy"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

func newDevCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev [PROJECT] --env ENVIRONMENT",
		Short: "Build a project, deploy it and follow its log, on each change",
		Long: `Build the project in a directory, deploy it in an environment of a site with one host and follow its log: what
'solutionctl build' and 'solutionctl deploy install' do, in one command for the developer of a Solution. Without PROJECT, it is the
project in the current directory. With --watch, each change of the project or of its local images is deployed. A mistake is shown,
and the next change starts again. Ctrl-C ends it.

Each round has a version of its own, such as 1.2.0-dev.20260102150405.c0a1b2c3d: the version in solution.yaml, the time and a digest
of the content. So each round is an upgrade, and a project that has not changed stays as it is. Versions of earlier rounds that nothing uses
are unimported. Development versions come before the release of the same number: raise spec.version after a release.

The archives are signed, as the site demands it of all others. Without --sign-key the key is dev.key beside your configuration
file, which the first round makes without a password: use it for sites of developers only. Where it is not trusted yet, you
confirm its fingerprint once, as part of the plan.

The plan is confirmed where it does more than a further round: when it changes this host, trusts the key, makes the environment,
asks for powers that were not approved, or replaces a release.`,
		Example: `  solutionctl dev example-solution --env test --watch
  solutionctl dev --env test --logs=false --yes`,
		Args: cli.OptionalArgs(nil, "PROJECT"),
	}
	w := &projectBuilder{app: a}
	flags := cmd.Flags()
	flags.StringVar(&w.flags.signing.key, "sign-key", "", "sign the archives with this key, a `FILE` (default dev.key beside the configuration file)")
	w.flags.signing.addPassword(cmd)
	flags.StringArrayVar(&w.flags.mirrors, "mirror", nil, "try another registry first: `REGISTRY=ENDPOINT`; may be repeated")
	flags.StringArrayVar(&w.flags.plainHTTP, "plain-http", nil, "ask this registry without TLS: `HOST[:PORT]`; may be repeated")
	flags.StringVar(&w.flags.cacheDir, "cache-dir", "", "directory that keeps compressed layers from build to build")
	flags.IntVar(&w.flags.jobs, "jobs", 4, "transfers at once")
	flags.BoolVar(&w.flags.noLint, "no-lint", false, "build the project whatever lint finds in it")
	deploy.AddDevelopment(a.App, cmd, func(project string) deploy.ProjectBuilder {
		w.project = project
		return w
	})
	return cmd
}

// projectBuilder builds the archives of 'solutionctl dev'.
type projectBuilder struct {
	*app
	flags   buildFlags
	project string
	public  *key.Public // once the key was read

	resolver *oci.Resolver // of this round: what it identifies and what it builds have the same images
}

func (w *projectBuilder) State(ctx context.Context) (string, error) {
	return build.InputState(ctx, w.project)
}

func (w *projectBuilder) Identify(ctx context.Context) (at schema.SolutionAt, digest string, err error) {
	err = w.planBuild(ctx, w.flags, w.Sink, func(_ *build.Project, plan *build.Plan) error {
		at = schema.SolutionAt{Solution: plan.Solution.Metadata.Name, Version: plan.Solution.Spec.Version}
		content := sha256.New()
		if err = json.NewEncoder(content).Encode(plan.Files()); err != nil {
			return err
		}
		digest = hex.EncodeToString(content.Sum(nil))
		return nil
	})
	return at, digest, err
}

func (w *projectBuilder) EndRound() {
	if w.resolver != nil {
		_ = w.resolver.Close() // files that were only read
	}
	w.resolver = nil
}

// planBuild plans a build of the project, and calls do while what the plan reads is open.
func (w *projectBuilder) planBuild(ctx context.Context, f buildFlags, sink report.Sink, do func(*build.Project, *build.Plan) error) error {
	source, err := build.Load(w.project, f.Overrides)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // a directory that was only read
	if w.resolver == nil {
		if w.resolver, err = w.newResolver(source, f); err != nil {
			return err
		}
	}
	plan, err := w.plan(ctx, source, w.resolver, f, sink)
	if err != nil {
		return err
	}
	return do(source, plan)
}

// Key returns the public half of the signing key. The one that no flag names is made when it does not exist.
func (w *projectBuilder) Key(ctx context.Context) (*key.Public, string, error) {
	f := &w.flags.signing
	if f.key == "" {
		dir := w.ConfigDir()
		if dir == "" {
			return nil, "", report.Errorf(report.Usage, "there is no directory for a key: HOME is not set").WithHint("set HOME, or name a key with --sign-key")
		}
		f.key, f.known = filepath.Join(dir, "dev"+keyExtension), []byte{}
		if err := w.makeKey(f.key); err != nil {
			return nil, "", err
		}
	}
	name := strings.TrimSuffix(filepath.Base(f.key), keyExtension)
	if w.public != nil {
		return w.public, name, nil
	}
	if key.IsReference(f.key) {
		return nil, "", report.Errorf(report.Usage, "--sign-key %s: a round has no time for a key outside this host", f.key).WithHint("make one for development: %s", "solutionctl keygen dev")
	}
	if err := w.offerKey(ctx, f); err != nil {
		return nil, "", err
	}
	if f.known == nil {
		known, err := w.password(ctx, *f, false)
		if err != nil {
			return nil, "", err
		}
		f.known = known // each round signs with it
	}
	signer, err := w.load(ctx, *f)
	if err != nil {
		return nil, "", err
	}
	w.public = signer.Public()
	return w.public, name, nil
}

// makeKey makes a key pair without a password, unless the file exists.
func (w *projectBuilder) makeKey(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pair, err := key.Generate(nil)
	if err == nil {
		err = durable.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = pair.Write(strings.TrimSuffix(file, keyExtension))
	}
	if err == nil {
		w.Sink.Emit(report.Event{Step: "key", Name: file, State: report.Done, Note: "new, without a password: for development only"})
	}
	return err
}

func (w *projectBuilder) Build(ctx context.Context, version, dir string, signed bool) (string, error) {
	f := w.flags
	f.Version, f.to = version, dir
	f.volumeID = version[strings.LastIndex(version, "dev."):] // names and development versions do not fit
	if !signed {
		f.signing = keyFlags{}
	}
	var path string
	err := w.planBuild(ctx, f, report.Discard, func(source *build.Project, plan *build.Plan) error {
		if err := w.beforeBuild(ctx, source, w.project, &f); err != nil {
			return err
		}
		summary, err := w.write(ctx, product{plan: plan}, f)
		if err == nil {
			path = summary.Path
		}
		return err
	})
	return path, err
}
