package durable

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestDirect writes files of any length in pieces, from memory at any address, by several goroutines.
func TestDirect(t *testing.T) {
	const piece = 64 << 10
	for _, test := range []struct {
		name         string
		size, offset int // of the data in its memory, which cannot be written directly if it is not aligned
	}{
		{"aligned", 5 * piece, 0},
		{"a short end", 5*piece + 2048, 0},
		{"an odd end", 5*piece + 4097, 0},
		{"less than a block", 100, 0},
		{"memory that is not aligned", 5*piece + 2048, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := make([]byte, test.size+test.offset)
			_, _ = rand.NewChaCha8([32]byte{}).Read(memory)
			data := memory[test.offset:]
			path := filepath.Join(t.TempDir(), "archive")
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // a test
			w := NewDirect(f)
			defer w.Close()
			var writers errgroup.Group
			for from := 0; from < len(data); from += piece {
				writers.Go(func() error {
					_, err := w.WriteAt(data[from:min(from+piece, len(data))], int64(from))
					return err
				})
			}
			if err := writers.Wait(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes differ from the %d that were written: %v", len(got), len(data), err)
			}
		})
	}
}

// TestDirectProcessors checks that a small machine has processors for writes that wait, until the last writer is closed.
func TestDirectProcessors(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a test
	for _, test := range []struct{ machine, writing int }{{1, 3}, {2, 4}, {3, 3}, {64, 64}} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(test.machine))
		first, second := NewDirect(f), NewDirect(f)
		first.Close()
		if got := runtime.GOMAXPROCS(0); got != test.writing {
			t.Errorf("%d processors of %d while there is a writer, want %d", got, test.machine, test.writing)
		}
		second.Close()
		if got := runtime.GOMAXPROCS(0); got != test.machine {
			t.Errorf("%d processors of %d after the last writer", got, test.machine)
		}
	}
}
