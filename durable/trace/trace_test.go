//go:build linux

package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestTrace ends a shell at each change of a file: what came before is there, what comes after is not.
func TestTrace(t *testing.T) {
	const script = "mkdir d; echo one >d/a; mv d/a d/b; echo elsewhere >/dev/null; rm d/b; (rmdir d)"
	run := func(fatal int, after bool) (*Tracer, string, []string) {
		t.Helper()
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		tracer := &Tracer{Below: dir, Fatal: fatal, After: after}
		status, err := tracer.Run(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		if survived := status.Exited() && status.ExitStatus() == 0; survived != (fatal == 0) {
			t.Errorf("call %d, after %v: exit status %v", fatal, after, *status)
		}
		var left []string
		for _, name := range []string{"d", "d/a", "d/b"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				if info.Size() == 0 && !info.IsDir() {
					name += " (empty)"
				}
				left = append(left, name)
			}
		}
		return tracer, tracer.Killed.String(), left
	}
	tracer, _, left := run(0, false)
	steps := []struct {
		what string
		left []string // afterwards
	}{
		{"mkdir d", []string{"d"}},
		{"open d/a", []string{"d", "d/a (empty)"}},
		{"write d/a", []string{"d", "d/a"}},
		{"rename d/a", []string{"d", "d/b"}},
		{"unlink d/b", []string{"d"}},
		{"unlink d", nil},
	}
	if tracer.Calls != len(steps) || left != nil {
		t.Fatalf("%d calls, %q left", tracer.Calls, left)
	}
	var before []string
	for i, step := range steps {
		for _, after := range []bool{false, true} {
			want := before
			if after {
				want = step.left
			}
			if _, what, left := run(i+1, after); what != step.what || !slices.Equal(left, want) {
				t.Errorf("killed at %q with %q left, want %q with %q, after %v", what, left, step.what, want, after)
			}
		}
		before = step.left
	}
}
