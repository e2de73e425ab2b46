package iso

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// manyFiles is an archive of n small files in directories of a hundred.
func manyFiles(n int) []File {
	files := []File{textFile("manifest.yaml", "kind: Solution\n")}
	for i := range n {
		files = append(files, textFile(fmt.Sprintf("images/app-%03d/%064x", i/100, i), "x"))
	}
	return files
}

func imageFile(tb testing.TB, files []File) (f *os.File, size int64) {
	tb.Helper()
	f, err := os.Open(writeImage(tb, files))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	stat, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return f, stat.Size()
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{300, 3000, 20000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			f, size := imageFile(b, manyFiles(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(f, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	f, size := imageFile(b, manyFiles(3000))
	b.ReportAllocs()
	for b.Loop() {
		if findings := Check(f, size); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}

func BenchmarkCompareDiskFS(b *testing.B) {
	f, size := imageFile(b, manyFiles(3000))
	for b.Loop() {
		if findings := CompareDiskFS(f, size); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}

// BenchmarkReadAt compares random reads of 64 KiB through the file system with the same reads of the image file.
func BenchmarkReadAt(b *testing.B) {
	const size, piece = 64 << 20, 64 << 10
	file := File{Path: "large", Size: size, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{1}), size)), nil
	}}
	f, imageSize := imageFile(b, []File{file})
	fsys, err := Open(f, imageSize)
	if err != nil {
		b.Fatal(err)
	}
	opened, err := fsys.Open("large")
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]io.ReaderAt{
		"fs":    opened.(io.ReaderAt),
		"pread": io.NewSectionReader(f, layout(b, []File{file}).Extents()[0].Offset, size),
	} {
		b.Run(name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same reads each time
			buf := make([]byte, piece)
			b.SetBytes(piece)
			for b.Loop() {
				if _, err := r.ReadAt(buf, random.Int64N(size-piece)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
