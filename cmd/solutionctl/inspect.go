package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// inspectFlags are the flags of `solutionctl inspect`.
type inspectFlags struct {
	extract, image, to, diff string
	platforms                []string
	powers, sbom, values     bool
	registry                 registryFlags
}

func newInspectCommand(a *app) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect ARCHIVE [PART|DIRECTORY...] [PATH]",
		Short: "Show the contents of an archive, or extract a file",
		Long: `Show what is in an archive: its manifest, components and what each waits for, images with their digests and platforms,
CRDs, roles and files. Layers are not read, so this takes milliseconds whatever the size.

With PATH, print that file, or list that directory. With --extract, write the file or directory into a directory
instead; without PATH, everything, each layer once for every name that it has.

An archive in parts is read where they lie: name the first one, and the other parts or the directories that have them where they are
not beside it. Of a delta, show which archive it makes, and which it needs. Of an archive in a registry, oci://REGISTRY/PATH:TAG, only what
is shown is read.

With --powers, show what the archive can do to a cluster beyond what a Solution may do unasked: rights, pods that are part of
a node, webhooks, defaults of the cluster, others' traffic. Everything is judged as it would be deployed, charts with the values
of the archive; ENVIRONMENT stands for the namespace of an environment.

With --values, show what a site can set of its charts: path, type, default and description, from values.schema.json and the comments
of values.yaml.

With --sbom, list the packages in the images: those of dpkg, apk and rpm, modules of Go programs, and packages of Python, npm and Maven.
Layers are read from beginning to end. --output spdx and --output cyclonedx print a bill of materials for other tools, in SPDX 2.3 or
CycloneDX 1.6; the same archive gives the same bytes. With --diff, show which packages came, went or changed their version since an
older archive. --image limits the list to one image. What only a bill of materials lists that an image brings is marked as not verified.

With --image, write an image to where other tools read it, byte for byte and with its digests verified: an OCI image
layout (oci:DIR) or what "docker load" reads (docker-archive:FILE).`,
		Example: `  solutionctl inspect example-solution-1.0.0.iso
  solutionctl inspect example-solution-1.0.0.iso manifest.yaml
  solutionctl inspect oci://registry.example.com/solutions/example-solution:1.0.0
  solutionctl inspect example-solution-1.0.0.iso --powers
  solutionctl inspect cloud-1.0.0.iso --values
  solutionctl inspect example-solution-1.0.0.iso --sbom
  solutionctl inspect example-solution-1.1.0.iso --sbom --diff example-solution-1.0.0.iso
  solutionctl inspect example-solution-1.0.0.iso operator --extract out/
  solutionctl inspect example-solution-1.0.0.iso --image example-solution-operator:1.0.0 --to docker-archive:operator.tar`,
		Args: func(cmd *cobra.Command, args []string) error {
			args, _ = media.Arguments(args)
			return cli.OptionalArgs([]string{"ARCHIVE"}, "PATH")(cmd, args)
		},
		ValidArgsFunction: completeArchive(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.inspect(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.extract, "extract", "", "write PATH, or everything, into this `directory`")
	flags.StringVar(&f.image, "image", "", "take out this image, or list its packages: `NAME[:TAG]`")
	flags.StringVar(&f.to, "to", "", "write the image here: `oci:DIR|docker-archive:FILE`")
	flags.StringSliceVar(&f.platforms, "platform", nil, "take only these platforms of the image, such as linux/amd64")
	flags.BoolVar(&f.powers, "powers", false, "show what the archive can do to a cluster beyond what a Solution may do unasked")
	flags.BoolVar(&f.values, "values", false, "show what a site can set of the charts in the archive")
	flags.BoolVar(&f.sbom, "sbom", false, "list the packages in the images")
	flags.StringVar(&f.diff, "diff", "", "with --sbom, show what changed since this older archive, a `FILE`")
	f.registry.addSource(cmd)
	cli.AddChoice(cmd, flags, &a.Output, "output", "o", "format of the result", "text", "json", "yaml", formatSPDX, formatCycloneDX)
	return cmd
}

// check refuses flags that do not go together.
func (f *inspectFlags) check(args []string) error {
	switch {
	case f.sbom:
		return f.checkSBOM(args)
	case f.diff != "":
		return report.Errorf(report.Usage, "--diff is for --sbom").WithHint("compare the content of two archives: solutionctl diff OLD.iso NEW.iso")
	case (f.image == "") != (f.to == ""):
		return report.Errorf(report.Usage, "--image and --to belong together").
			WithHint("such as --image NAME:TAG --to oci:DIR")
	case f.image == "" && len(f.platforms) > 0:
		return report.Errorf(report.Usage, "--platform is for --image")
	case f.image != "" && (len(args) > 1 || f.extract != ""):
		return report.Errorf(report.Usage, "--image takes neither PATH nor --extract")
	case f.powers && f.values:
		return report.Errorf(report.Usage, "--powers does not go with --values")
	case (f.powers || f.values) && (f.image != "" || len(args) > 1 || f.extract != ""):
		return report.Errorf(report.Usage, "--powers and --values take neither PATH nor --extract nor --image")
	}
	return nil
}

