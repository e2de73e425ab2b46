package store

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/schema/report"
)

// needMounts skips a test where no file system can be mounted, as without root; in CI the test fails.
func needMounts(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("nothing can be mounted here: %v", err)
		}
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
}

func mounted(t *testing.T, source, kind string, flags uintptr, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(source, dir, kind, flags, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// tool runs a program. Where it is not installed the test is skipped, and fails in CI.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// TestFullDisk adds to a file system that is too small, in each way it can be.
func TestFullDisk(t *testing.T) {
	needMounts(t)
	for _, size := range []string{"64k", "1m", "8196k"} {
		t.Run(size, func(t *testing.T) {
			dir := mounted(t, "none", "tmpfs", 0, "size="+size)
			original := filepath.Join(t.TempDir(), "demo.iso")
			writeArchive(t, original)
			s := open(t, filepath.Join(dir, "store"))
			_, _, err := add(s, newSource(t, original, "1.0.0"))
			if report.CodeOf(err) != report.NoSpace {
				t.Errorf("got %v", err)
			}
			if left := files(t, s.Dir()); left != nil {
				t.Errorf("left %q", left)
			}
		})
	}
}

// xfs returns a file system that shares blocks between files. Where there is no loop device, as in many containers, the test is skipped, also
// in CI.
func xfs(t *testing.T) string {
	t.Helper()
	needMounts(t)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 320<<20); err != nil {
		t.Fatal(err)
	}
	tool(t, "mkfs.xfs", "-q", disk)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", disk, dir).CombinedOutput(); err != nil {
		t.Skipf("XFS cannot be mounted here: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestReflink(t *testing.T) {
	dir := xfs(t)
	original := filepath.Join(dir, "demo.iso")
	want := writeArchive(t, original)
	unix.Sync()
	before := used(t, dir)
	s := open(t, filepath.Join(dir, "store"))
	_, method, err := add(s, newSource(t, original, "1.0.0"))
	if err != nil || method != Reflinked {
		t.Fatalf("%s, %v", method, err)
	}
	unix.Sync()
	if more := used(t, dir) - before; more > 1<<20 {
		t.Errorf("%d bytes more are in use", more)
	}
	if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) {
		t.Error("other content")
	}
	t.Run("altered", func(t *testing.T) {
		source := newSource(t, original, "2.0.0")
		f, err := os.OpenFile(original, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{want[9] ^ 1}, 9)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := add(s, source); report.CodeOf(err) != report.Corrupt {
			t.Errorf("got %v", err)
		}
		if got := content(t, s); len(got) != 1 || !bytes.Equal(got["demo-1.0.0"], want) {
			t.Error("what was imported before is not what it was")
		}
	})
	t.Run("appended to", func(t *testing.T) {
		longer := filepath.Join(dir, "longer.iso")
		want := writeArchive(t, longer)
		source := newSource(t, longer, "3.0.0")
		f, err := os.OpenFile(longer, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("more")
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if _, method, err := add(s, source); err != nil || method != Reflinked {
			t.Fatalf("%s, %v", method, err)
		}
		if got := content(t, s); !bytes.Equal(got["demo-3.0.0"], want) {
			t.Error("the store has other bytes than those that were verified")
		}
	})
}

func used(t *testing.T, dir string) int64 {
	t.Helper()
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		t.Fatal(err)
	}
	return int64(system.Blocks-system.Bfree) * system.Bsize
}

func TestInPlace(t *testing.T) {
	addInPlace := func(t *testing.T, s *Store, path string) (Entry, error) {
		t.Helper()
		l, err := s.Lock()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock() //nolint:errcheck // nothing was written
		e, _, err := l.Add(t.Context(), newSource(t, path, "1.0.0"), StageOptions{InPlace: true})
		return e, err
	}
	refused := func(t *testing.T, path, reason string) {
		t.Helper()
		s := open(t, filepath.Join(t.TempDir(), "store"))
		_, err := addInPlace(t, s, path)
		if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v", err)
		}
		if left := files(t, s.Dir()); left != nil {
			t.Errorf("left %q", left)
		}
	}
	t.Run("writable", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("what others own is refused for that")
		}
		path := filepath.Join(t.TempDir(), "demo.iso")
		writeArchive(t, path)
		refused(t, path, "can be written")
	})
	t.Run("another owner", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "demo.iso")
		writeArchive(t, path)
		if os.Geteuid() == 0 {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, path, "does not belong to root")
	})
	t.Run("read-only bind mount of what can be written", func(t *testing.T) {
		needMounts(t)
		below := t.TempDir()
		writeArchive(t, filepath.Join(below, "demo.iso"))
		dir := mounted(t, below, "", unix.MS_BIND, "")
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		refused(t, filepath.Join(dir, "demo.iso"), "can be written")
	})
	t.Run("read-only medium", func(t *testing.T) {
		needMounts(t)
		dir := mounted(t, "none", "tmpfs", 0, "")
		path := filepath.Join(dir, "demo.iso")
		data := writeArchive(t, path)
		if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		s := open(t, filepath.Join(t.TempDir(), "store"))
		e, err := addInPlace(t, s, path)
		if err != nil {
			t.Fatal(err)
		}
		if e.Path != path || !e.InPlace {
			t.Errorf("entry %+v", e)
		}
		if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], data) {
			t.Error("other content")
		}
		if got, want := files(t, s.Dir()), []string{bundleName(e, vendorBundles[0]), "demo-1.0.0.json"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		bringIntoStore(t, s, path, data)
		if e, err = addInPlace(t, s, path); err != nil || e.InPlace {
			t.Errorf("in the store, it does not move back: %+v, %v", e, err)
		}
		if err := remove(s, e.ID()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the archive is gone: %v", err)
		}
	})
}

