package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// TestManualPages lets mandoc judge the manual page of every command, and checks that each page that it refers to is there.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var out strings.Builder
	if status := run(context.Background(), []string{"docs", "--format", "man", dir}, strings.NewReader(""), io.Discard, &out); status != 0 {
		t.Fatalf("exit status %d: %s", status, &out)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(names) < 50 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "solutionctl-build.1"))
	if err != nil || !strings.HasPrefix(string(data), ".Dd November 14, 2023\n.Dt SOLUTIONCTL-BUILD 1\n") {
		t.Errorf("%.60s, %v", data, err)
	}
	if _, err = exec.LookPath("mandoc"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("mandoc is missing: apt-get install mandoc")
	}
	mandoc(t, names, "-Wwarning")
	// For each reference mandoc would also list the pages of this host, thousands of files: they are checked here, and not part of what it
	// judges the style of.
	for _, name := range names {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range manualReference.FindAllSubmatch(page, -1) {
			if target := filepath.Join(dir, string(found[1])+".1"); !slices.Contains(names, target) {
				t.Errorf("%s refers to %s, which is no page", filepath.Base(name), found[1])
			}
		}
		if err := os.WriteFile(name, manualReference.ReplaceAll(page, []byte("Nm $1")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mandoc(t, names, "-Wstyle")
}

// manualReference matches a reference to another manual page.
var manualReference = regexp.MustCompile(`\bXr (\S+) 1\b`)

// mandoc fails the test for each complaint of this level, or a graver one, about manual pages.
func mandoc(t *testing.T, names []string, level string) {
	t.Helper()
	lint := exec.CommandContext(t.Context(), "mandoc", append([]string{"-Tlint", level}, names...)...)
	if complaints, err := lint.CombinedOutput(); err != nil || len(complaints) > 0 {
		t.Errorf("%v\n%s", err, complaints)
	}
}

// TestExamples parses the examples of every command as the program does. Those of 'deploy plan' are its own: what a user pastes from its
// help changes nothing.
func TestExamples(t *testing.T) {
	var judge func(cmd *cobra.Command)
	judge = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			judgeExample(t, cmd, strings.TrimSpace(line))
		}
		for _, child := range cmd.Commands() {
			judge(child)
		}
	}
	judge(newTestRoot())
}

func newTestRoot() *cobra.Command {
	return newRootCommand(&app{cli.New(strings.NewReader(""), io.Discard, io.Discard, noVariables, nil, "1.2.3")})
}

// shellSyntax matches the rest of a line behind the arguments of its first command.
var shellSyntax = regexp.MustCompile(`\s*[|><&;#].*`)

func judgeExample(t *testing.T, cmd *cobra.Command, line string) {
	t.Helper()
	words := strings.Fields(shellSyntax.ReplaceAllString(line, ""))
	if len(words) == 0 || words[0] != "solutionctl" {
		return
	}
	found, args, err := newTestRoot().Find(words[1:])
	if err == nil {
		err = found.ParseFlags(args)
	}
	if err != nil {
		t.Errorf("example of %q: %s: %v", cmd.CommandPath(), line, err)
		return
	}
	if own := cmd.CommandPath(); strings.HasPrefix(own, "solutionctl deploy plan ") && found.CommandPath() != own {
		t.Errorf("example of %q: %s runs %q", own, line, found.CommandPath())
	}
}

// TestSite finds each page of the documentation in the navigation of the site, and each page of the navigation in the tree.
func TestSite(t *testing.T) {
	const root = "../.."
	data, err := os.ReadFile(filepath.Join(root, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m): (\S+\.md)$`).FindAllStringSubmatch(string(data), -1)
	var navigation []string
	for _, page := range listed {
		navigation = append(navigation, page[1])
		if _, err := os.Stat(filepath.Join(root, page[1])); err != nil {
			t.Errorf("mkdocs.yml lists a page that is not there: %v", err)
		}
	}
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		for _, page := range pages {
			if name := filepath.ToSlash(page[len(root)+1:]); !slices.Contains(navigation, name) {
				t.Errorf("mkdocs.yml does not list %s", name)
			}
		}
	}
}
