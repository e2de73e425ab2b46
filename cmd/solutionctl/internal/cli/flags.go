package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
)

// addGlobalFlags adds the flags that every command understands.
func (a *App) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.SortFlags = false
	AddChoice(root, flags, &a.Output, "output", "o", "format of the result", "text", "json", "yaml")
	AddChoice(root, flags, &a.progress, "progress", "", "how progress is shown on standard error", console.Modes()...)
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "show no progress, only errors")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "say more about what is done and why it failed")
	flags.BoolVarP(&a.Yes, "yes", "y", false, "answer every question with yes")
	flags.StringVar(&a.config, settings.FileFlag, "", "read settings from `FILE`; see 'solutionctl config --help'")
}

// AddChoice adds a flag that takes one of a few values, the first of which is its default, and that completes them.
func AddChoice(cmd *cobra.Command, flags *pflag.FlagSet, target *string, name, short, usage string, choices ...string) {
	*target = choices[0]
	value := choice{value: target, choices: choices}
	flags.VarP(value, name, short, usage)
	complete := cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	Must(cmd.RegisterFlagCompletionFunc(name, complete))
}

// FlagsAddedBy returns the flags that add adds.
func FlagsAddedBy(flags *pflag.FlagSet, add func()) (added []*pflag.Flag) {
	before := map[*pflag.Flag]bool{}
	flags.VisitAll(func(f *pflag.Flag) { before[f] = true })
	add()
	flags.VisitAll(func(f *pflag.Flag) {
		if !before[f] {
			added = append(added, f)
		}
	})
	return added
}

// Must panics on the error of a call that only fails for a flag which does not exist.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// IfChanged returns the value of a flag, nil unless the flag was set.
func IfChanged[T any](flags *pflag.FlagSet, name string, value *T) *T {
	if flags.Changed(name) {
		return value
	}
	return nil
}

// pathNames are the words by which the usage of a flag names a path.
var pathNames = []string{"FILE", "DIRECTORY", "PATH"}

// MakeAbsolute makes the paths in flags absolute, as a service needs them. Empty paths stay empty.
func MakeAbsolute(flags *pflag.FlagSet) error {
	var problems []error
	flags.VisitAll(func(f *pflag.Flag) {
		if name, _ := pflag.UnquoteUsage(f); !slices.Contains(pathNames, name) {
			return
		}
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			path, err := Absolute(f.Value.String())
			problems = append(problems, err, f.Value.Set(path))
			return
		}
		paths := list.GetSlice()
		for i := range paths {
			var err error
			paths[i], err = Absolute(paths[i])
			problems = append(problems, err)
		}
		problems = append(problems, list.Replace(paths))
	})
	return errors.Join(problems...)
}

// Absolute returns an absolute path, and "" for "".
func Absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// ServiceFlags makes the paths in flags absolute and returns the flags that were set, except some, as words for the command line of a
// service. Settings of a file or variable are among them, and the file of --config, which has those of other commands.
func ServiceFlags(flags *pflag.FlagSet, without ...string) ([]string, error) {
	err := MakeAbsolute(flags)
	return ChangedFlags(flags, append(without, "progress")...), err
}

// ChangedFlags returns the flags that were set, except some, as words of a command line.
func ChangedFlags(flags *pflag.FlagSet, without ...string) (words []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(without, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			words = append(words, "--"+f.Name+"="+value)
		}
	})
	return words
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value   *string
	choices []string
}

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return strings.Join(c.choices, "|") }

func (c choice) Set(value string) error {
	if !slices.Contains(c.choices, value) {
		return fmt.Errorf("want %s", strings.Join(c.choices, " or "))
	}
	*c.value = value
	return nil
}

// CompleteNames returns a completion of the arguments of a command by the names that list returns; it offers each name
// once and no files. A list that cannot be had completes nothing.
func CompleteNames(list func(cmd *cobra.Command) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		names, err := list(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
