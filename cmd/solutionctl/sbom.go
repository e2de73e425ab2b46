package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The formats of a bill of materials for other programs.
const (
	formatSPDX      = "spdx"
	formatCycloneDX = "cyclonedx"
)

// packagesOf lists the packages in the images of an archive.
func (a *app) packagesOf(ctx context.Context, opened *archive.Archive, images []*oci.Image) (*schema.PackageList, error) {
	list, err := sbom.List(ctx, opened.Solution, images, sbom.Options{Sink: a.Sink})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", opened.Solution.ID(), err)
	}
	return list, nil
}

// printPackages shows the packages in the images of an archive, or what changed since another archive.
func (a *app) printPackages(ctx context.Context, opened *archive.Archive, f inspectFlags) error {
	images := opened.Images.Images()
	if f.image != "" {
		image, err := a.findImage(ctx, opened, f)
		if err != nil {
			return err
		}
		images = []*oci.Image{image}
	}
	list, err := a.packagesOf(ctx, opened, images)
	switch {
	case err != nil:
		return err
	case f.diff != "":
		return a.printPackageChanges(ctx, list, f)
	}
	document := &sbom.Document{PackageList: list, Tool: a.Version}
	switch a.Output {
	case formatSPDX:
		a.Sink.Close()
		return document.SPDX(a.Out)
	case formatCycloneDX:
		a.Sink.Close()
		return document.CycloneDX(a.Out)
	}
	return cli.Emit(a.App, list, nil, printPackageList)
}

// printPackageChanges compares the packages with those of an older archive.
func (a *app) printPackageChanges(ctx context.Context, list *schema.PackageList, f inspectFlags) error {
	older, file, err := openArchive(f.diff)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	images := older.Images.Images()
	if name, _, _ := strings.Cut(f.image, ":"); name != "" {
		images = slices.DeleteFunc(slices.Clone(images), func(i *oci.Image) bool { return i.Ref.Name != name })
	}
	before, err := a.packagesOf(ctx, older, images)
	if err != nil {
		return err
	}
	return cli.Emit(a.App, sbom.Compare(before, list), nil, printPackageDifference)
}

func printPackageList(w *console.Stream, list *schema.PackageList) {
	table := &console.Table{Columns: []string{"IMAGE", "PACKAGE", "VERSION", "TYPE", "LICENSE"}}
	brought := slices.ContainsFunc(list.Images, func(image schema.ImagePackages) bool { return len(image.Bills) > 1 })
	if brought {
		table.Columns = append(table.Columns, "ORIGIN")
	}
	count := 0
	for _, image := range list.Images {
		for _, p := range image.Packages {
			row := []string{imageTitle(image, list.Images), p.Name, p.Version, p.Type, p.License}
			if brought {
				row = append(row, p.Origin.String())
			}
			table.Add(row...)
		}
		count += len(image.Packages)
	}
	if count > 0 {
		table.Print(w)
		fmt.Fprintln(w)
	}
	for _, image := range list.Images {
		for _, bill := range image.Bills {
			if bill.Origin == schema.OriginBrought {
				fmt.Fprintf(w, "%s: %s: %s\n", bill.Origin, console.Clean(imageTitle(image, list.Images)), console.Clean(bill.String()))
			}
		}
		printUnread(w, image.Image, image.Unread, image.UnreadMore)
	}
	var types []string
	for _, k := range list.LookedFor {
		types = append(types, k.Type)
	}
	fmt.Fprintf(w, "%s in %s; made by solutionctl, which looked for: %s\n", report.Count(count, "package"), report.Count(len(list.Images), "image"), strings.Join(types, ", "))
}

// imageTitle names an image, and its platform if the archive has it for several.
func imageTitle(image schema.ImagePackages, all []schema.ImagePackages) string {
	several := func(other schema.ImagePackages) bool {
		return other.Image == image.Image && other.Manifest != image.Manifest
	}
	if image.Platform == nil || !slices.ContainsFunc(all, several) {
		return image.Image
	}
	return image.Image + " " + image.Platform.String()
}

// printUnread shows the files that can have packages and were not read.
func printUnread(w *console.Stream, image string, unread []schema.UnreadFile, more int) {
	for _, f := range unread {
		fmt.Fprintf(w, "not read: %s: %s: %s\n", console.Clean(image), console.Clean(f.Path), console.Clean(f.Reason))
	}
	if more > 0 {
		fmt.Fprintf(w, "not read: %s: %s\n", console.Clean(image), report.Count(more, "more file"))
	}
}

func printPackageDifference(w *console.Stream, d *schema.PackageDifference) {
	fmt.Fprintf(w, "%s → %s\n", d.From, d.To)
	if len(d.Changes) == 0 {
		fmt.Fprintln(w, "the same packages in the same versions")
	} else {
		fmt.Fprintln(w)
		table := &console.Table{Columns: []string{"", "IMAGE", "PACKAGE", "TYPE", "FROM", "TO"}}
		for _, c := range d.Changes {
			table.Add(packageMark(c), c.Image, c.Name, c.Type, c.From, c.To)
		}
		table.Print(w)
	}
	printUnread(w, d.To, d.Unread, 0)
}

func packageMark(c schema.PackageChange) string {
	kind := archive.Changed
	switch {
	case c.From == "":
		kind = archive.Added
	case c.To == "":
		kind = archive.Removed
	}
	return changeMarks[kind].mark
}
