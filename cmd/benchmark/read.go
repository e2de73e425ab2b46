//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
)

// benchmarkInspect measures what is in a large archive.
func benchmarkInspect(ctx context.Context, s settings) error {
	archive, err := buildLarge(ctx, s, s.large)
	if err != nil {
		return err
	}
	inspect := contestant{"solutionctl inspect", []string{s.binary, "inspect", archive.path}, nil}
	version := contestant{"solutionctl version", []string{s.binary, "version"}, nil}
	samples, err := compare(ctx, max(s.rounds, 9), inspect, version)
	if err != nil {
		return err
	}
	fmt.Printf("\nInspect, %d MiB of layers\n\n| | wall | peak RssAnon |\n|---|---|---|\n", s.large>>20)
	for i, c := range []contestant{inspect, version} {
		fmt.Printf("| %s | %d ms | %.1f MiB |\n", c.name,
			medianOf(samples[i], func(s sample) int64 { return s.wall.Milliseconds() }),
			float64(medianOf(samples[i], func(s sample) int64 { return s.anon }))/(1<<20))
	}
	return nil
}

const (
	pieces    = 20000
	pieceSize = 64 << 10
)

// benchmarkRead reads pieces at random from a layer in an archive, and the same bytes from the file itself.
func benchmarkRead(ctx context.Context, s settings) error {
	archive, err := buildLarge(ctx, s, s.size)
	if err != nil {
		return err
	}
	f, err := os.Open(archive.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	image, err := iso.Open(f, info.Size())
	if err != nil {
		return err
	}
	layer, stat, err := largestFile(image)
	if err != nil {
		return err
	}
	section := stat.Sys().(*iso.Stat).Sections[0]
	var through, direct []float64
	for range s.rounds {
		a, err := readPieces(layer, 0, stat.Size())
		if err != nil {
			return err
		}
		b, err := readPieces(f, section.Offset, stat.Size())
		if err != nil {
			return err
		}
		through, direct = append(through, a.Seconds()), append(direct, b.Seconds())
	}
	ratios := make([]float64, len(through))
	for i := range through {
		ratios[i] = through[i] / direct[i]
	}
	fmt.Printf("\nRandom reads of 64 KiB from a layer in an archive: %.1f µs each, %.2f times pread of the same bytes\n",
		median(through)/pieces*1e6, median(ratios))
	return nil
}

func largestFile(image fs.FS) (largest io.ReaderAt, info fs.FileInfo, err error) {
	var name string
	err = fs.WalkDir(image, "blobs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		i, err := entry.Info()
		if err == nil && (info == nil || i.Size() > info.Size()) {
			name, info = path, i
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	f, err := image.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return f.(io.ReaderAt), info, nil
}

func readPieces(r io.ReaderAt, base, size int64) (time.Duration, error) {
	random := rand.New(rand.NewPCG(1, 2))
	buffer := make([]byte, pieceSize)
	started := time.Now()
	for range pieces {
		if _, err := r.ReadAt(buffer, base+random.Int64N(size-pieceSize)); err != nil {
			return 0, err
		}
	}
	return time.Since(started), nil
}
