package chunk_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

const benchSize = 1 << 30

// benchFile is a file of 1 GiB in the page cache.
func benchFile(b *testing.B) *os.File {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "archive"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	piece := random(8 << 20)
	for range benchSize / len(piece) {
		if _, err := f.Write(piece); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

// BenchmarkHashing runs the contestants in turn, so that a busy machine slows all of them: compare the ratios.
//
//	go test -bench Hashing -benchtime 5x ./sign/chunk
func BenchmarkHashing(b *testing.B) {
	f := benchFile(b)
	sums, err := chunk.Sum(b.Context(), f, benchSize, report.Discard)
	if err != nil {
		b.Fatal(err)
	}
	openssl, _ := exec.LookPath("openssl")
	contestants := []struct {
		name string
		run  func() error
	}{
		{"openssl", func() error {
			if openssl == "" {
				return nil
			}
			return exec.Command(openssl, "dgst", "-sha256", f.Name()).Run()
		}},
		{"verify", func() error {
			_, err := chunk.Verify(b.Context(), f, &sums.Chunks, runtime.GOMAXPROCS(0), report.Discard)
			return err
		}},
		{"sum", func() error {
			_, err := chunk.Sum(b.Context(), f, benchSize, report.Discard)
			return err
		}},
		{"check", func() error {
			_, err := chunk.Check(b.Context(), f, &sums.Chunks, nil, report.Discard)
			return err
		}},
		{"read", func() error {
			r, err := chunk.NewReader(f, &sums.Chunks)
			if err != nil {
				return err
			}
			_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{io.NewSectionReader(r, 0, r.Size())}, make([]byte, 1<<20))
			return err
		}},
	}
	spent := make([]float64, len(contestants))
	for b.Loop() {
		for i, c := range contestants {
			start := b.Elapsed()
			if err := c.run(); err != nil {
				b.Fatal(c.name, err)
			}
			spent[i] += (b.Elapsed() - start).Seconds()
		}
	}
	for i, c := range contestants {
		b.ReportMetric(float64(b.N)*benchSize/1e6/spent[i], c.name+"-MB/s")
		if i > 0 && openssl != "" {
			b.ReportMetric(spent[0]/spent[i], c.name+"/openssl")
		}
	}
}