func (f *inspectFlags) checkSBOM(args []string) error {
	switch {
	case len(args) > 1 || f.extract != "" || f.to != "" || f.powers || f.values:
		return report.Errorf(report.Usage, "--sbom takes neither PATH nor --extract nor --to nor --powers nor --values")
	case f.image == "" && len(f.platforms) > 0:
		return report.Errorf(report.Usage, "--platform is for --image")
	}
	return nil
}

// checkOutput refuses formats of a bill of materials for other results.
func (f *inspectFlags) checkOutput(output string) error {
	if output != formatSPDX && output != formatCycloneDX {
		return nil
	}
	if !f.sbom || f.diff != "" {
		return report.Errorf(report.Usage, "--output %s is for --sbom, without --diff", output)
	}
	return nil
}

func (a *app) inspect(ctx context.Context, args []string, f inspectFlags) error {
	args, more := media.Arguments(args)
	if err := cmp.Or(f.check(args), f.checkOutput(a.Output)); err != nil {
		return err
	}
	if !isInRegistry(args[0]) {
		if d, err := describeDelta(args); d != nil || err != nil {
			return cli.Emit(a.App, d, err, printDelta)
		}
	}
	archive, file, err := f.open(ctx, a, args[0], more)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	name := archivePathArgument(args)
	switch {
	case f.sbom:
		return a.printPackages(ctx, archive, f)
	case f.image != "":
		return a.saveImage(ctx, archive, f)
	case f.powers:
		powers, err := a.powersOf(ctx, archive)
		return cli.Emit(a.App, powers, err, printPowersOf)
	case f.values:
		values, err := valuesOf(archive)
		return cli.Emit(a.App, values, err, cli.PrintValues)
	case f.extract != "":
		if _, err := fs.Stat(archive, name); err != nil {
			return describeMissing(err, name)
		}
		return archive.Extract(ctx, name, f.extract)
	case len(args) == 1:
		d, err := inspectArchive(archive)
		return cli.Emit(a.App, d, err, printDescription)
	default:
		return a.printFile(archive, name)
	}
}

// open opens an archive in a file, in parts, or in a registry.
func (f *inspectFlags) open(ctx context.Context, a *app, name string, more []string) (*archive.Archive, io.Closer, error) {
	if !isInRegistry(name) {
		return openArchive(name, more...)
	}
	remote, err := f.registry.open(ctx, a, name)
	if err != nil {
		return nil, nil, err
	}
	opened, err := archive.Open(remote, remote.Size())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), remote.Close())
	}
	return opened, remote, nil
}

// findImage returns the image that --image and --platform name.
func (a *app) findImage(ctx context.Context, archive *archive.Archive, f inspectFlags) (*oci.Image, error) {
	platforms := make([]schema.Platform, len(f.platforms))
	for i, text := range f.platforms {
		var err error
		if platforms[i], err = schema.ParsePlatform(text); err != nil {
			return nil, report.Errorf(report.Usage, "--platform: %w", err)
		}
	}
	image, err := archive.Images.Find(ctx, f.image, platforms)
	if err != nil {
		return nil, report.Errorf(report.CodeOf(err), "%s: %w", archive.Solution.ID(), err)
	}
	return image, nil
}

func (a *app) saveImage(ctx context.Context, archive *archive.Archive, f inspectFlags) error {
	image, err := a.findImage(ctx, archive, f)
	if err != nil {
		return err
	}
	if err := oci.Save(ctx, image, f.to); err != nil {
		return err
	}
	d := archive.DescribeImage(image)
	return a.EmitResult(d, func(w *console.Stream) {
		platforms := ""
		if len(d.Platforms) > 0 {
			platforms = " for " + strings.Join(schema.Strings(d.Platforms), ", ")
		}
		fmt.Fprintf(w, "%s is in %s: %s%s\n", d.Name, console.Clean(f.to), d.Digest, platforms)
	})
}

// valuesOf describes what a site can set of the charts of an archive.
func valuesOf(a *archive.Archive) (*schema.SolutionValues, error) {
	payload, err := render.FromArchive(a)
	if err != nil {
		return nil, err
	}
	values := &schema.SolutionValues{Solution: a.Solution.Metadata.Name, Version: a.Solution.Spec.Version, Components: []schema.ComponentValues{}}
	for i := range a.Solution.Spec.Components {
		c := &a.Solution.Spec.Components[i]
		if c.Chart == "" {
			continue
		}
		described, err := payload.Values(c)
		if err != nil {
			return nil, err
		}
		values.Components = append(values.Components, described)
	}
	return values, nil
}

