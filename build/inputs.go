package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
)

// InputState returns a digest of names, sizes and modification times of the local files that a build of a project reads, which has a name as in
// [Load]: the files in its directory, and the images that its document takes from other places. No file but the document is read. Names that
// begin with a dot stay out, as they do in an archive. A project that cannot be loaded has a state, too, so that the correction changes it.
func InputState(ctx context.Context, name string) (string, error) {
	dir := name
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		dir = filepath.Dir(name)
	}
	state := sha256.New()
	if err := addState(ctx, state, dir); err != nil {
		return "", err
	}
	if project, err := Load(name, Overrides{}); err == nil {
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

// addState adds the files below a path, also below that of a symbolic link. Files come and go while a project is edited: one that cannot be read adds the reason.
func addState(ctx context.Context, state hash.Hash, root string) error {
	if target, err := filepath.EvalSymlinks(root); err == nil {
		root = target // which WalkDir does not follow
	}
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
			info, err := os.Stat(name)
			if err != nil {
				fmt.Fprintf(state, "%q %v\n", name, err)
				return nil
			}
			fmt.Fprintf(state, "%q %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
}
