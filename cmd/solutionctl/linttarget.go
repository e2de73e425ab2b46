package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lintTarget is what is judged, and the files that findings are shown with.
type lintTarget struct {
	*lint.Target
	path    string
	sources fs.FS // paths as the user knows them
	preview *build.Preview
	closers []io.Closer
}

func (t *lintTarget) close() {
	for _, closer := range t.closers {
		_ = closer.Close() // everything was only read
	}
}

// openLintTarget tells by what lies there: a project, a directory with the content of an archive, an ISO image.
func (a *app) openLintTarget(ctx context.Context, name string) (*lintTarget, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, report.Errorf(report.Usage, "%w", err)
	}
	if !info.IsDir() {
		return openLintArchive(name)
	}
	if _, err = os.Stat(filepath.Join(name, build.ProjectFile)); err == nil {
		return a.openLintProject(ctx, name)
	}
	t := &lintTarget{path: name, sources: oci.Directory(name)}
	t.Target, err = lint.OpenDirectory(t.sources, name)
	return t, err
}

func openLintArchive(name string) (*lintTarget, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	t := &lintTarget{path: name, closers: []io.Closer{f}}
	size, err := f.Seek(0, io.SeekEnd) // devices have no size in their Stat
	if err == nil {
		t.Target, err = lint.OpenISO(f, size, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.sources = t.FS
	return t, nil
}

func (a *app) openLintProject(ctx context.Context, dir string) (*lintTarget, error) {
	t := &lintTarget{path: dir, sources: oci.Directory(dir)}
	project, err := build.Load(dir, build.Overrides{})
	if err != nil {
		t.Target, err = lint.OpenRefused(err, dir)
		return t, err
	}
	t.closers = append(t.closers, project)
	if t.preview, err = project.Preview(); err != nil {
		t.close()
		return nil, err
	}
	resolver, err := a.newResolver(project, buildFlags{})
	if err != nil {
		t.close()
		return nil, err
	}
	t.closers = append(t.closers, resolver)
	local := project.LocalImages(ctx, resolver)
	source := lint.Source{FS: t.preview, Build: project.Build, Solution: t.preview.Solution, SourcePath: t.preview.Source}
	for _, ref := range t.preview.Solution.Spec.Images {
		source.Images = append(source.Images, lint.Image{Ref: ref, Content: local[ref]})
	}
	t.Target, err = lint.OpenProject(source, dir)
	return t, err
}

// openOlder opens what --against names; without it there is no target.
func (a *app) openOlder(ctx context.Context, name string) (*lintTarget, error) {
	if name == "" {
		return &lintTarget{}, nil
	}
	t, err := a.openLintTarget(ctx, name)
	if err == nil && t.Solution == nil {
		t.close()
		err = report.Errorf(report.Invalid, "%s: the manifest cannot be read", name).WithHint("see: solutionctl lint %s", name)
	}
	return t, err
}

// settings are the flags with the settings of the project where there are none.
func (t *lintTarget) settings(f lintFlags) (lintFlags, error) {
	if t.Build != nil && t.Build.Lint != nil {
		own := t.Build.Lint
		f.failOn = cmp.Or(f.failOn, own.FailOn)
		f.kubernetesVersion = cmp.Or(f.kubernetesVersion, own.KubernetesVersion)
		f.Enable = append(lint.Known(own.Enable), f.Enable...)
		f.Disable = append(lint.Known(own.Disable), f.Disable...)
	}
	f.failOn = cmp.Or(f.failOn, string(report.SeverityError))
	switch report.Severity(f.failOn) {
	case report.SeverityError, report.SeverityWarning:
		return f, nil
	default:
		return f, report.Errorf(report.Usage, "--fail-on %q is unknown", f.failOn).WithHint("choose error or warning")
	}
}

// fixable leaves out fixes of files in which the version was filled in: the text that a fix starts from is not theirs.
func (t *lintTarget) fixable(fixes []lint.Fix) []lint.Fix {
	return slices.DeleteFunc(fixes, func(fix lint.Fix) bool {
		return t.preview != nil && slices.ContainsFunc(fix, func(e lint.Edit) bool { return t.preview.Filled(e.Path) })
	})
}

// writeEdits changes the files of a project and returns their paths.
func (t *lintTarget) writeEdits(edits []lint.Edit) ([]string, error) {
	root, err := os.OpenRoot(t.path)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	var changed []string
	for _, edit := range edits {
		name, ok := t.preview.Place(edit.Path)
		if !ok {
			continue // made of solution.yaml, or from outside of the directories that are copied
		}
		changed = append(changed, path.Join(filepath.ToSlash(t.path), name))
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

// rewrite writes a file so that it is the old or the new one at any time.
func rewrite(root *os.Root, name string, data []byte) error {
	f, err := durable.CreateIn(root, name)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(0o644)
}
