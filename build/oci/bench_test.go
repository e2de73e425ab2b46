package oci_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
)

// program is text that compresses about as well as a layer does.
func program(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4096)
	for i := range words {
		words[i] = fmt.Sprintf("%x", random.Uint64()>>random.IntN(48))
	}
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))])
	}
	return b.Bytes()[:n]
}

func BenchmarkCompressLayer(b *testing.B) {
	data := program(32 << 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := oci.CompressLayer(io.Discard, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyReader(b *testing.B) {
	data := program(32 << 20)
	l := newLayout()
	d := l.blob("x", data)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, oci.VerifyReader(bytes.NewReader(data), d)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerifyLayers reads the layers of an image and unpacks them, as 'lint --deep' does and a build does not; hash reads
// the same layers as a build does.
func BenchmarkVerifyLayers(b *testing.B) {
	l := newLayout()
	l.tag("web", l.image("linux/amd64", string(program(32<<20)), string(program(16<<20))))
	image, err := newResolver(b, oci.Options{}).Resolve(b.Context(), testRef, "oci:"+l.dir(b)+":web")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			if err := image.VerifyLayers(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			for _, blob := range image.Blobs {
				content, err := blob.Open(b.Context(), 0)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, oci.VerifyReader(content, blob.Descriptor)); err != nil {
					b.Fatal(err)
				}
				_ = content.Close() // it was only read
			}
		}
	})
}

// BenchmarkDockerArchive makes the image of a docker-archive of 16 layers: with an empty cache, and with a full one.
func BenchmarkDockerArchive(b *testing.B) {
	var texts []string
	for i := range 16 {
		texts = append(texts, fmt.Sprint(i)+string(program(8<<20)))
	}
	dir := b.TempDir()
	archive := filepath.Join(dir, "a.tar")
	data := tarOf(dockerSave(map[string][]string{"a:1": texts}))
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		b.Fatal(err)
	}
	resolve := func(cache string) {
		r := oci.NewResolver(oci.Options{CacheDir: cache})
		if _, err := r.Resolve(context.Background(), testRef, "docker-archive:"+archive); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("empty cache", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			resolve("")
		}
	})
	b.Run("full cache", func(b *testing.B) {
		cache := b.TempDir()
		resolve(cache)
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			resolve(cache)
		}
	})
}

// BenchmarkRemoteBlob fetches a blob with the resuming reader, and with a plain client for comparison.
func BenchmarkRemoteBlob(b *testing.B) {
	data := program(64 << 20)
	l := newLayout()
	m := l.manifest("linux/amd64")
	m.Layers = append(m.Layers, l.blob("application/octet-stream", data))
	d := l.json(m.MediaType, m)
	host := serve(b, func(w http.ResponseWriter, r *http.Request) {
		digest := r.URL.Path[strings.LastIndex(r.URL.Path, ":")+1:]
		if strings.HasSuffix(r.URL.Path, "/manifests/1") {
			digest = d.Digest.Hex
		}
		if f := l.files["blobs/sha256/"+digest]; f != nil {
			http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(f.Data))
		}
	})
	resolver := oci.NewResolver(oci.Options{})
	defer func() { _ = resolver.Close() }()
	image, err := resolver.Resolve(b.Context(), testRef, "docker://"+host+"/x:1")
	if err != nil {
		b.Fatal(err)
	}
	layer := image.Blobs[1]
	b.Run("resuming", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			body, err := layer.Open(b.Context(), 0)
			drain(b, body, err, layer.Size)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			response, err := http.Get("http://" + host + "/v2/x/blobs/" + layer.Digest.String()) //nolint:bodyclose // drain does
			if err != nil {
				b.Fatal(err)
			}
			drain(b, response.Body, nil, layer.Size)
		}
	})
}

func drain(b *testing.B, body io.ReadCloser, err error, size int64) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, body); err != nil || n != size || body.Close() != nil {
		b.Fatalf("%d bytes, %v", n, err)
	}
}
