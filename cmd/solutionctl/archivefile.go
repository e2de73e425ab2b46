package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// openArchive opens the archive in a file or directory. The file is opened once: what was checked is what is read.
func openArchive(name string) (*archive.Archive, io.Closer, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, nil, err
	}
	a, err := readArchive(f, name)
	if err != nil {
		return nil, nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", name, err), f.Close())
	}
	return a, f, nil
}

// openFile opens a file, a directory or a disk. Opening anything else may never end.
func openFile(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, report.Errorf(report.Failure, "%w", err)
	}
	if special := info.Mode() & (fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice); special != 0 {
		return nil, report.Errorf(report.Usage, "%s is neither a file nor a directory nor a disk", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, report.Errorf(report.Failure, "%w", err)
	}
	return f, nil
}

func readArchive(f *os.File, name string) (*archive.Archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return archive.FromFS(oci.Directory(name))
	}
	size, err := f.Seek(0, io.SeekEnd) // a block device, such as a drive with a disc in it, has no size in its Stat
	if err != nil {
		return nil, err
	}
	return archive.Open(f, size)
}

// openSourceArchive opens an archive that images are taken from.
func openSourceArchive(name string) (fs.FS, io.Closer, error) { return openArchive(name) }

// completeArchive completes archives as the first argument, and names inside of it as the second where one is taken.
func completeArchive(inside bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || !inside {
			return []string{"iso"}, cobra.ShellCompDirectiveFilterFileExt
		}
		a, file, err := openArchive(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer file.Close() //nolint:errcheck // read only
		dir, _ := path.Split(prefix)
		entries, err := fs.ReadDir(a, path.Clean(strings.TrimLeft(dir, "/")))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, entry := range entries {
			name := dir + entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
