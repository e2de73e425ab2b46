// Package settings lets every flag of a command also be set in the environment and in a configuration file.
//
// A setting is a flag. Its value comes from the command line; else the environment variable SOLUTIONCTL_<COMMAND>_<FLAG> or
// SOLUTIONCTL_<FLAG>; else the key of that name in the configuration file; else the flag's default. Start with [New], call
// [Settings.Apply] for the command that is about to run and, to show everything, [Settings.List].
//
// The file is YAML. Its keys are names of flags; a mapping under a command's name holds settings of that command only:
//
//	progress: plain
//	build:
//	  platform: [linux/amd64, linux/arm64]
//
// The file is read strictly: a key that no command knows is an error and so is a value of the wrong type, because a
// setting that is silently ignored is worse than a command that does not run. Environment variables without a flag are
// ignored: others may set them, as Kubernetes does for a Service called "solutionctl". An empty variable counts as
// unset.
//
// A flag that accepts a loss or a risk is not a setting: see [CommandLineOnly].
package settings

import (
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Kind is a kind of place that values come from.
type Kind string

// The places, the strongest first.
const (
	Flag        Kind = "flag"
	Environment Kind = "environment"
	File        Kind = "file"
	Default     Kind = "default"
)

// Setting is the value of one flag and where it came from. Origin is the exact place: "--output", "SOLUTIONCTL_OUTPUT",
// "/etc/solutionctl/config.yaml:3", "default".
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source Kind   `json:"source"`
	Origin string `json:"origin"`
}

// FileFlag is the name of the flag, defined by the root command, that names the configuration file. It cannot be set
// in the file itself.
const FileFlag = "config"

// commandLineOnly is the annotation of flags that are not settings.
const commandLineOnly = "solutionctl.io/command-line-only"

// CommandLineOnly makes flags take their values from the command line alone: neither a variable nor the file sets them. It is for
// what a user has to mean each time: what accepts a loss or a risk, such as a key that counts instead of those of the trust store.
func CommandLineOnly(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, commandLineOnly, nil); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// IsSetting reports whether a flag can be set by a variable and in the file.
func IsSetting(flag *pflag.Flag) bool {
	return !isCommandLineOnly(flag) && !flag.Hidden && flag.Name != "help"
}

func isCommandLineOnly(flag *pflag.Flag) bool {
	_, only := flag.Annotations[commandLineOnly]
	return only
}

// Settings applies the environment and the file to the flags of a tree of commands.
type Settings struct {
	root     *cobra.Command
	whole    func() *cobra.Command // nil: root is
	getenv   func(string) string
	fallback string // the file that is read, if it exists, unless FileFlag names another
	file     file   // nil until it is read
	applied  map[*pflag.Flag]Setting
}

// New returns the settings of the commands below root. If root has only some of the commands, whole makes a tree with all of them, because the
// file may have settings for each; otherwise it is nil. The default file need not exist; "" is none.
func New(root *cobra.Command, whole func() *cobra.Command, getenv func(string) string, defaultFile string) *Settings {
	return &Settings{root: root, whole: whole, getenv: getenv, fallback: defaultFile, applied: map[*pflag.Flag]Setting{}}
}

