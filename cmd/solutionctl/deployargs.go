package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// argument is an argument of a command that MetalK8s' solutions.sh takes as a flag; both are understood.
type argument struct {
	name     string // as in the usage: ENVIRONMENT
	flags    []string
	optional bool
}

// shorthands are the short forms that solutions.sh has for its flags.
var shorthands = map[string]string{"name": "n", "solution": "s", "version": "V", "archive": "a"}

// takesArguments makes a command take its arguments by position or by flag. The returned function puts them in the order
// of the list, "" for what was left out.
func takesArguments(cmd *cobra.Command, arguments ...argument) func(args []string) []string {
	values := make([]string, len(arguments))
	for i, one := range arguments {
		for _, flag := range one.flags {
			cmd.Flags().StringVarP(&values[i], flag, shorthands[flag], "", "the same as the argument "+one.name)
			if err := cmd.Flags().MarkHidden(flag); err != nil {
				panic(err) // the flag was added above
			}
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
	return func(args []string) []string {
		all, err := merge(args)
		if err != nil {
			panic(err) // cmd.Args has accepted them
		}
		return all
	}
}
