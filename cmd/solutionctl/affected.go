package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newAffectedCommand(a *app) *cobra.Command {
	var advisory string
	cmd := &cobra.Command{
		Use:   "affected PACKAGE@RANGE|--advisory FILE ARCHIVE...",
		Short: "Search archives for a package in a range of versions",
		Long: `Search the images of archives for a package, and exit with status 3 if one of them has it. This answers which products have a vulnerable
package; no network is needed.

PACKAGE is a package URL, such as pkg:deb/debian/openssl, pkg:golang/golang.org/x/net, or pkg:npm/lodash. Packages of a
distribution are also found by their source package, which advisories name: openssl selects libssl3. RANGE is in the syntax of vers: constraints
between "|", such as '<3.0.15' or '>=4.0.0|<4.17.21'. Without RANGE, all versions are selected. Versions are compared by the
rules of dpkg, apk, rpm, Python (PEP 440), Maven, and Semantic Versioning for npm and Go. If RANGE has no epoch, epochs are ignored.

With --advisory, the packages of an advisory are searched for: a file in the format of OpenVEX, CSAF 2.0 or OSV. Of the first two, packages that are
affected or under investigation are. Packages of kinds that are not looked for are listed. This includes Rust (pkg:cargo), which only bills of materials
have that images bring.

What the vendor states in vex/*.json of an archive, in OpenVEX, is shown beside: the signature of the archive covers it.

A package whose version cannot be compared is listed with the reason. So are files that can have packages and could not be read.
'solutionctl inspect ARCHIVE --sbom' shows everything that is searched.`,
		Example: `  solutionctl affected 'pkg:deb/debian/openssl@<3.0.15' example-solution-1.0.0.iso
  solutionctl affected 'pkg:golang/stdlib@<1.22.7' *.iso
  solutionctl affected --advisory GO-2024-3105.json *.iso`,
		Args: func(cmd *cobra.Command, args []string) error {
			if advisory != "" {
				return cli.AtLeastArgs("ARCHIVE")(cmd, args)
			}
			return cli.AtLeastArgs("PACKAGE@RANGE", "ARCHIVE")(cmd, args)
		},
		ValidArgsFunction: completeAffected,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := cli.ReadQuestion(advisory, args[0])
			if err != nil {
				return err
			}
			if advisory == "" {
				args = args[1:]
			}
			return a.affected(cmd.Context(), q, args)
		},
	}
	cmd.Flags().StringVar(&advisory, "advisory", "", "search for the packages of an OpenVEX, CSAF or OSV `FILE`")
	return cmd
}

// completeAffected completes archives behind the package.
func completeAffected(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"pkg:"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return []string{"iso"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) affected(ctx context.Context, q *cli.Question, names []string) error {
	result := &schema.AffectedReport{Package: q.Package, Range: q.Range, Advisory: q.Advisory, LeftOut: q.LeftOut, Archives: []schema.AffectedArchive{}}
	archives, more := media.Arguments(names)
	packages, affected := 0, 0
	for _, name := range archives {
		found, err := a.affectedIn(ctx, q, name, more)
		if err != nil {
			return err
		}
		result.Archives = append(result.Archives, *found)
		if packages += len(found.Packages); len(found.Packages) > 0 {
			affected++
		}
	}
	if err := a.EmitResult(result, func(w *console.Stream) { printAffected(w, result, q.Text) }); err != nil || packages == 0 {
		return err
	}
	return report.Errorf(report.Affected, "%s in %s: %s", q.Text, report.Count(affected, "archive"), report.Count(packages, "package"))
}

// affectedIn searches one archive.
func (a *app) affectedIn(ctx context.Context, q *cli.Question, name string, more []string) (*schema.AffectedArchive, error) {
	opened, file, err := openArchive(name, more...)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	list, err := a.packagesOf(ctx, opened, opened.Images.Images())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	found := q.Search(list)
	found.Archive = name
	statements, err := sbom.ReadStatements(opened)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	statements.Explain(found)
	return found, nil
}

func printAffected(w *console.Stream, r *schema.AffectedReport, question string) {
	table := &console.Table{Columns: []string{"ARCHIVE", "IMAGE", "PACKAGE", "VERSION", "REMARK"}}
	images := 0
	for _, archive := range r.Archives {
		images += archive.Images
		for _, p := range archive.Packages {
			table.Add(filepath.Base(archive.Archive), p.Image, p.Name, p.Version, p.Remark())
		}
	}
	for _, archive := range r.Archives {
		printUnread(w, filepath.Base(archive.Archive), archive.Unread, 0)
	}
	cli.PrintLeftOut(w, r.LeftOut)
	if len(table.Rows) > 0 {
		table.Print(w)
	} else {
		fmt.Fprintf(w, "%s of %s: no package matches %s\n", report.Count(images, "image"), report.Count(len(r.Archives), "archive"), console.Clean(question))
	}
}
