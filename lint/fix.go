package lint

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/kube/manifest"
)

// Edit changes one file of a project: it gives it new content, and takes it away when Data is nil. With Images, it adds lines to the
// images of solution.yaml instead.
type Edit struct {
	Path   string // in the archive
	Data   []byte
	Images []string
}

// Fix is a correction of one finding: edits that are applied together or not at all.
type Fix []Edit

// applyFixes merges as many fixes as do not touch the same file, and returns the edits. After them, there may be more to fix.
func applyFixes(fixes []Fix) []Edit {
	var edits []Edit
	touched := map[string]bool{}
	for _, fix := range fixes {
		if slices.ContainsFunc(fix, func(e Edit) bool { return touched[e.Path] }) {
			continue
		}
		for _, edit := range fix {
			touched[edit.Path] = true
			edits = append(edits, edit)
		}
	}
	return edits
}

// fixable leaves out fixes of files in which the version was filled in: the text that a fix starts from is not theirs.
func (o *opened) fixable(fixes []Fix) []Fix {
	return slices.DeleteFunc(fixes, func(fix Fix) bool {
		return o.preview == nil || slices.ContainsFunc(fix, func(e Edit) bool { return o.preview.Filled(e.Path) })
	})
}

// write changes the files of a project and returns their paths.
func (o *opened) write(edits []Edit) ([]string, error) {
	root, err := os.OpenRoot(o.path)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	var changed []string
	for _, edit := range edits {
		name, ok := o.preview.Place(edit.Path)
		if len(edit.Images) > 0 {
			name, ok = build.ProjectFile, true
			if edit.Data, err = withImages(root, edit.Images); err != nil {
				return changed, err
			}
		}
		if !ok {
			continue // made of solution.yaml, or from outside of the directories that are copied
		}
		changed = append(changed, path.Join(filepath.ToSlash(o.path), name))
		if edit.Data == nil {
			err = root.Remove(filepath.FromSlash(name))
		} else {
			err = rewrite(root, filepath.FromSlash(name), edit.Data)
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// withImages is solution.yaml with more images.
func withImages(root *os.Root, images []string) ([]byte, error) {
	document, err := root.ReadFile(build.ProjectFile)
	if err != nil {
		return nil, err
	}
	return manifest.AddItems(document, images, "spec", "images")
}

// rewrite writes a file so that it is the old or the new one at any time.
func rewrite(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := durable.CreateIn(root, name)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(0o644)
}
