package testcluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKeep checks that a directory is filled once for each key, and again when that has failed.
func TestKeep(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	filled := 0
	get := func(key string, failure error) (string, error) {
		return keep("tool", key, isKept, func(dir string) error {
			filled++
			return errors.Join(failure, os.WriteFile(filepath.Join(dir, "file"), []byte(key), 0o600))
		})
	}
	failure := errors.New("no disk")
	if _, err := get("0000000000000001", failure); !errors.Is(err, failure) {
		t.Fatalf("got %v, want %v", err, failure)
	}
	for _, key := range []string{"0000000000000001", "0000000000000002", "0000000000000001"} {
		dir, err := get(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != key {
			t.Errorf("key %s: got %q, %v", key, content, err)
		}
	}
	if filled != 3 {
		t.Errorf("filled %d times, want 3", filled)
	}
}

// TestCompilation checks that names of packages are counted and reported now and then, and errors at once, however the output is cut.
func TestCompilation(t *testing.T) {
	var out bytes.Buffer
	c := &compilation{out: &out, name: "tool", started: time.Now(), reported: time.Now()}
	write := func(text string) {
		t.Helper()
		if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("internal/cpu\nk8s.io/api/co")
	write("re/v1\n# k8s.io/broken\nbroken/x.go:1:1: syntax error\n")
	if want := "# k8s.io/broken\nbroken/x.go:1:1: syntax error\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	out.Reset()
	c.reported = c.reported.Add(-compilationPause)
	write("k8s.io/last\nk8s.io/quiet\n")
	if want := "  tool: 3 packages compiled in 0s\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	c.total = 12
	if got, want := c.progress(time.Minute), "  tool: [######..............] 4 of 12 packages in 1m0s, about 2m0s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
