package archive_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema/report"
)

func opened(t *testing.T, fsys fs.FS) *archive.Archive {
	t.Helper()
	a, err := archive.FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// filesBelow lists the files of a directory.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestExtract(t *testing.T) {
	fsys := demo("1.0.0")
	fsys[".hidden"] = &fstest.MapFile{Data: []byte("dot")}
	fsys[".git/config"] = &fstest.MapFile{Data: []byte("dot")}
	for _, test := range []struct {
		name string
		want []string
	}{
		{".", slices.Sorted(maps.Keys(fsys))},
		{"operator/deploy/crds", []string{"crds/clocks_cr.yaml", "crds/clocks_crd.yaml"}},
		{"operator/deploy/role.yaml", []string{"role.yaml"}},
		{".hidden", []string{".hidden"}},
		{".git", []string{".git/config"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made", "again")
			if err := opened(t, fsys).Extract(t.Context(), test.name, dir); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, filesBelow(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// endless is an archive with a file whose second half cannot be read, and that ends a context before it fails.
type endless struct {
	fs.FS
	file string
	stop func()
}

func (e endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err == nil && name == e.file {
		return endlessFile{f, e.stop}, nil
	}
	return f, err
}

type endlessFile struct {
	fs.File
	stop func()
}

func (f endlessFile) Read(p []byte) (int, error) {
	f.stop()
	return len(p), nil
}

func TestExtractRefuses(t *testing.T) {
	outside := t.TempDir()
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir string)
		why    string
	}{
		{"a file is there", func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, "manifest.yaml"))
		}, "file exists"},
		{"a link to a file is there", func(t *testing.T, dir string) {
			t.Helper()
			link(t, filepath.Join(outside, "new"), filepath.Join(dir, "manifest.yaml"))
		}, "exists"},
		{"a directory is a link out", func(t *testing.T, dir string) {
			t.Helper()
			link(t, outside, filepath.Join(dir, "operator"))
		}, "operator"},
		{"a directory is a link up", func(t *testing.T, dir string) {
			t.Helper()
			link(t, "..", filepath.Join(dir, "operator"))
		}, "operator"},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "out")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			test.change(t, dir)
			err := opened(t, demo("1.0.0")).Extract(t.Context(), ".", dir)
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("error %v, want %q", err, test.why)
			}
			if names := filesBelow(t, outside); len(names) > 0 {
				t.Errorf("written outside: %v", names)
			}
			entries, err := os.ReadDir(parent)
			if err != nil || len(entries) != 1 {
				t.Errorf("written beside: %v, %v", entries, err)
			}
		})
	}
	t.Run("links in the archive", func(t *testing.T) {
		fsys := demo("1.0.0")
		fsys["ui/link"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
		err := opened(t, fsys).Extract(t.Context(), "ui", t.TempDir())
		if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		dir := t.TempDir()
		a := opened(t, demo("1.0.0"))
		a.FS = endless{a.FS, "operator/deploy/role.yaml", stop}
		if err := a.Extract(ctx, "operator/deploy/role.yaml", dir); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if names := filesBelow(t, dir); len(names) > 0 {
			t.Errorf("a part of the file is left: %v", names)
		}
	})
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
