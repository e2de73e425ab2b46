package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// argument is an argument of a command that MetalK8s' solutions.sh takes as a flag; both are understood.
type argument struct {
	name     string // as in the usage: ENVIRONMENT
	flags    []string
	optional bool
}

// The arguments of the verbs.
var (
	environmentArgument = argument{name: "ENVIRONMENT", flags: []string{"name", "environment"}}
	solutionArgument    = argument{name: "SOLUTION", flags: []string{"solution"}} // in an environment
	solutionAlone       = argument{name: "SOLUTION", flags: []string{"name"}}
	versionArgument     = argument{name: "VERSION", flags: []string{"version"}}
)

// orNone is the argument where it may be left out.
func (a argument) orNone() argument {
	a.optional = true
	return a
}

// usage is the argument as a usage line has it.
func (a argument) usage() string {
	if a.optional {
		return "[" + a.name + "]"
	}
	return a.name
}

// shorthands are the short forms that solutions.sh has for its flags.
var shorthands = map[string]string{"name": "n", "solution": "s", "version": "V", "archive": "a"}

// takesArguments makes a command take its arguments by position or by flag, and run with them: in the order of the list, ""
// for an argument that was left out.
func takesArguments(cmd *cobra.Command, run func(context.Context, []string) error, complete cobra.CompletionFunc, arguments ...argument) {
	cmd.ValidArgsFunction = complete
	values := make([]string, len(arguments))
	for i, one := range arguments {
		for _, flag := range one.flags {
			shorthand := shorthands[flag]
			if cmd.Flags().ShorthandLookup(shorthand) != nil { // -n is the namespace where solutions.sh has no such command
				shorthand = ""
			}
			cmd.Flags().StringVarP(&values[i], flag, shorthand, "", "the same as the argument "+one.name)
			cli.Must(cmd.Flags().MarkHidden(flag))
		}
	}
	merge := func(args []string) ([]string, error) {
		all := make([]string, len(arguments))
		for i, one := range arguments {
			switch {
			case values[i] != "":
				all[i] = values[i]
			case len(args) > 0:
				all[i], args = args[0], args[1:]
			case !one.optional:
				return nil, fmt.Errorf("argument %s is missing", one.name)
			}
		}
		if len(args) > 0 {
			return nil, fmt.Errorf("unexpected argument %q", args[0])
		}
		return all, nil
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		_, err := merge(args)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := merge(args)
		if err != nil {
			return err
		}
		return run(cmd.Context(), all)
	}
}
