package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLayout compares the map in docs/layout.md with the tree: every directory with Go code of this module stands there, and
// everything that stands there exists.
func TestLayout(t *testing.T) {
	const root = "../.."
	data, err := os.ReadFile(filepath.Join(root, "docs", "layout.md"))
	if err != nil {
		t.Fatal(err)
	}
	mapped := rooms(string(data))
	for _, room := range mapped {
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(room))); err != nil || !info.IsDir() {
			t.Errorf("docs/layout.md shows %s/, which does not exist", room)
		}
	}
	for _, name := range slices.Concat(layers...) {
		if !slices.Contains(mapped, name) {
			t.Errorf("docs/layout.md does not show %s/", name)
		}
	}
}

// rooms returns the directories of a tree in which each line begins with names that end with a slash, below those of the line
// above that is indented less.
func rooms(page string) []string {
	_, tree, _ := strings.Cut(page, "```\n")
	tree, _, _ = strings.Cut(tree, "```\n")
	var found []string
	above := []struct {
		indent int
		path   string
	}{{-1, ""}}
	for line := range strings.Lines(tree) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		for indent <= above[len(above)-1].indent {
			above = above[:len(above)-1]
		}
		parent := above[len(above)-1].path
		for i, word := range strings.Fields(line) {
			name, isRoom := strings.CutSuffix(word, "/")
			if !isRoom {
				break
			}
			found = append(found, path.Join(parent, name))
			if i == 0 {
				above = append(above, struct {
					indent int
					path   string
				}{indent, path.Join(parent, name)})
			}
		}
	}
	return found
}

func TestRooms(t *testing.T) {
	got := rooms("text\n```\na/     what a/ is\n  b/ c/  two\n         and what they do\nd/e/   one\n```\n")
	if want := []string{"a", "a/b", "a/c", "d/e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
