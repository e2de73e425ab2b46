package sbom

import (
	"io"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
)

// BenchmarkScan lists the packages of a layer of 64 MB in 4,000 files, beside decompressing and verifying it.
func BenchmarkScan(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same bytes at each run
	entries := []entry{{name: "etc/os-release", content: debianRelease}, {name: "var/lib/dpkg/status", content: dpkgStatus}}
	for i := range 4000 {
		content := make([]byte, 16<<10)
		for at := range content { // half as many bits as bytes have, as programs do
			content[at] = byte(random.IntN(16)) * 7 //nolint:gosec // it is small
		}
		copy(content, elfMagic)
		entries = append(entries, entry{name: "usr/lib/lib" + strconv.Itoa(i), content: string(content)})
	}
	plain := layerOf(b, entries...)
	image := imageOf(b, "app", compress(b, plain))
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			if _, err := listImages(b.Context(), []*oci.Image{image}, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decompress", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			content, err := image.Blobs[0].OpenUncompressed(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if _, err = io.Copy(io.Discard, content); err != nil {
				b.Fatal(err)
			}
			if err = content.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
