package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/docs/guides"
)

// vulnerability is an entry of the database of OSV about a package of the guide.
const vulnerability = `{"schema_version": "1.6.0", "id": "GHSA-35jh-r3h4-6jhm", "modified": "2024-01-01T00:00:00Z", "affected": [{"package": {"ecosystem": "npm", "name": "lodash"},
"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "4.17.21"}]}]}]}`

// TestOSVScanner gives the lists of packages of the guide to osv-scanner, without a network: it finds what its database has of them.
func TestOSVScanner(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a scanner, which 'make check' installs")
	}
	scanner, err := filepath.Abs("../../bin/osv-scanner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = os.Stat(scanner); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("osv-scanner is missing: .ci/tools osv-scanner")
	}
	dir := t.TempDir()
	steps, err := guides.Steps("packages.md")
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(dir, "osv-scanner", "npm")
	if err = os.MkdirAll(database, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(database, "all.zip"))
	if err != nil {
		t.Fatal(err)
	}
	entries := zip.NewWriter(file)
	entry, err := entries.Create("GHSA-35jh-r3h4-6jhm.json")
	if err == nil {
		_, err = entry.Write([]byte(vulnerability))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err = entries.Close(); err != nil {
		t.Fatal(err)
	}
	if err = file.Close(); err != nil {
		t.Fatal(err)
	}
	shell := func(script string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(scanner)+":"+os.Getenv("PATH"), "HOME="+dir, "OUTPUT="+dir, "SOLUTIONCTL_CONFIG="+os.DevNull, "OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY="+dir)
		out, failure := cmd.CombinedOutput()
		return string(out), failure
	}
	if out, failure := shell(guides.Shell(steps)); failure != nil {
		t.Fatalf("%v\n%s", failure, out)
	}
	lines := shown(t, "../../docs/guides/packages.md", func(language string) bool { return language == "console" })
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "osv-scanner ") })
	if len(lines) != 1 {
		t.Fatalf("the guide shows %q", lines)
	}
	for _, line := range []string{lines[0], strings.ReplaceAll(lines[0], "spdx", "cdx")} {
		out, failure := shell(line)
		status, _ := failure.(*exec.ExitError) //nolint:errorlint // as it is returned
		if status == nil || status.ExitCode() != 1 || !strings.Contains(out, "lodash  | 4.17.20") {
			t.Errorf("%s: %v\n%s", line, failure, out)
		}
	}
}
