//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	checkedPairs = 15  // enough for the bound below to leave out three of them
	allowedRatio = 1.1 // of the working tree to the base
)

// subject is a use of the program in the comparison of two builds.
type subject struct {
	name    string
	args    []string
	prepare func() error
}

// checkBuilds compares the program of the base commit with that of the working tree, pair by pair, in alternating order.
func checkBuilds(ctx context.Context, s settings, names []string) error {
	base, err := buildBase(ctx, s)
	if err != nil {
		return err
	}
	_, subjects, err := newSubjects(ctx, s, linted)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe working tree to %s, medians of %d pairs, in parentheses what is certain beyond noise\n\n"+
		"| | wall | CPU | peak RssAnon |\n|---|---|---|---|\n", s.base, checkedPairs)
	var slower []string
	for _, one := range subjects {
		if len(names) > 0 && !slices.Contains(names, one.name) {
			continue
		}
		pair, err := one.measurePairs(ctx, base, s.binary)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Printf("| %s |", one.name)
		for _, of := range []struct {
			name   string
			values func([]sample) []float64
		}{
			{"wall time", func(list []sample) []float64 { return seconds(list, wall) }},
			{"CPU time", func(list []sample) []float64 { return seconds(list, cpu) }},
			{"memory", anon},
		} {
			list := ratios(of.values(pair[1]), of.values(pair[0]))
			least := lowerBound(list)
			fmt.Printf(" %.2f (≥ %.2f) |", median(list), least)
			if least > allowedRatio {
				slower = append(slower, fmt.Sprintf("%s: %s is %.2f times that of %s", one.name, of.name, median(list), s.base))
			}
		}
		fmt.Println()
	}
	if len(slower) > 0 {
		return errors.New(strings.Join(slower, "; "))
	}
	return nil
}

// buildBase builds the program of the base commit out of an export of it.
func buildBase(ctx context.Context, s settings) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	source, program := filepath.Join(s.dir, "base"), filepath.Join(s.dir, "solutionctl-base")
	if err = os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	export := exec.CommandContext(ctx, "sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2" && exec "$2/.ci/build" "$3"`, root, s.base, source, program)
	export.Env = append(os.Environ(), "VERSION=1.0.0")
	if out, err := export.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", s.base, err, out)
	}
	return program, nil
}

// newSubjects prepares what the program reads: an archive of the size of the settings, and so many objects.
func newSubjects(ctx context.Context, s settings, count int) (*imageSet, []subject, error) {
	key := filepath.Join(s.dir, "check")
	archive, err := buildSigned(ctx, s, key)
	if err != nil {
		return nil, nil, err
	}
	set, err := makeImages(filepath.Join(s.dir, "check-set"), s.size, s.layers)
	if err != nil {
		return nil, nil, err
	}
	project, out, objects := filepath.Join(s.dir, "check-project"), filepath.Join(s.dir, "check-out"), filepath.Join(s.dir, "check-objects")
	if err = set.writeProject(project, func(name string) string { return "oci:" + filepath.Join(set.dir, "images") + ":" + name }); err != nil {
		return nil, nil, err
	}
	if _, err = writeManifests(objects, count); err != nil {
		return nil, nil, err
	}
	clean := func() error { return errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o755)) }
	return set, []subject{
		{"start", []string{"version"}, nil},
		{"build", []string{"build", "--quiet", project, "--to", out}, clean},
		{"inspect", []string{"inspect", archive}, nil},
		{"lint", []string{"lint", withoutImages, "--kubernetes-version=1.30", objects}, nil},
		{"sign", []string{"sign", "--quiet", "--key", key + ".key", archive}, nil},
		{"verify", []string{"verify", "--quiet", "--key", key + ".pub", archive}, nil},
		{"import", importCommand(archive, key+".pub", out), clean},
	}, nil
}

// measurePairs returns the samples of both programs, the first pair left out.
func (u *subject) measurePairs(ctx context.Context, base, head string) (pair [2][]sample, err error) {
	programs := [2]string{base, head}
	for round := range checkedPairs + 1 {
		for turn := range programs {
			which := (round + turn) % 2
			s, err := contestant{u.name, append([]string{programs[which]}, u.args...), u.prepare}.measure(ctx)
			if err != nil {
				return pair, err
			}
			if round > 0 {
				pair[which] = append(pair[which], s)
			}
		}
	}
	return pair, nil
}

// lowerBound returns the value that the median of the population exceeds with at least 97.5 % certainty: an order statistic, chosen by
// the binomial distribution, as no other can be assumed. It is 0 when there are too few values for that.
func lowerBound(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	probability, sum, k := 1.0, 0.0, 0
	for range sorted {
		probability /= 2
	}
	for ; k < len(sorted) && sum+probability <= 0.025; k++ {
		sum += probability
		probability *= float64(len(sorted)-k) / float64(k+1)
	}
	if k == 0 {
		return 0
	}
	return sorted[k-1]
}