// Apply sets the flags of cmd, its own and those it inherits, that the command line did not set. The environment is
// applied even when the file turns out to be bad, so that the complaint appears in the form that the user asked for.
func (s *Settings) Apply(cmd *cobra.Command) error {
	var problems []error
	for owner := range commandPath(cmd) {
		problems = append(problems, s.applyEnvironment(owner))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	for owner := range commandPath(cmd) {
		problems = append(problems, s.applyFile(owner))
	}
	return errors.Join(problems...)
}

// Given reports whether the command line sets a flag.
func (s *Settings) Given(flag *pflag.Flag) bool {
	_, applied := s.applied[flag]
	return flag.Changed && !applied
}

// List applies the settings to every command and returns them all: those of the root command first, then command by
// command, ordered by name.
func (s *Settings) List() ([]Setting, error) {
	var list []Setting
	var problems []error
	for cmd := range tree(s.root) {
		problems = append(problems, s.Apply(cmd))
		for flag := range ownFlags(cmd) {
			list = append(list, s.setting(cmd, flag))
		}
	}
	return list, errors.Join(problems...)
}

func (s *Settings) setting(owner *cobra.Command, flag *pflag.Flag) Setting {
	setting, ok := s.applied[flag]
	switch {
	case ok:
	case s.Given(flag):
		setting = Setting{Source: Flag, Origin: "--" + flag.Name}
	default:
		setting = Setting{Source: Default, Origin: "default"}
	}
	setting.Key = strings.Join(append(path(owner), flag.Name), ".")
	setting.Value = flag.Value.String()
	return setting
}

// Variables returns the names of the environment variables of a flag that owner defines, the strongest first.
func Variables(owner *cobra.Command, flag string) []string {
	name := func(parts ...string) string {
		return "SOLUTIONCTL_" + strings.ToUpper(strings.ReplaceAll(strings.Join(parts, "_"), "-", "_"))
	}
	if names := path(owner); len(names) > 0 {
		return []string{name(append(names, flag)...), name(flag)}
	}
	return []string{name(flag)}
}

func (s *Settings) applyEnvironment(owner *cobra.Command) error {
	var problems []error
	for flag := range ownFlags(owner) {
		for _, variable := range Variables(owner, flag.Name) {
			value := s.getenv(variable)
			if flag.Changed || value == "" {
				continue
			}
			if err := flag.Value.Set(value); err != nil {
				problems = append(problems, report.Errorf(report.Usage, "environment variable %s: %q: %w", variable, value, err))
				continue
			}
			s.record(flag, Environment, variable)
		}
	}
	return errors.Join(problems...)
}

func (s *Settings) applyFile(owner *cobra.Command) error {
	var problems []error
	for flag := range ownFlags(owner) {
		entry, ok := s.file.lookup(path(owner), flag.Name)
		if flag.Changed || !ok || flag.Name == FileFlag {
			continue
		}
		if err := entry.set(flag.Value); err != nil {
			problems = append(problems, report.Errorf(report.Invalid, "%s: %s: %w", entry.position, flag.Name, err))
			continue
		}
		s.record(flag, File, entry.position)
	}
	return errors.Join(problems...)
}

// record marks a flag as set, which also satisfies a command that requires it.
func (s *Settings) record(flag *pflag.Flag, source Kind, origin string) {
	flag.Changed = true
	s.applied[flag] = Setting{Source: source, Origin: origin}
}

// load reads the file once. Only a file that was asked for has to exist.
func (s *Settings) load() error {
	if s.file != nil {
		return nil
	}
	name := s.fallback
	if flag := s.root.PersistentFlags().Lookup(FileFlag); flag != nil && flag.Changed {
		name = flag.Value.String()
	}
	data, err := read(name)
	if errors.Is(err, fs.ErrNotExist) && name == s.fallback {
		s.file = file{}
		return nil
	}
	if err != nil {
		return report.Errorf(report.Failure, "read the configuration: %w", err)
	}
	all := s.root
	if s.whole != nil {
		all = s.whole()
	}
	s.file, err = parse(name, data, all)
	return err
}

// commandPath returns a command's ancestors, the root first, and the command itself.
func commandPath(cmd *cobra.Command) iter.Seq[*cobra.Command] {
	var commands []*cobra.Command
	for ; cmd != nil; cmd = cmd.Parent() {
		commands = append(commands, cmd)
	}
	slices.Reverse(commands)
	return slices.Values(commands)
}

// tree returns a command and all those below it.
func tree(root *cobra.Command) iter.Seq[*cobra.Command] {
	commands := []*cobra.Command{root}
	for _, child := range root.Commands() {
		commands = slices.AppendSeq(commands, tree(child))
	}
	return slices.Values(commands)
}

// path returns the names that lead to a command, without that of the root.
func path(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// ownFlags returns the flags that cmd itself defines and that are settings, in the order of their names.
func ownFlags(cmd *cobra.Command) iter.Seq[*pflag.Flag] {
	var flags []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if IsSetting(flag) {
			flags = append(flags, flag)
		}
	})
	return slices.Values(flags)
}
