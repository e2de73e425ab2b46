package durable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/durable"
)

// TestAllocate reserves the space of a file, and takes none where there is too little.
func TestAllocate(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only a test
	blocks := func() int64 {
		var stat unix.Stat_t
		if failure := unix.Fstat(int(f.Fd()), &stat); failure != nil {
			t.Fatal(failure)
		}
		return stat.Blocks
	}
	if err = durable.Allocate(f, 1<<50); !errors.Is(err, unix.ENOSPC) || blocks() != 0 {
		t.Errorf("%v, %d blocks", err, blocks())
	}
	if err = durable.Allocate(f, 1<<20); err != nil || blocks() < 1<<20/512 {
		t.Errorf("%v, %d blocks", err, blocks())
	}
}

// TestAllocateWithoutCount reserves space on a file system that does not count it, as one in memory without a limit.
func TestAllocateWithoutCount(t *testing.T) {
	dir := mounted(t, "tmpfs", "size=0", "tmpfs")
	if err := errors.Join(durable.Allocate(fileIn(t, dir), 1<<20), durable.RequireSpace(dir, 1<<20)); err != nil {
		t.Error(err)
	}
}

// TestAllocateGivesBack asks for all that is free. The last blocks have to describe the others, so that it fails in the end, and nothing stays taken.
func TestAllocateGivesBack(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 256<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-b", "1024", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	dir := mounted(t, "ext4", "loop", image)
	f := fileIn(t, dir)
	if err := errors.Join(f.Truncate(3), f.Sync()); err != nil {
		t.Fatal(err)
	}
	free := func() uint64 {
		var system unix.Statfs_t
		if err := unix.Statfs(dir, &system); err != nil {
			t.Fatal(err)
		}
		return system.Bfree * uint64(system.Bsize)
	}
	before := free()
	if err := durable.Allocate(f, int64(before)); !errors.Is(err, unix.ENOSPC) || free() < before-64<<10 {
		t.Errorf("%v; %d bytes are free, %d before", err, free(), before)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 3 {
		t.Errorf("the file has %v bytes: %v", info, err)
	}
}

// mounted mounts a file system on a new directory.
func mounted(t *testing.T, kind, options, source string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root, to mount a file system")
		}
		t.Skip("needs root, to mount a file system")
	}
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", kind, "-o", options, source, dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

func fileIn(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // only a test
	return f
}
