package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// invocation is a command line of this program: the command, and what its tests have to have, too.
type invocation struct {
	command string
	uses    []string // its flags, and "oci:" for an argument that names an artifact in a registry
}

// TestCommandsOfDocuments finds, for each command that a document shows, a script or a block of a guide that tests run and that has this
// command with all of its flags: what a reader copies has been run.
func TestCommandsOfDocuments(t *testing.T) {
	program := newTestRoot()
	tested := testedInvocations(t, program)
	for _, document := range files(t, "README.md", "docs/*.md", "docs/guides/*.md") {
		for _, line := range shown(t, document, func(language string) bool { return !isRun(document, language) }) {
			invoked, err := invocations(program, line)
			if err != nil {
				t.Errorf("%s: %s: %v", document, line, err)
			}
			for _, one := range invoked {
				if _, is := elsewhere[one.command]; !is && !slices.ContainsFunc(tested, one.isIn) {
					t.Errorf("%s: no test runs %s with %s: %s", document, one.command, one.uses, line)
				}
			}
		}
	}
}

// elsewhere has the commands that no script can run beside others, with the test that does.
var elsewhere = map[string]string{"solutionctl deploy purge": "TestPurge of deployer"}

// testedInvocations returns what scripts and guides run.
func testedInvocations(t *testing.T, program *cobra.Command) (all []invocation) {
	t.Helper()
	var lines []string
	for _, guide := range files(t, "docs/guides/*.md") {
		lines = append(lines, shown(t, guide, func(language string) bool { return isRun(guide, language) })...)
	}
	for _, script := range files(t, "testdata/script/*.txtar", "deployer/e2e/testdata/*/*.txtar") {
		text, _, _ := strings.Cut(read(t, script), "\n-- ")
		lines = append(lines, strings.Split(text, "\n")...)
	}
	for _, line := range lines {
		found, _ := invocations(program, line) // scripts mistype on purpose, too
		all = append(all, found...)
	}
	return all
}

// isRun reports that tests run the blocks in a language: those of guides for a shell.
func isRun(document, language string) bool {
	return language == "sh" && filepath.Base(filepath.Dir(document)) == "guides"
}

// files returns the files of the repository that match patterns.
func files(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no file is %s: %v", pattern, err)
		}
		names = append(names, found...)
	}
	return names
}

// isIn reports that other is the same command with at least the same flags.
func (i invocation) isIn(other invocation) bool {
	return i.command == other.command && !slices.ContainsFunc(i.uses, func(use string) bool { return !slices.Contains(other.uses, use) })
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	fence        = regexp.MustCompile("(?ms)^ *```([a-z]*)[^\n]*\n(.*?)^ *```$")
	continuation = regexp.MustCompile(`\\\n\s*`)
	prompt       = regexp.MustCompile(`^\s*[$#] `)
	span         = regexp.MustCompile("`(solutionctl [^`]+)`")
)

// inText is the language of code in a sentence.
const inText = "in text"

// shown returns the lines of a document that are typed, of the languages of blocks that are wanted.
func shown(t *testing.T, document string, wanted func(language string) bool) []string {
	t.Helper()
	var lines []string
	text := read(t, document)
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		if !wanted(block[1]) || block[1] == "text" {
			continue
		}
		for line := range strings.Lines(continuation.ReplaceAllString(block[2], "")) {
			if block[1] != "console" || prompt.MatchString(line) { // else it is printed
				lines = append(lines, strings.TrimSpace(prompt.ReplaceAllString(line, "")))
			}
		}
	}
	if wanted(inText) {
		for _, code := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			lines = append(lines, code[1])
		}
	}
	return lines
}

var (
	failing    = regexp.MustCompile(`^\s*(!|fails )`) // of a script
	nested     = regexp.MustCompile(`\bsh -c '(.*)'`)
	quoted     = regexp.MustCompile(`'[^']*'|"[^"]*"`) // in which a shell finds no operators
	shellSigns = regexp.MustCompile(`[|&;<># (]`)
)

// invocations returns what a line of a shell or of a script runs of this program; not what a script expects to fail.
func invocations(root *cobra.Command, line string) (found []invocation, err error) {
	if failing.MatchString(line) {
		return nil, nil
	}
	line = nested.ReplaceAllString(line, "$1")
	line = quoted.ReplaceAllStringFunc(line, func(text string) string { return shellSigns.ReplaceAllString(text, "_") })
	for part := range strings.SplitSeq(strings.NewReplacer("&&", ";", "|", ";", "(", ";").Replace(line), ";") {
		words := strings.Fields(shellSyntax.ReplaceAllString(part, ""))
		at := slices.Index(words, "solutionctl")
		if at < 0 {
			continue
		}
		cmd, args, failure := root.Find(words[at+1:])
		if failure != nil {
			err = failure
			continue
		}
		found = append(found, invocation{cmd.CommandPath(), uses(cmd, args)})
	}
	return found, err
}

// uses returns what the arguments of a command use of it.
func uses(cmd *cobra.Command, args []string) []string {
	var names []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case strings.HasPrefix(strings.Trim(arg, `'"`), "oci://"):
			names = append(names, "oci:")
		case strings.HasPrefix(name, "--"):
			names = append(names, name)
		case len(name) > 1 && name[0] == '-':
			cmd.InheritedFlags() // adds them
			if flag := cmd.Flags().ShorthandLookup(name[1:2]); flag != nil {
				names = append(names, "--"+flag.Name)
			}
		}
	}
	return names
}
