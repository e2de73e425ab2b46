package main

import (
	"maps"
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

// TestArgumentsOfDocuments checks that each command in a block has the arguments that it needs.
func TestArgumentsOfDocuments(t *testing.T) {
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"`)
	for _, document := range files(t, "README.md", "docs/*.md", "docs/guides/*.md", "example-*/README.md") {
		for _, line := range shown(t, document, func(language string) bool { return language != inText }) {
			for part := range strings.SplitSeq(operators.Replace(quoted.ReplaceAllString(line, "quoted")), ";") {
				words := strings.Fields(shellSyntax.ReplaceAllString(part, ""))
				at := slices.Index(words, "solutionctl")
				if at < 0 {
					continue
				}
				cmd, args, err := newTestRoot().Find(words[at+1:])
				if err == nil {
					err = cmd.ParseFlags(args)
				}
				if err == nil && cmd.Args != nil {
					err = cmd.Args(cmd, cmd.Flags().Args())
				}
				if err != nil && !strings.HasPrefix(err.Error(), "unexpected argument") { // a variable may hold flags
					t.Errorf("%s: %s: %v", document, line, err)
				}
			}
		}
	}
}

// elsewhere has the commands that no script can run beside others, with the test that does.
var elsewhere = map[string]string{"solutionctl deploy purge": "TestPurge of deployer"}

// otherPrograms has the programs of others that documents show, with the words by which a use of one is known.
var otherPrograms = map[string]string{
	"cosign": "verify-blob verify-blob-attestation", "chmod": "", "cp": "", "diff": "", "helm": "pull", "jq": "", "kube-apiserver": "",
	"kubectl": "apply config configmap create get restart rollout secret set-cluster set-context token use-context",
	"make":    "image release", "openssl": "dgst rand", "osv-scanner": "scan", "promtool": "check", "sha256sum": "", "systemctl": "enable",
}

// otherwiseRun has the uses of other programs that are in no script, with what runs them.
var otherwiseRun = map[string]string{
	"cosign verify-blob":             "TestCheckDownload of cmd/release",
	"cosign verify-blob-attestation": "TestCheckDownload of cmd/release",
	"diff":                           "diff -r in .ci/check",
	"helm pull":                      "TestHelmPull of deployer/e2e",
	"kube-apiserver":                 "the API server of deployer/e2e, wherever a script logs in",
	"kubectl config set-cluster":     "TestConsoleInTheCluster of deployer/e2e/guide",
	"kubectl config set-context":     "TestConsoleInTheCluster of deployer/e2e/guide",
	"kubectl config use-context":     "TestConsoleInTheCluster of deployer/e2e/guide",
	"kubectl create secret":          "TestConsoleInTheCluster of deployer/e2e/guide",
	"kubectl create token":           "TestConsoleInTheCluster of deployer/e2e/guide",
	"make image":                     ".ci/image in TestImage of deployer/e2e",
	"make release":                   ".ci/release in .ci/check",
	"openssl rand":                   "TestConsoleInTheCluster of deployer/e2e/guide",
	"osv-scanner scan":               "TestOSVScanner",
	"sha256sum":                      "TestCheckDownload of cmd/release",
}

// TestOtherProgramsOfDocuments finds, for each use of another program that a document shows, a script, a block of a guide that tests run, or
// an entry in the table.
func TestOtherProgramsOfDocuments(t *testing.T) {
	var tested []invocation
	for _, line := range testedLines(t) {
		tested = append(tested, otherInvocations(line)...)
	}
	unused := maps.Clone(otherwiseRun)
	for _, document := range files(t, "README.md", "docs/*.md", "docs/guides/*.md") {
		for _, line := range shown(t, document, func(language string) bool { return language == "console" }) {
			if program, _, _ := strings.Cut(line, " "); program != "solutionctl" && program != "export" && len(otherInvocations(line)) == 0 {
				t.Errorf("%s: the programs of this test do not include %s: %s", document, program, line)
			}
		}
		for _, line := range shown(t, document, func(language string) bool { return language == "console" || language == "" }) {
			for _, one := range otherInvocations(line) {
				delete(unused, one.command)
				if _, is := otherwiseRun[one.command]; !is && !slices.ContainsFunc(tested, one.isIn) {
					t.Errorf("%s: no test runs %s with %s: %s", document, one.command, one.uses, line)
				}
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("no document shows what the table has: %s", slices.Sorted(maps.Keys(unused)))
	}
}

// otherInvocations returns what a line runs of other programs.
func otherInvocations(line string) (found []invocation) {
	for part := range strings.SplitSeq(operators.Replace(unquoted(line)), ";") {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(part), "exec "))
		if len(words) == 0 {
			continue
		}
		verbs, is := otherPrograms[words[0]]
		if !is {
			continue
		}
		one := invocation{command: words[0]}
		for _, word := range words[1:] {
			name, _, _ := strings.Cut(word, "=")
			switch {
			case slices.Contains(strings.Fields(verbs), word):
				one.command += " " + word
			case strings.HasPrefix(name, "--") && name != "--now": // which needs a running systemd
				one.uses = append(one.uses, name)
			}
		}
		found = append(found, one)
	}
	return found
}

// testedInvocations returns what scripts and guides run.
func testedInvocations(t *testing.T, program *cobra.Command) (all []invocation) {
	t.Helper()
	for _, line := range testedLines(t) {
		found, _ := invocations(program, line) // scripts mistype on purpose, too
		all = append(all, found...)
	}
	return all
}

// testedLines returns the lines of scripts, and of the blocks of guides that tests run.
func testedLines(t *testing.T) (lines []string) {
	t.Helper()
	for _, guide := range files(t, "docs/guides/*.md") {
		lines = append(lines, shown(t, guide, func(language string) bool { return isRun(guide, language) })...)
	}
	for _, script := range files(t, "testdata/script/*.txtar", "deployer/e2e/testdata/*/*.txtar") {
		text, _, _ := strings.Cut(read(t, script), "\n-- ")
		lines = append(lines, slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(line, "cp ") })...) // a command of scripts
	}
	return lines
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
	operators  = strings.NewReplacer("&&", ";", "|", ";", "(", ";")
)

// unquoted returns a line in which a shell and this test find the same operators.
func unquoted(line string) string {
	line = nested.ReplaceAllString(line, "$1")
	return quoted.ReplaceAllStringFunc(line, func(text string) string { return shellSigns.ReplaceAllString(text, "_") })
}

// invocations returns what a line of a shell or of a script runs of this program; not what a script expects to fail.
func invocations(root *cobra.Command, line string) (found []invocation, err error) {
	if failing.MatchString(line) {
		return nil, nil
	}
	for part := range strings.SplitSeq(operators.Replace(unquoted(line)), ";") {
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
