//go:build linux

package faults

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSabotagesCompile: the source still has the text that each sabotage replaces, and the package compiles with the replacement.
func TestSabotagesCompile(t *testing.T) {
	const source = "../../.."
	for _, s := range Sabotages {
		t.Run(s.Name, func(t *testing.T) {
			overlay, err := s.overlay(source, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", overlay, "./"+filepath.Dir(s.file))
			build.Dir = source
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// TestSabotageIsStale: when the source changes, a sabotage that no longer applies is an error, not a build without it.
func TestSabotageIsStale(t *testing.T) {
	s := &Sabotage{Name: "stale", file: "sabotage.go", from: "text that this file does not " + "have"}
	if _, err := s.overlay(".", t.TempDir()); err == nil {
		t.Error("want an error")
	}
}
