package store

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestPackages keeps a list of packages beside the archives, by digest and edition, until its archive is gone.
func TestPackages(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	entry := Entry{StoredArchive: schema.StoredArchive{Name: "demo", Version: "1.0.0", SHA256: "00ff"}}
	if _, err := s.ReadPackages(entry, "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list before the first: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := l.WritePackages(entry, "1", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := s.ReadPackages(entry, "1"); err != nil || string(data) != text {
			t.Errorf("%q, want %q (%v)", data, text, err)
		}
	}
	if _, err := s.ReadPackages(entry, "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list of another edition: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(t.Context(), 0, nil); err != nil { // the store has no such archive
		t.Fatal(err)
	}
	if _, err := os.Stat(s.packagesPath(entry, "1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the list is still there: %v", err)
	}
}
