package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var (
	mustFail = regexp.MustCompile(`^! exec (kubectl|solutionctl) .*[^&]$`)
	reason   = regexp.MustCompile(`^(stdout|stderr|cmp stdout|cmp stderr) `)
)

// TestFailuresInScripts checks that a command that must fail does so for the expected reason: the line after it matches its output. "fails CODE"
// does that for the program. In a file for the shell, "! command" is the last line, because "set -e" ignores it elsewhere.
func TestFailuresInScripts(t *testing.T) {
	for _, name := range files(t, "testdata/script/*.txtar", "deployer/e2e/testdata/*/*.txtar") {
		script, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(script.Comment)+"\n", "\n")
		for i, line := range lines {
			if mustFail.MatchString(line) && !reason.MatchString(lines[i+1]) {
				t.Errorf("%s:%d: %s: no line after it matches why it fails", filepath.Base(name), i+1, line)
			}
		}
		for _, file := range script.Files {
			lines := strings.Split(strings.TrimSpace(string(file.Data)), "\n")
			if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "! ") }); i >= 0 && i < len(lines)-1 {
				t.Errorf("%s: %s: 'set -e' ignores the result of: %s", filepath.Base(name), file.Name, lines[i])
			}
		}
	}
}
