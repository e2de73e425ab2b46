package main

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lintFlags are the flags of `solutionctl lint`.
type lintFlags struct {
	lint.Options
	failOn, kubernetesVersion, against string
	deep, fix, rules                   bool
	explain, why                       string
}

func newLintCommand(a *app) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint [PATH...]",
		Short: "Judge projects and archives before they leave",
		Long: `Judge whether Solutions follow the requirements. A PATH is a project, an archive, or a directory with the content of
an archive; without one, it is the project in the current directory. A project is judged as the archive that would be
built of it.

Every finding names a rule; --explain tells what a rule wants and why. A finding is suppressed beside the object: by a
comment '# solutionctl:ignore SOL123 reason' on the line or above the field, or by the annotation
lint.solutionctl.io/ignore with 'SOL123: reason'. The section lint of solution.yaml holds the settings
of a project: failOn, enable, disable and kubernetesVersion; flags go before it.

Layers are not read unless --deep is given, so this takes milliseconds whatever the size.`,
		Example: `  solutionctl lint example-solution
  solutionctl lint --deep --against example-solution-1.0.0.iso example-solution-1.1.0.iso
  solutionctl lint --explain SOL205`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.explain != "":
				return a.explainRule(f.explain)
			case f.rules:
				return a.listRules()
			case len(args) == 0:
				args = []string{"."}
			}
			if f.why != "" {
				return a.why(cmd.Context(), args, f.why)
			}
			return a.lint(cmd.Context(), args, f)
		},
	}
	flags := cmd.Flags()
	addChoice(cmd, flags, &a.output, "output", "o", "format of the result", "text", "json", "sarif", "github")
	flags.StringVar(&f.failOn, "fail-on", "", "lowest `severity` that makes the command fail: error (default) or warning")
	flags.StringSliceVar(&f.Enable, "enable", nil, "apply these rules or groups: `ID|GROUP`")
	flags.StringSliceVar(&f.Disable, "disable", nil, "do not apply these rules or groups: `ID|GROUP`")
	flags.StringVar(&f.kubernetesVersion, "kubernetes-version", "", "judge for this release of Kubernetes, instead of those that the manifest allows")
	flags.StringVar(&f.against, "against", "", "judge the upgrade from this older `archive`, too")
	flags.BoolVar(&f.deep, "deep", false, "read every layer and compare its digest")
	flags.BoolVar(&f.fix, "fix", false, "correct what is mechanical, in projects")
	flags.StringVar(&f.why, "why", "", "tell what asks for this `image`, and nothing else")
	flags.StringVar(&f.explain, "explain", "", "explain a rule by its `ID`, and nothing else")
	flags.BoolVar(&f.rules, "rules", false, "list the rules, and nothing else")
	return cmd
}

func (a *app) lint(ctx context.Context, paths []string, f lintFlags) error {
	// A run is short and leaves little behind: collecting garbage less often makes it a fifth faster.
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	older, err := a.openOlder(ctx, f.against)
	if err != nil {
		return err
	}
	defer older.close()
	summary := &lintSummary{}
	for _, path := range paths {
		result, err := a.lintOne(ctx, path, older.Target, f)
		if err != nil {
			return report.Errorf(report.CodeOf(err), "%s: %w", path, err)
		}
		summary.add(*result)
	}
	if err := a.printLint(summary); err != nil || !summary.fails() {
		return err
	}
	return report.Errorf(report.Findings, "lint: %s", summary.count())
}
