package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedTest finds `package.TestName`, `TestName` of `package` and `script.txtar`. TestScript/name is the script of this name.
var namedTest = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz)[A-Z]\\w*)(?:/(\\w+))?[^`]*`(?: of `([a-z0-9/]+)`)?|`([a-z0-9/_-]+\\.txtar)`")

// TestSecurityPage checks that each row of a defence in docs/security.md names a test.
func TestSecurityPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	inTable := false
	for line := range strings.Lines(string(data)) {
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasSuffix(strings.TrimSpace(line), "| test |"):
			inTable = true
		case inTable && !strings.HasPrefix(line, "|---") && !namedTest.MatchString(line):
			t.Errorf("no test stands behind: %s", line)
		}
	}
}

// TestNamedTestsExist checks that each test and script that a document names exists, in the package that it names.
func TestNamedTestsExist(t *testing.T) {
	tests, files := testsOfRepository(t)
	hasFile := func(name string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix("/"+file, "/"+name) })
	}
	named := 0
	for _, page := range files {
		if page != "CONTRIBUTING.md" && (!strings.HasPrefix(page, "docs/") || path.Ext(page) != ".md") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range namedTest.FindAllStringSubmatch(string(data), -1) {
			dir, test, sub, script := found[1]+found[4], found[2], found[3], found[5]
			if test == "TestName" { // stands for one
				continue
			}
			named++
			if strings.HasSuffix(test, "Script") && sub != "" {
				script = sub + ".txtar"
			}
			missing := script != "" && !hasFile(script)
			if test != "" && (len(tests[test]) == 0 || dir != "" && !slices.Contains(tests[test], dir)) {
				missing = true
			}
			if missing {
				t.Errorf("%s names %s, which does not exist", page, found[0])
			}
		}
	}
	if named < 300 {
		t.Errorf("only %d tests are named", named)
	}
}

// testsOfRepository returns the directories that have a test, by its name, and all files.
func testsOfRepository(t *testing.T) (tests map[string][]string, files []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	tests = map[string][]string{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name == ".git" || name == "bin" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		files = append(files, name)
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := fs.ReadFile(root, name)
		for _, found := range declared.FindAllSubmatch(data, -1) {
			tests[string(found[1])] = append(tests[string(found[1])], path.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, files
}
