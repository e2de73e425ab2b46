package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// addAllow adds the flag that approves of what a Solution can do. It is completed with what the plan of a request about the arguments asks
// for, or where about is nil with the names of all powers.
func (f *verbFlags) addAllow(cmd *cobra.Command, about func(args []string) deployer.Request) {
	cmd.Flags().StringSliceVar(&f.common.Allow, "allow", nil,
		"approve of this power, or of that of one object: `POWER[:KIND/NAME]`, as the plan names it; what a later version can do in addition asks again (may be repeated)")
	cli.Must(cmd.RegisterFlagCompletionFunc("allow", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if about == nil {
			begin := strings.LastIndex(prefix, ",") + 1
			var names []string
			for _, name := range schema.PowerNames() {
				names = append(names, prefix[:begin]+string(name))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		return f.completeList(cmd, prefix, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
			r := about(args)
			r.DryRun = true
			planned, err := f.deployerOn(c).Perform(ctx, r)
			if err != nil {
				return nil, err
			}
			return (&plan.PowersError{Powers: planned.Unapproved()}).Allowances(), nil
		})
	}))
}

// askPowers asks a person to approve powers, and allows them in the options of the next run. --yes does not approve them.
func (f *verbFlags) askPowers(ctx context.Context, refusal error, options any) (again bool, err error) {
	missing, asks := errors.AsType[*plan.PowersError](refusal)
	o, takes := options.(interface{ Approve(list []schema.Power) })
	if !asks || !takes || !f.Interactive || !missing.CanBeApproved() {
		return false, nil
	}
	if r, isRequest := options.(*deployer.Request); isRequest {
		f.printConsequencesOf(ctx, *r)
	}
	fmt.Fprintln(f.Err, "Not approved yet. It asks for the powers to:")
	for _, line := range powers.Describe(missing.Powers) {
		fmt.Fprintf(f.Err, "  %s\n", console.Clean(line))
	}
	answer, err := f.Ask(ctx, "Approve of it? [y/N] ")
	if err != nil {
		return false, err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return false, report.Errorf(report.Cancelled, "not approved; nothing was changed")
	}
	o.Approve(missing.Powers)
	return true, nil
}

// byOption returns the options that approve powers on the command line.
func byOption(list []schema.Power) string { return plan.Approving(list).String() }

// printPowers prints what the objects of a plan can do to the cluster, and how to approve the powers that need it.
func printPowers(w *console.Stream, o *schema.Operation, approve func([]schema.Power) string) {
	var approved []schema.Power
	for _, p := range o.Powers {
		if p.Approved {
			approved = append(approved, p.Power)
		}
	}
	printLines(w, console.Faint, "approved powers:", powers.Summarize(approved))
	printUnapproved(w, o.Unapproved(), approve)
}

// printUnapproved prints powers that are not approved, and how to approve them.
func printUnapproved(w *console.Stream, list []schema.Power, approve func([]schema.Power) string) {
	printLines(w, console.Red, "powers that are NOT APPROVED:", powers.Summarize(list))
	if len(list) > 0 {
		fmt.Fprintf(w, "to approve: %s\n", console.Clean(approve(list)))
	}
}

func printLines(w *console.Stream, style console.Style, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintln(w, w.Paint(style, title))
	}
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", console.Clean(line))
	}
}
