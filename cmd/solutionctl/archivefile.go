package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/media"
)

// openArchive opens the archive in a file or directory, or in parts, of which more has further ones.
func openArchive(name string, more ...string) (*archive.Archive, io.Closer, error) {
	opened, file, err := archive.OpenFile(name, more...)
	if err == nil {
		return opened, file, nil
	}
	if image, failure := media.Open(name, more...); failure == nil {
		err = errors.Join(cmp.Or(delta.Refuse(image, name), err), image.Close())
	}
	return nil, nil, err
}

// openSourceArchive opens an archive that images are taken from.
func openSourceArchive(name string) (fs.FS, io.Closer, error) { return archive.OpenFile(name) }

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
