//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// benchmarkImport compares an import with reading the archive once, and with copying it: with the archive in the page
// cache and without, and on a file system whose files can share their blocks.
func benchmarkImport(ctx context.Context, s settings) error {
	keyName := filepath.Join(s.dir, "import")
	archive, err := buildSigned(ctx, s, keyName)
	if err != nil {
		return err
	}
	place := filepath.Join(s.dir, "import-here")
	for _, cached := range []bool{true, false} {
		if err = importFrom(ctx, s, archive, keyName+".pub", place, cached); err != nil {
			return err
		}
	}
	return benchmarkReflink(ctx, s, archive, keyName+".pub")
}

// benchmarkReflink imports on XFS, in a file that is mounted for this.
func benchmarkReflink(ctx context.Context, s settings, archive, key string) error {
	if _, missing := exec.LookPath("mkfs.xfs"); missing != nil || os.Geteuid() != 0 {
		fmt.Println("\nImport on XFS: left out, it needs root and mkfs.xfs")
		return nil
	}
	return onFileSystem(ctx, s.dir, "xfs", "loop", max(3*s.size, 1<<30), func(place string) error {
		there := filepath.Join(place, filepath.Base(archive))
		for _, suffix := range []string{"", ".sigstore.json"} {
			if output, failure := exec.CommandContext(ctx, "cp", archive+suffix, there+suffix).CombinedOutput(); failure != nil {
				return fmt.Errorf("%w: %s", failure, output)
			}
		}
		for _, cached := range []bool{true, false} {
			if err := importFrom(ctx, s, there, key, filepath.Join(place, "import"), cached); err != nil {
				return err
			}
		}
		return nil
	})
}

// onFileSystem calls a function with a directory where a file system of this kind is mounted, which is in a file.
func onFileSystem(ctx context.Context, dir, kind, options string, size int64, do func(place string) error) (err error) {
	disk, place := filepath.Join(dir, kind), filepath.Join(dir, kind+"-mounted")
	f, err := os.Create(disk)
	if err != nil {
		return err
	}
	if err = errors.Join(f.Truncate(size), f.Close(), os.Mkdir(place, 0o755)); err != nil {
		return err
	}
	for _, command := range [][]string{{"mkfs." + kind, "-q", disk}, {"mount", "-o", options, disk, place}} {
		if output, failure := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); failure != nil {
			return fmt.Errorf("%v: %w: %s", command, failure, output)
		}
	}
	defer func() { err = errors.Join(err, unix.Unmount(place, 0), os.Remove(disk)) }()
	return do(place)
}

func importFrom(ctx context.Context, s settings, archive, key, place string, cached bool) error {
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	ready := func() error {
		if failure := errors.Join(os.RemoveAll(place), os.MkdirAll(place, 0o755)); failure != nil || cached {
			return failure
		}
		return forget(archive)
	}
	copied := filepath.Join(place, "copy.iso")
	contestants := []contestant{
		{"read and hash once: openssl dgst -sha256", []string{"openssl", "dgst", "-sha256", archive}, ready},
		{"read once: cat", []string{"sh", "-c", `cat "$0" >/dev/null`, archive}, ready},
		{"solutionctl verify", []string{s.binary, "verify", "--quiet", "--key", key, archive}, ready},
		{"copy: cp, sync", []string{"sh", "-c", `cp --reflink=auto "$0" "$1" && sync "$1"`, archive, copied}, ready},
		{"solutionctl deploy import", append([]string{s.binary}, importCommand(archive, key, place)...), ready},
	}
	samples, err := compare(ctx, s.rounds, contestants...)
	if err != nil {
		return err
	}
	where := "in the page cache"
	if !cached {
		where = "not in the page cache"
	}
	kind, err := fileSystem(place)
	if err != nil {
		return err
	}
	printComparison(fmt.Sprintf("Import on %s, archive of %d MiB %s", kind, info.Size()>>20, where), info.Size(), contestants, samples)
	return os.RemoveAll(place)
}

// forget takes a file out of the page cache.
func forget(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
}

func fileSystem(path string) (string, error) {
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return "", err
	}
	switch system.Type {
	case unix.XFS_SUPER_MAGIC:
		return "XFS", nil
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", nil
	default:
		return fmt.Sprintf("file system %#x", system.Type), nil
	}
}

// importCommand returns the arguments that import an archive on a host without a cluster, with everything below place.
func importCommand(archive, key, place string) []string {
	store := filepath.Join(place, "store")
	return []string{
		"deploy", "import", "--quiet", "--no-cluster", "--mount", "never", "--key", key, "--store", store,
		"--state", filepath.Join(store, "state.json"), "--solutions-file", filepath.Join(place, "solutions.yaml"), "--nginx-dir", filepath.Join(place, "nginx"), archive,
	}
}
