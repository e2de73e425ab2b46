package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualPages lets mandoc judge the manual page of every command.
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
	lint := exec.CommandContext(t.Context(), "mandoc", append([]string{"-Tlint"}, names...)...)
	lint.Dir = dir
	if complaints, err := lint.CombinedOutput(); err != nil || len(complaints) > 0 {
		t.Errorf("%v\n%s", err, complaints)
	}
}
