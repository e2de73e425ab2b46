package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPage compares docs/security.md with the tests that it names: each exists, and each row of a defence names one.
func TestSecurityPage(t *testing.T) {
	const root = "../.."
	data, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`|`([a-z0-9/]+/script/[a-z_]+\\.txtar)`")
	inTable := false
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			inTable = inTable && strings.HasPrefix(line, "|")
			continue
		}
		if strings.HasSuffix(strings.TrimSpace(line), "| test |") {
			inTable = true
			continue
		}
		found := named.FindAllStringSubmatch(line, -1)
		if inTable && found == nil {
			t.Errorf("no test stands behind: %s", line)
		}
		for _, name := range found {
			if !testExists(root, name[1], name[2], name[3]) {
				t.Errorf("docs/security.md names %s, which does not exist", name[0])
			}
		}
	}
}

// testExists looks for a script, or for a test in the files of a package.
func testExists(root, dir, test, script string) bool {
	if script != "" {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(script)))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), "\nfunc "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}