// archivePathArgument is PATH in the form that file systems take: without leading or trailing slashes.
func archivePathArgument(args []string) string {
	if len(args) < 2 {
		return "."
	}
	return path.Clean(strings.TrimLeft(args[1], "/"))
}

// inspection describes an archive: its content, and the order in which components start.
type inspection struct {
	*archive.Description
	Components *schema.ComponentGraph `json:"components,omitempty"`
}

func inspectArchive(a *archive.Archive) (*inspection, error) {
	content, err := a.Describe()
	if err != nil || len(a.Solution.Spec.Components) == 0 {
		return &inspection{content, nil}, err
	}
	graph, err := components.New(a.Solution, a.Parts()...)
	if err != nil {
		return nil, err
	}
	selection, err := graph.Select(components.Choice{})
	if err != nil {
		return nil, err
	}
	return &inspection{content, selection.Document()}, nil
}

func printDescription(w *console.Stream, d *inspection) {
	fmt.Fprintf(w, "%s %s (%s)\n", w.Paint(console.Bold, d.DisplayName), d.Version, d.ID)
	if d.Size > 0 {
		fmt.Fprintf(w, "volume %q, %s\n", d.VolumeID, report.Bytes(d.Size))
	}
	if d.SupportedUntil != "" {
		fmt.Fprintf(w, "supported until %s\n", d.SupportedUntil)
	}
	for _, d := range d.DependsOn {
		fmt.Fprintf(w, "needs %s %s in the %s\n", d.Solution, cmp.Or(d.Version, "in any version"), cmp.Or(d.Scope, schema.ScopeEnvironment))
	}
	if d.Components != nil {
		fmt.Fprintf(w, "\nCOMPONENTS, each above those that it waits for\n%s\n", strings.Join(components.Tree(d.Components), "\n"))
	}
	printReleaseNotes(w, d.ReleaseNotes, "solutionctl inspect ARCHIVE "+archive.ReleaseNotesFile)
	images := &console.Table{Columns: []string{"IMAGE", "SIZE", "DIGEST", "PLATFORMS"}}
	for _, i := range d.Images {
		images.Add(i.Name, report.Bytes(i.Size), shortDigest(i.Digest), strings.Join(schema.Strings(i.Platforms), ", "))
	}
	charts := &console.Table{Columns: []string{"CHART", "SIZE", "DIGEST"}}
	for _, c := range d.Charts {
		charts.Add(c.Name, report.Bytes(c.Size), shortDigest(c.Digest))
	}
	crds := &console.Table{Columns: []string{"CRD", "SCOPE", "VERSIONS"}}
	for _, c := range d.CRDs {
		crds.Add(c.Name, c.Scope, strings.Join(schema.Strings(c.Versions), ", "))
	}
	roles := &console.Table{Columns: []string{"ROLE", "NAME", "RULES"}}
	for _, r := range d.Roles {
		roles.Add(r.Kind, path.Join(r.Operator, r.Name), strings.Join(schema.Strings(r.Rules), "; "))
	}
	files := &console.Table{Columns: []string{"SIZE", "FILE"}}
	for _, f := range d.Files {
		files.Add(report.Bytes(f.Size), f.Path)
	}
	for _, table := range []*console.Table{images, charts, crds, roles, files} {
		if len(table.Rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		table.Print(w)
	}
}

// printReleaseNotes prints the first lines, and the command that prints all of them.
func printReleaseNotes(w *console.Stream, notes, all string) {
	if notes == "" {
		return
	}
	const most = 20
	lines := strings.Split(notes, "\n")
	fmt.Fprintf(w, "\n%s\n", w.Paint(console.Bold, "RELEASE NOTES"))
	for _, line := range lines[:min(len(lines), most)] {
		fmt.Fprintln(w, strings.TrimRight("  "+console.Clean(line), " "))
	}
	if left := len(lines) - most; left > 0 {
		fmt.Fprintf(w, "  and %s: %s\n", report.Count(left, "more line"), all)
	}
}

func shortDigest(digest string) string { return digest[:min(19, len(digest))] }

// printFile prints a file, byte for byte, or lists a directory.
func (a *app) printFile(archive *archive.Archive, name string) error {
	f, err := archive.Open(name)
	if err != nil {
		return describeMissing(err, name)
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		_, err = io.Copy(a.Out, f)
		return err
	}
	entries, err := fs.ReadDir(archive, name)
	if err != nil {
		return err
	}
	table := &console.Table{Columns: []string{"SIZE", "FILE"}}
	for _, entry := range entries {
		size, suffix := "", "/"
		if !entry.IsDir() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			size, suffix = report.Bytes(info.Size()), ""
		}
		table.Add(size, path.Join(name, entry.Name())+suffix)
	}
	return a.Out.Print(table.Print)
}

func describeMissing(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return report.Errorf(report.Usage, "the archive has no %s", name).
			WithHint("list what it has: solutionctl inspect ARCHIVE")
	}
	return err
}
