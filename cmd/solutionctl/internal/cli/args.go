package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// ExactArgs is cobra's ExactArgs with a message that names the missing arguments.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("argument %s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// OptionalArgs takes the required arguments and then at most the optional ones.
func OptionalArgs(required []string, optional ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := append(append([]string(nil), required...), optional...)
		known := min(max(len(args), len(required)), len(names))
		return ExactArgs(names[:known]...)(cmd, args)
	}
}

// AtLeastArgs takes these arguments, and more of what the last one is.
func AtLeastArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return ExactArgs(names...)(cmd, args[:min(len(args), len(names))])
	}
}