// bringIntoStore imports an archive that is in place without that: as an upload, which changes nothing, and from a file elsewhere.
func bringIntoStore(t *testing.T, s *Store, path string, data []byte) {
	t.Helper()
	upload := newSource(t, path, "1.0.0")
	upload.Path = "demo.iso" // which is not a path on this host
	if e, method, err := add(s, upload); err != nil || method != Present || !e.InPlace {
		t.Errorf("an upload of it: %s, %+v, %v", method, e, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "demo.iso")
	if err := os.WriteFile(elsewhere, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t, s.Dir())
	for _, failing := range []string{"write record", "rename archive"} {
		s.step = func(name string) error {
			if name == failing {
				return errors.New("no")
			}
			return nil
		}
		_, _, err := add(s, newSource(t, elsewhere, "1.0.0"))
		s.step = func(string) error { return nil }
		if tidied := s.Tidy(t.Context(), 0, nil); err == nil || tidied != nil {
			t.Fatal(err, tidied)
		}
		if left := files(t, s.Dir()); !slices.Equal(left, before) {
			t.Errorf("%s: left %q, want %q", failing, left, before)
		}
	}
	e, method, err := add(s, newSource(t, elsewhere, "1.0.0"))
	if err != nil || method != Copied || e.InPlace || e.Path != s.archivePath(e.ID()) || e.Original != path {
		t.Errorf("brought into the store: %s, %+v, %v", method, e, err)
	}
	if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], data) {
		t.Error("the store has other content")
	}
}

// TestFIFO: a named pipe in place of an archive blocks nothing.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	e, _, err := add(s, newSource(t, original, "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(e.Path), syscall.Mkfifo(e.Path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(e); report.CodeOf(err) != report.Corrupt {
		t.Errorf("got %v", err)
	}
}

func TestReadOnlyConfiguration(t *testing.T) {
	needMounts(t)
	dir := mounted(t, "none", "tmpfs", 0, "")
	c := &Configuration{Path: filepath.Join(dir, "solutions.yaml")}
	if err := os.WriteFile(c.Path, []byte(flatForm), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", "")))
	for name, err := range map[string]error{"edit": err, "check": c.Check()} {
		if hints := strings.Join(report.Hints(err), " "); !errors.Is(err, syscall.EROFS) || !strings.Contains(hints, "--solutions-file") {
			t.Errorf("%s: %v, hints %q", name, err, hints)
		}
	}
}
