//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// benchmarkSign compares what concerns signatures with hashing the archive once, as openssl does.
func benchmarkSign(ctx context.Context, s settings) error {
	keyName := filepath.Join(s.dir, "benchmark")
	archive, err := buildSigned(ctx, s, keyName)
	if err != nil {
		return err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	set, err := makeImages(filepath.Join(s.dir, "set"), s.size, s.layers)
	if err != nil {
		return err
	}
	project, out := filepath.Join(s.dir, "project"), filepath.Join(s.dir, "out")
	if err = set.writeProject(project, func(name string) string { return "oci:" + filepath.Join(set.dir, "images") + ":" + name }); err != nil {
		return err
	}
	clean := func() error {
		return errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o755))
	}
	contestants := []contestant{
		{"openssl dgst -sha256", []string{"openssl", "dgst", "-sha256", archive}, nil},
		{"solutionctl verify", []string{s.binary, "verify", "--quiet", "--key", keyName + ".pub", archive}, nil},
		{"solutionctl verify --full", []string{s.binary, "verify", "--quiet", "--full", "--key", keyName + ".pub", archive}, nil},
		{"solutionctl sign", []string{s.binary, "sign", "--quiet", "--key", keyName + ".key", archive}, nil},
		{"solutionctl build --sign-key", []string{s.binary, "build", "--quiet", project, "--to", out, "--sign-key", keyName + ".key"}, clean},
	}
	samples, err := compare(ctx, s.rounds, contestants...)
	if err != nil {
		return err
	}
	printComparison(fmt.Sprintf("Signatures, archive of %d MiB in the page cache", info.Size()>>20), info.Size(), contestants, samples)
	return os.RemoveAll(set.dir)
}

// buildSigned makes a large archive and the files of a key that has signed it, and returns its path.
func buildSigned(ctx context.Context, s settings, keyName string) (string, error) {
	archive, err := buildLarge(ctx, s, s.size)
	if err != nil {
		return "", err
	}
	if err = os.Setenv("SOLUTIONCTL_PASSWORD", "benchmark"); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"keygen", keyName}, {"sign", "--key", keyName + ".key", archive}} {
		if output, failure := exec.CommandContext(ctx, s.binary, args...).CombinedOutput(); failure != nil {
			return "", fmt.Errorf("%w: %s", failure, output)
		}
	}
	return archive, nil
}
