package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newInspectCommand(a *app) *cobra.Command {
	var extract string
	cmd := &cobra.Command{
		Use:   "inspect ARCHIVE [PATH]",
		Short: "Show what is in an archive, or print one file of it",
		Long: `Show what is in an archive: its manifest, images with their digests and platforms, CRDs, roles and files. Layers are
not read, so this takes milliseconds whatever the size.

With PATH, print that file, or list that directory. With --extract, write the file or directory into a directory
instead; nothing else is unpacked.`,
		Example: `  solutionctl inspect example-solution-1.0.0.iso
  solutionctl inspect example-solution-1.0.0.iso manifest.yaml
  solutionctl inspect example-solution-1.0.0.iso operator --extract out/`,
		Args:              optionalArgs([]string{"ARCHIVE"}, "PATH"),
		ValidArgsFunction: completeArchive(true),
		RunE: func(_ *cobra.Command, args []string) error {
			archive, file, err := openArchive(args[0])
			if err != nil {
				return err
			}
			defer file.Close() //nolint:errcheck // read only
			switch {
			case len(args) == 1 && extract == "":
				return a.describeArchive(archive)
			case extract != "":
				return extractTo(extract, archive, archivePathArgument(args))
			default:
				return a.printFile(archive, archivePathArgument(args))
			}
		},
	}
	cmd.Flags().StringVar(&extract, "extract", "", "write PATH, or everything, into this `directory`")
	return cmd
}

// archivePathArgument is PATH in the form that file systems take: without leading or trailing slashes.
func archivePathArgument(args []string) string {
	if len(args) < 2 {
		return "."
	}
	return path.Clean(strings.TrimLeft(args[1], "/"))
}

func (a *app) describeArchive(archive *archive.Archive) error {
	d, err := archive.Describe()
	if err != nil {
		return err
	}
	return a.emitResult(d, func(w *console.Stream) error { return printDescription(w, d) })
}

func printDescription(w *console.Stream, d *archive.Description) error {
	fmt.Fprintf(w, "%s %s (%s)\n", w.Paint(console.Bold, d.DisplayName), d.Version, d.ID)
	if d.Size > 0 {
		fmt.Fprintf(w, "volume %q, %s\n", d.VolumeID, console.Bytes(d.Size))
	}
	images := &console.Table{Columns: []string{"IMAGE", "SIZE", "DIGEST", "PLATFORMS"}}
	for _, i := range d.Images {
		images.Add(i.Name, console.Bytes(i.Size), shortDigest(i.Digest), joinStrings(i.Platforms))
	}
	crds := &console.Table{Columns: []string{"CRD", "SCOPE", "VERSIONS"}}
	for _, c := range d.CRDs {
		crds.Add(c.Name, c.Scope, joinStrings(c.Versions))
	}
	roles := &console.Table{Columns: []string{"ROLE", "NAME", "RULES"}}
	for _, r := range d.Roles {
		roles.Add(r.Kind, r.Name, joinWith("; ", r.Rules))
	}
	files := &console.Table{Columns: []string{"SIZE", "FILE"}}
	for _, f := range d.Files {
		files.Add(console.Bytes(f.Size), f.Path)
	}
	for _, table := range []*console.Table{images, crds, roles, files} {
		if len(table.Rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := table.Print(w); err != nil {
			return err
		}
	}
	return nil
}

func shortDigest(digest string) string { return digest[:min(19, len(digest))] }

func joinStrings[T fmt.Stringer](values []T) string { return joinWith(", ", values) }

func joinWith[T fmt.Stringer](separator string, values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = value.String()
	}
	return strings.Join(texts, separator)
}

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
		_, err = io.Copy(a.out, f)
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
			size, suffix = console.Bytes(info.Size()), ""
		}
		table.Add(size, path.Join(name, entry.Name())+suffix)
	}
	return table.Print(a.out)
}

func describeMissing(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return report.Errorf(report.Usage, "the archive has no %s", name).
			WithHint("list what it has: solutionctl inspect ARCHIVE")
	}
	return err
}

// extractTo writes a file or a directory of the archive below dir. Files that are there are not overwritten.
func extractTo(dir string, archive *archive.Archive, name string) error {
	if _, err := fs.Stat(archive, name); err != nil {
		return describeMissing(err, name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	return fs.WalkDir(archive, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(file, path.Dir(name)), "/"))
		if entry.IsDir() {
			return root.MkdirAll(target, 0o755)
		}
		return extractFile(root, target, archive, file)
	})
}

func extractFile(root *os.Root, target string, archive *archive.Archive, name string) error {
	source, err := archive.Open(name)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return report.Errorf(report.Failure, "extract %s: %w", name, err).WithHint("extract into an empty directory")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, f.Close())
}
