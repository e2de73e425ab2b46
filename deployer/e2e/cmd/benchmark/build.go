//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/durable"
)

// benchmarkBuild compares a build with what MetalK8s documents, skopeo and genisoimage, and with the floor: hashing the
// layers and writing them to one file.
func benchmarkBuild(ctx context.Context, s settings) error {
	set, err := makeImages(filepath.Join(s.dir, "set"), s.size, s.layers)
	if err != nil {
		return err
	}
	host, stop, err := set.serve()
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // the process ends soon
	for _, from := range []struct {
		title           string
		source, foreign func(name string) string
	}{
		{
			"from a registry on the loopback interface",
			func(name string) string { return "docker://" + host + "/" + name + ":1.0.0" },
			func(name string) string { return "--src-tls-verify=false docker://" + host + "/" + name + ":1.0.0" },
		},
		{
			"from an OCI image layout",
			func(name string) string { return "oci:" + filepath.Join(set.dir, "images") + ":" + name },
			func(name string) string { return "oci:" + filepath.Join(set.dir, "images") + ":" + name },
		},
	} {
		contestants, err := builders(s, set, from.source, from.foreign)
		if err != nil {
			return err
		}
		samples, err := compare(ctx, s.rounds, contestants...)
		if err != nil {
			return err
		}
		printComparison(fmt.Sprintf("Build, %d MiB of layers, %s", set.payload>>20, from.title), set.payload, contestants, samples)
	}
	return os.RemoveAll(set.dir)
}

func builders(s settings, set *imageSet, source, foreign func(string) string) ([]contestant, error) {
	project, out := filepath.Join(s.dir, "project"), filepath.Join(s.dir, "out")
	if err := set.writeProject(project, source); err != nil {
		return nil, err
	}
	clean := func() error {
		if err := os.RemoveAll(out); err != nil {
			return err
		}
		return os.Mkdir(out, 0o755)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	contestants := []contestant{
		{"solutionctl build", []string{s.binary, "build", "--quiet", project, "--to", out}, clean},
		{"hash and write (floor)", []string{self, "floor-step", filepath.Join(set.dir, "images", "blobs", "sha256"), filepath.Join(out, "floor")}, clean},
	}
	for _, tool := range []string{"skopeo", "genisoimage"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Printf("%s is not installed: its row is left out\n", tool)
			return contestants, nil
		}
	}
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, name := range set.names {
		dir := filepath.Join(out, "tree", "images", name)
		fmt.Fprintf(&script, "mkdir -p %s\nskopeo copy -q --insecure-policy --format v2s2 --dest-compress %s dir:%s/1.0.0\n", dir, foreign(name), dir)
	}
	iso := filepath.Join(out, "rival.iso")
	fmt.Fprintf(&script, "genisoimage -quiet -r -J -l -iso-level 3 -joliet-long -o %s %s\nsync -d %s\n", iso, filepath.Join(out, "tree"), iso)
	return append(contestants, contestant{"skopeo and genisoimage", []string{"sh", "-c", script.String()}, clean}), nil
}

// hashAndWrite is the floor: it hashes every file of a directory and writes it to its place in one file, four at once. It has the means of a build:
// the space is reserved, a piece stays in a processor's cache, and writing to the medium begins early.
func hashAndWrite(dir, target string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	offsets := make([]int64, len(entries)+1)
	for i, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		offsets[i+1] = offsets[i] + (info.Size()+4095)/4096*4096
	}
	if err := durable.Allocate(out, offsets[len(entries)]); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(4)
	for i, entry := range entries {
		group.Go(func() error { return hashAndWriteOne(filepath.Join(dir, entry.Name()), out, offsets[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}

// writtenAtOnce is after how many bytes writing to the medium begins.
const writtenAtOnce = 8 << 20

func hashAndWriteOne(name string, out *os.File, at int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	to := io.MultiWriter(h, io.NewOffsetWriter(out, at))
	buffer := make([]byte, 256<<10)
	for {
		n, err := io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(f, writtenAtOnce), buffer)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		durable.StartWriteback(out, at, n)
		at += n
	}
	if fmt.Sprintf("%x", h.Sum(nil)) != filepath.Base(name) {
		return fmt.Errorf("%s has another digest", name)
	}
	return nil
}

// buildLarge builds an archive of random layers of the given size and returns its path, or that of the one built before.
func buildLarge(ctx context.Context, s settings, size int64) (string, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("large-%d", size))
	path := filepath.Join(dir, "benchmark-1.0.0.iso")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	set, err := makeImages(filepath.Join(s.dir, "set"), size, s.layers)
	if err != nil {
		return "", err
	}
	if err = set.writeProject(dir, func(name string) string { return "oci:" + filepath.Join(set.dir, "images") + ":" + name }); err != nil {
		return "", err
	}
	if _, err = measure(ctx, s.binary, "build", "--quiet", dir, "--to", dir); err != nil {
		return "", err
	}
	return path, os.RemoveAll(set.dir)
}
