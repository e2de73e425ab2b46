package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/start"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Prepare adds to a command line what all commands share: the global flags, the settings and the sink of a run, and errors instead of usage
// texts. If root has only some of the commands, whole makes all of them; otherwise it is nil.
func (a *App) Prepare(root *cobra.Command, whole func() *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.DisableSuggestions = true // NewGroup makes them a hint
	root.SetFlagErrorFunc(suggestFlag)
	a.refuseHelpOfUnknown(root)
	root.CompletionOptions.DisableDefaultCmd = true
	a.addGlobalFlags(root)
	a.Settings = settings.New(root, whole, a.Getenv, defaultConfigFile(runtime.GOOS, os.Geteuid(), a.Getenv))
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.setUp(cmd) }
	a.watch(root)
}

// watch makes every command below cmd set [App].started when its own code is called, and refuse arguments unless it states which it takes.
func (a *App) watch(cmd *cobra.Command) {
	if work := cmd.RunE; work != nil && !cmd.HasSubCommands() {
		if cmd.Args == nil {
			cmd.Args = ExactArgs()
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			start.End()
			return work(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		a.watch(child)
	}
}

// refuseHelpOfUnknown makes --help after a name that a group does not know an error, as the name is without it.
func (a *App) refuseHelpOfUnknown(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if names := cmd.Flags().Args(); cmd.HasSubCommands() && len(names) > 0 {
			a.unhelpful = unknownCommand(cmd, names[0])
			return
		}
		var text strings.Builder
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(nil)
		_ = a.Out.WriteWrapped(text.String(), root.Name()+" ") // as cobra does, it ignores what becomes of a help text
	})
}

// suggestFlag adds the flag that an unknown one is most likely a misspelling of.
func suggestFlag(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := report.Nearest(unknown.GetSpecifiedName(), names)
	if near == "" {
		return err
	}
	return report.Errorf(report.Usage, "%w", err).WithHint("did you mean --%s?", near)
}

// Execute runs one command line and returns the exit status.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = a.unhelpful
	}
	if a.Sink == nil {
		// The command line was wrong before the settings were read; they still say how to complain. What is wrong with
		// the settings themselves can wait.
		_ = a.setUp(cmd)
	}
	a.Sink.Close()
	if err == nil {
		return 0
	}
	failure := a.classify(err, named(cmd))
	if failure.Code == report.Usage && failure.Hint == "" && len(report.Hints(err)) == 0 {
		failure.Hint = fmt.Sprintf("'%s --help' shows how to use it", cmd.CommandPath())
	}
	a.printError(failure)
	return failure.Code.ExitStatus()
}

// setUp applies the settings to the flags of cmd and makes the sink. There is a sink afterwards even if it fails.
func (a *App) setUp(cmd *cobra.Command) error {
	err := a.Settings.Apply(cmd)
	a.RenewSink()
	return err
}

// RenewSink makes the sink for the progress of a command, or of the next round of one that has several results: a result closes it.
func (a *App) RenewSink() {
	mode := console.Mode(a.progress)
	if a.quiet {
		mode = console.None
	}
	a.Sink = console.NewSink(mode, a.Err, console.Options{Verbose: a.Verbose, Now: a.Now})
}

// named are the texts of a command line, which may be names of files.
func named(cmd *cobra.Command) []string {
	names := cmd.Flags().Args()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			names = append(names, list.GetSlice()...)
		} else {
			names = append(names, f.Value.String())
		}
	})
	return names
}
