package media_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.iso")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.iso")
	if err := os.Symlink("x.iso", link); err != nil {
		t.Skip("needs symbolic links:", err)
	}
	_, err := media.OpenNoFollow(link)
	if report.CodeOf(err) != report.Invalid || !strings.Contains(strings.Join(report.Hints(err), ""), "x.iso") {
		t.Errorf("symbolic link: %v %q", err, report.Hints(err))
	}
	if _, err := media.OpenNoFollow(dir); report.CodeOf(err) != report.Invalid {
		t.Errorf("directory: %v", err)
	}
	if _, err := media.OpenNoFollow(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || report.CodeOf(err) != report.NotFound {
		t.Errorf("missing file: %v", err)
	}
}

// TestOpenKeepsTheFile is the swap of a path between verification and use.
func TestOpenKeepsTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.iso")
	if err := os.WriteFile(file, []byte("good"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := media.OpenNoFollow(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	evil := file + ".evil"
	if err = os.WriteFile(evil, []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err = os.Rename(evil, file); err != nil {
		t.Skip("this system does not replace open files:", err)
	}
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
	if err != nil || string(got) != "good" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestUnchanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.iso")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := media.OpenNoFollow(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if err := f.Unchanged(); err != nil {
		t.Error(err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if err := f.Unchanged(); report.CodeOf(err) != report.Corrupt {
		t.Errorf("other time: %v", err)
	}
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Unchanged(); report.CodeOf(err) != report.Corrupt {
		t.Errorf("other size: %v", err)
	}
}
