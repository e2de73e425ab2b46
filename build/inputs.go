package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
)

// InputState returns a digest of names, sizes and modification times of the local files that a build reads: the files of the project in a
// directory, and the images that its solution.yaml takes from other places. No file but solution.yaml is read. Names that begin with a dot
// stay out, as they do in an archive. A project that cannot be loaded has a state, too, so that the correction changes it.
func InputState(ctx context.Context, dir string) (string, error) {
	state := sha256.New()
	if err := addState(ctx, state, dir); err != nil {
		return "", err
	}
	if project, err := Load(dir, Overrides{}); err == nil {
		defer project.Close() //nolint:errcheck // a directory that was only read
		for i := range project.Build.Spec.Images {
			if file := oci.LocalPath(project.source(i), project.Dir); file != "" {
				if err := addState(ctx, state, file); err != nil {
					return "", err
				}
			}
		}
	}
	return hex.EncodeToString(state.Sum(nil)), nil
}

// addState adds the files below a path. Files come and go while a project is edited: one that cannot be read adds the reason.
func addState(ctx context.Context, state hash.Hash, root string) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		hidden := name != root && strings.HasPrefix(filepath.Base(name), ".")
		switch {
		case err != nil:
			fmt.Fprintf(state, "%q %v\n", name, err)
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case hidden || entry.IsDir():
		default:
			info, err := entry.Info()
			if err != nil {
				fmt.Fprintf(state, "%q %v\n", name, err)
				return nil
			}
			fmt.Fprintf(state, "%q %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
}
