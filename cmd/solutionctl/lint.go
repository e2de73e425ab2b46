package main

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lintFlags are the flags of 'solutionctl lint'.
type lintFlags struct {
	lint.Request
	failOn, explain, why string
	rules, all           bool
}

func newLintCommand(a *app) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint [PATH...]",
		Short: "Check projects and archives for mistakes",
		Long: `Judge whether Solutions follow the requirements. A PATH is a project, an archive, or a directory with the content of
an archive; without one, it is the project in the current directory. A project is judged as the archive that would be
built of it.

Every finding names a rule; --explain describes a rule and its reason. A finding is suppressed beside the object: by a
comment '# solutionctl:ignore SOL123 reason' on the line or above the field, or by the annotation
lint.solutionctl.io/ignore with 'SOL123: reason'. The section lint of solution.yaml holds the settings
of a project: failOn, enable, disable and kubernetesVersion; flags go before it.

Layers are not read unless --deep is given, so this takes milliseconds whatever the size. With --deep, images of a project
in docker-archive: and oci-archive: files are read as well. Images in registries and those of the Docker daemon never are:
a note names them; build the project and judge the archive.`,
		Example: `  solutionctl lint example-solution
  solutionctl lint --deep --against example-solution-1.0.0.iso example-solution-1.1.0.iso
  solutionctl lint --explain SOL205`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.judge(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	cli.AddChoice(cmd, flags, &a.Output, "output", "o", "format of the result", "text", "json", "yaml", "sarif", "github")
	flags.StringVar(&f.failOn, "fail-on", "", "lowest `severity` that makes the command fail: error (default) or warning")
	flags.StringSliceVar(&f.Enable, "enable", nil, "apply these rules or groups: `ID|GROUP`")
	flags.StringSliceVar(&f.Disable, "disable", nil, "do not apply these rules or groups: `ID|GROUP`")
	flags.StringVar(&f.KubernetesVersion, "kubernetes-version", "", "check for this `VERSION` of Kubernetes, instead of those that the manifest allows")
	flags.StringVar(&f.Against, "against", "", "judge the upgrade from this older `archive`, too")
	flags.BoolVar(&f.Deep, "deep", false, "read every layer and compare its digest, and open tar files with images")
	flags.BoolVar(&f.all, "all", false, "show every warning about a chart, not the first of each rule")
	flags.BoolVar(&f.Fix, "fix", false, "correct what is mechanical, in projects: missing images, namespaces, names and places of files, line ends")
	flags.StringVar(&f.why, "why", "", "show only the objects that use this `image`")
	flags.StringVar(&f.explain, "explain", "", "explain a rule by its `ID`, and nothing else")
	flags.BoolVar(&f.rules, "rules", false, "list the rules, and nothing else")
	return cmd
}

// judge does what the flags ask for; without paths it is about the project in the current directory.
func (a *app) judge(ctx context.Context, paths []string, f lintFlags) error {
	switch {
	case f.explain != "":
		return a.explainRule(f.explain)
	case f.rules:
		return a.listRules()
	case len(paths) == 0:
		paths = []string{"."}
	}
	if f.why != "" {
		return a.why(ctx, paths, f.why)
	}
	f.FailOn = report.Severity(f.failOn)
	return a.lint(ctx, paths, f.Request, f.all)
}

func (a *app) lint(ctx context.Context, paths []string, r lint.Request, all bool) error {
	// A run is short and leaves little behind: collecting garbage less often makes it a fifth faster, until there is much.
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	defer limitMemory(lintMemory)()
	judged, err := lint.Judge(ctx, paths, r)
	if err != nil {
		return err
	}
	if err := a.printLint(judged, all); err != nil || !judged.Failed {
		return err
	}
	return report.Errorf(report.Findings, "lint: %s", lintCount(judged))
}
