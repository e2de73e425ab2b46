package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newAffectedCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "affected PACKAGE@RANGE|--advisory FILE",
		Short: "Search imported versions for a package, and show where they are deployed",
		Long: `Search the images of all imported versions for a package, and exit with status 3 if one of them has it. For each such version, show the
environments and namespaces where it is deployed, and the nodes that run such an image. PACKAGE and RANGE have the form of
'solutionctl affected'. If a version cannot be searched and no other one has the package, the exit status is 1.

The command reads the archives of this host. The first question lists the packages of each archive, which reads all of its layers; the list
is kept in the store, so that later questions take a moment. With --no-cluster, deployments are not shown.`,
		Example: "  solutionctl deploy affected 'pkg:deb/debian/openssl@<3.0.15'",
	}
	var advisory string
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if advisory != "" {
			return cli.ExactArgs()(cmd, args)
		}
		return cli.ExactArgs("PACKAGE@RANGE")(cmd, args)
	}
	cmd.Flags().StringVar(&advisory, "advisory", "", "search for the packages of an OpenVEX, CSAF or OSV `FILE`")
	f := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	addStoreFlag(cmd, &f.places.Store)
	cmd.Flags().BoolVar(&f.noCluster, "no-cluster", false, "search this host only, and do not show deployments")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.affected(cmd.Context(), advisory, strings.Join(args, ""))
	}
	return cmd
}

func (f *hostFlags) affected(ctx context.Context, advisory, text string) error {
	q, err := cli.ReadQuestion(advisory, text)
	if err != nil {
		return err
	}
	h, d, err := f.open()
	if err != nil {
		return err
	}
	o := host.AffectedOptions{Package: q.Package, Range: q.Range, Advisory: q.Advisory, LeftOut: q.LeftOut, Search: q.Search}
	if d != nil {
		o.Running = d.Survey.RunningImages
		o.Status = func(ctx context.Context) (*schema.Status, error) { return d.Survey.Status(ctx, survey.StatusOptions{}) }
	}
	result, err := h.Affected(ctx, o)
	print := func(w *console.Stream, r *schema.SiteAffectedReport) { printSiteAffected(w, r, q.Text) }
	if err = cli.Emit(f.App, result, err, print); err != nil {
		return err
	}
	if versions := countAffected(result); versions > 0 {
		return report.Errorf(report.Affected, "%s in %s", q.Text, report.Count(versions, "imported version"))
	}
	if n := len(result.NotSearched); n > 0 {
		return report.Errorf(report.Failure, "%s not searched; no other one matches %s", report.Count(n, "imported version"), q.Text).
			WithHint("ask on the host that has the archive, or import it again")
	}
	return nil
}

func countAffected(r *schema.SiteAffectedReport) (versions int) {
	for _, v := range r.Versions {
		if len(v.Packages) > 0 {
			versions++
		}
	}
	return versions
}

func printSiteAffected(w *console.Stream, r *schema.SiteAffectedReport, question string) {
	table := &console.Table{Columns: []string{"SOLUTION", "IMAGE", "PACKAGE", "VERSION", "DEPLOYED IN", "REMARK"}}
	for _, v := range r.Versions {
		for _, f := range v.Unread {
			fmt.Fprintf(w, "not read: %s-%s: %s: %s\n", v.Solution, v.Version, console.Clean(f.Path), console.Clean(f.Reason))
		}
		for _, p := range v.Packages {
			table.Add(v.Solution+" "+v.Version, p.Image, p.Name, p.Version, deployedIn(v), p.Remark())
		}
	}
	for _, v := range r.NotSearched {
		fmt.Fprintf(w, "%s %s: %s\n", w.Paint(console.Yellow, "not searched:"), console.Clean(v.ID), console.Clean(v.Reason))
	}
	console.PrintEach(w, console.Yellow, "problem:", r.Problems)
	cli.PrintLeftOut(w, r.LeftOut)
	if len(table.Rows) > 0 {
		table.Print(w)
	} else {
		fmt.Fprintf(w, "%s: no package matches %s\n", report.Count(len(r.Versions), "imported version"), console.Clean(question))
	}
}

// deployedIn lists the namespaces where a version is deployed, with their environments if these have other names, and the nodes that run an
// affected image.
func deployedIn(v schema.AffectedVersion) string {
	var places []string
	if v.Active {
		places = append(places, "active"+onNodes(v.Nodes))
	}
	for _, use := range v.Uses {
		place := use.Namespace
		if use.Environment != use.Namespace {
			place = use.Environment + "/" + use.Namespace
		}
		places = append(places, place+onNodes(use.Nodes))
	}
	return orDash(strings.Join(places, ", "))
}

// onNodes names a few nodes, or their number.
func onNodes(nodes []string) string {
	const few = 3
	switch {
	case len(nodes) == 0:
		return ""
	case len(nodes) > few:
		return fmt.Sprintf(" on %d nodes", len(nodes))
	}
	return " on " + strings.Join(nodes, " and ")
}
