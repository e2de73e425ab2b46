//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	growthStep   = 8        // of the sizes of archives
	growthFiles  = 40       // of the smallest project
	growthLayer  = 4 << 10  // of an archive with many images
	sparseLayer  = 10 << 30 // of an archive with holes
	sparseVolume = 200 << 30
)

// growBytes measures archives with more and more bytes, and projects with more and more files.
func growBytes(ctx context.Context, s settings, p *panel) error {
	return eachArchive(ctx, s, s.size, func(sized settings, files int) error {
		set, subjects, err := newSubjects(ctx, sized, files)
		if err != nil {
			return err
		}
		for _, one := range subjects {
			unit, size := "MiB", float64(sized.size)/(1<<20)
			if one.name == "lint" {
				unit, size = "files", float64(files)
			}
			if err = p.measure(ctx, sized, one, unit, size); err != nil {
				return err
			}
		}
		samples, err := serveImported(ctx, sized, set, max(sized.size, 1<<30))
		if err != nil {
			return err
		}
		p.add("serve", "MiB, CPU for each GiB", float64(sized.size)/(1<<20), samples)
		return nil
	})
}

// growImages measures archives with more and more images of a few kilobytes. An archive has at most 5,000.
func growImages(ctx context.Context, s settings, p *panel) error {
	s.layers.largest = growthLayer
	return eachArchive(ctx, s, s.size/64, func(sized settings, _ int) error {
		set, subjects, err := newSubjects(ctx, sized, 1)
		if err != nil {
			return err
		}
		for _, one := range subjects {
			if one.name == "lint" { // of a project, which has no images
				continue
			}
			if err = p.measure(ctx, sized, one, "images", float64(len(set.names))); err != nil {
				return err
			}
		}
		samples, err := serveImported(ctx, sized, set, 0)
		if err != nil {
			return err
		}
		p.add("serve", "images, until ready", float64(len(set.names)), samples)
		return nil
	})
}

// eachArchive calls a function with the settings for archives up to the largest, and with a number of files that grows alike.
func eachArchive(ctx context.Context, s settings, largest int64, measure func(sized settings, files int) error) error {
	for step := growthSizes - s.sizes; step < growthSizes; step++ {
		factor := int64(math.Pow(growthStep, float64(step)))
		sized := s
		sized.size = largest * factor / int64(math.Pow(growthStep, growthSizes-1))
		sized.dir = filepath.Join(s.dir, "growth")
		err := errors.Join(ctx.Err(), os.Mkdir(sized.dir, 0o755))
		if err == nil {
			err = measure(sized, growthFiles*int(factor))
		}
		if err = errors.Join(err, os.RemoveAll(sized.dir)); err != nil {
			return err
		}
	}
	return nil
}

func (p *panel) measure(ctx context.Context, s settings, one subject, unit string, size float64) error {
	if one.name == "start" { // it has no input
		return nil
	}
	samples, err := compare(ctx, s.rounds, contestant{one.name, append([]string{s.binary}, one.args...), one.prepare})
	if err == nil {
		p.add(one.name, unit, size, samples[0])
	}
	return err
}

// serveImported starts a registry in each round, for what the subjects have imported. The samples have the time until it listens. Their
// processor time is that for each GiB of so many bytes that are pulled; that of the start if none are.
func serveImported(ctx context.Context, s settings, set *imageSet, total int64) (samples []sample, err error) {
	for range s.rounds {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		c := &contender{
			name: "solutionctl deploy serve", url: "http://" + address + "/v2/benchmark-1.0.0/" + set.names[0] + "/blobs/sha256:",
			command: []string{s.binary, "deploy", "serve", "--quiet", "--store", filepath.Join(s.dir, "check-out", "store"), "--listen", address},
		}
		if err = c.start(ctx); err != nil {
			return nil, err
		}
		taken := sample{cpu: c.cpu(), anon: anonymous(c.process.Process.Pid)}
		if total > 0 {
			taken, err = c.measure(ctx, set.layers, total)
			taken.cpu = time.Duration(float64(taken.cpu) / float64(taken.read) * (1 << 30))
		}
		if err = errors.Join(err, c.stop()); err != nil {
			return nil, err
		}
		taken.wall = c.ready
		samples = append(samples, taken)
	}
	return samples, nil
}

// measureSparse measures an archive whose layers are holes, on a file system that compresses it and lets an import share its blocks.
func measureSparse(ctx context.Context, s settings) error {
	return onFileSystem(ctx, s.dir, "btrfs", "loop,compress=zstd:1", sparseVolume, func(place string) error {
		s.dir, s.size, s.rounds, s.layers = place, s.sparse, 1, layerOptions{largest: sparseLayer, holes: true}
		set, subjects, err := newSubjects(ctx, s, 1)
		if err != nil {
			return err
		}
		fmt.Printf("\nAn archive of %d MiB, whose layers are holes, on btrfs\n\n| | wall | CPU | peak RssAnon |\n|---|---|---|---|\n", set.payload>>20)
		print := func(name string, taken sample) {
			fmt.Printf("| %s | %.2f s | %.2f s | %.1f MiB |\n", name, taken.wall.Seconds(), taken.cpu.Seconds(), anon([]sample{taken})[0])
		}
		for _, one := range subjects {
			if strings.Contains("start lint", one.name) {
				continue
			}
			var taken sample
			if taken, err = (contestant{one.name, append([]string{s.binary}, one.args...), one.prepare}).measure(ctx); err != nil {
				return err
			}
			print(one.name, taken)
		}
		served, err := serveImported(ctx, s, set, s.size)
		if err == nil {
			print("serve: ready, CPU per GiB", served[0])
		}
		return err
	})
}
