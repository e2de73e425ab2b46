package build_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build"
)

// TestInputState changes one file after the other: the state follows those that a build reads.
func TestInputState(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		t.Helper()
		s, err := build.InputState(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const head = "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: a}\n"
	write("project/solution.yaml", head+"spec:\n  version: 1.0.0\n  images:\n  - {name: b, tag: '1', source: 'oci:../images'}\n")
	last := state()
	for _, step := range []struct {
		name    string
		change  func()
		changes bool
	}{
		{"nothing", func() {}, false},
		{"a manifest is new", func() { write("project/components/a/a.yaml", "a: 1") }, true},
		{"a manifest is larger", func() { write("project/components/a/a.yaml", "a: 12") }, true},
		{"an image outside the project", func() { write("images/index.json", "{}") }, true},
		{"a file beside the project", func() { write("notes.txt", "a") }, false},
		{"a hidden directory", func() { write("project/.git/index", "a") }, false},
		{"a hidden file", func() { write("project/.a.swp", "a") }, false},
		{"the same size at another time", func() {
			when := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
			if err := os.Chtimes(filepath.Join(project, "components/a/a.yaml"), when, when); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a document that is none", func() { write("project/solution.yaml", "a: [") }, true},
	} {
		step.change()
		now := state()
		if (now != last) != step.changes {
			t.Errorf("%s: changed %t, want %t", step.name, now != last, step.changes)
		}
		last = now
	}
}

// TestInputStateOfLinks names a project and an image by symbolic links, and a document that is not called solution.yaml.
func TestInputStateOfLinks(t *testing.T) {
	dir := t.TempDir()
	const head = "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: a}\n"
	check(t, os.MkdirAll(filepath.Join(dir, "project"), 0o755))
	check(t, os.MkdirAll(filepath.Join(dir, "images-1"), 0o755))
	check(t, os.Symlink("images-1", filepath.Join(dir, "images")))
	check(t, os.Symlink("project", filepath.Join(dir, "link")))
	check(t, os.Symlink("../notes", filepath.Join(dir, "project/notes")))
	check(t, os.WriteFile(filepath.Join(dir, "project/other.yaml"), []byte(head+"spec:\n  version: 1.0.0\n  images:\n  - {name: b, tag: '1', source: 'oci:../images'}\n"), 0o644))
	state := func() (states [3]string) {
		for i, name := range []string{"link/other.yaml", "project/other.yaml", "link"} {
			var err error
			states[i], err = build.InputState(t.Context(), filepath.Join(dir, name))
			check(t, err)
		}
		return states
	}
	last := state()
	for _, step := range []struct {
		name    string
		changes int // states that differ
	}{{"images/index.json", 2}, {"project/new.yaml", 3}, {"notes", 3}} {
		check(t, os.WriteFile(filepath.Join(dir, step.name), []byte("{}"), 0o644))
		now, changed := state(), 0
		for i := range now {
			if now[i] != last[i] {
				changed++
			}
		}
		if changed != step.changes {
			t.Errorf("%s: %d states changed, want %d", step.name, changed, step.changes)
		}
		last = now
	}
}
