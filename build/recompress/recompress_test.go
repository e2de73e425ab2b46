package recompress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	klauspost "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"

	"github.com/solutionctl/solutionctl/build/recompress"
	"github.com/solutionctl/solutionctl/schema/report"
)

// layer resembles a layer: text and bytes that cannot be compressed, in more than one block of pgzip.
func layer() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	for b.Len() < 1_200_000 {
		for range r.IntN(200) {
			fmt.Fprintf(&b, "line %d of file %d\n", r.IntN(1000), r.IntN(20))
		}
		for range r.IntN(2000) {
			b.WriteByte(byte(r.Uint32()))
		}
	}
	return b.Bytes()
}

func section(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// compress writes content in pieces, or by the ReadFrom of the writer.
func compress(tb testing.TB, content []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err = io.Copy(w, bytes.NewReader(content)); err != nil {
		tb.Fatal(err)
	}
	if err = w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestFind finds how the tools for images have compressed, by the calls that they make.
func TestFind(t *testing.T) {
	content := layer()
	for _, test := range []struct {
		name string
		open func(io.Writer) (io.WriteCloser, error)
		want recompress.Codec
	}{
		{"docker push and containerd", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, "gzip-go-6"},
		{"crane and ko", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) }, "gzip-go-1"},
		{"the best level", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestCompression) }, "gzip-go-9"},
		{"another level", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, 8) }, "gzip-go-8"},
		{"buildah, podman and skopeo", func(w io.Writer) (io.WriteCloser, error) { return pgzip.NewWriter(w), nil }, "pgzip-5"},
		{"makisu", func(w io.Writer) (io.WriteCloser, error) { return pgzip.NewWriterLevel(w, 9) }, "pgzip-9"},
		{"klauspost's gzip", func(w io.Writer) (io.WriteCloser, error) { return klauspost.NewWriter(w), nil }, ""},
		{"zstandard with all processors", func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, "zstd-klauspost-default"},
		{"zstandard, fast", func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
		}, "zstd-klauspost-fastest"},
		{"zstandard, better", func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
		}, "zstd-klauspost-better"},
		{"not compressed", func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil }, "none"},
		{"another window", func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithWindowSize(1<<20)) }, ""},
		{"other blocks", func(w io.Writer) (io.WriteCloser, error) {
			z := pgzip.NewWriter(w)
			return z, z.SetConcurrency(256<<10, 2)
		}, ""},
		{"a name in the header", func(w io.Writer) (io.WriteCloser, error) {
			z := gzip.NewWriter(w)
			z.Name = "layer.tar"
			return z, nil
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			compressed := compress(t, content, test.open)
			got, err := recompress.Find(t.Context(), section(compressed), section(content))
			if err != nil || got != test.want {
				t.Fatalf("%q, %v, want %q", got, err, test.want)
			}
			checkReader(t, compressed, content)
			if got == "" {
				return
			}
			if again := compress(t, content, got.NewWriter); !bytes.Equal(again, compressed) {
				t.Errorf("%s writes %d bytes, which are not the %d expected", got, len(again), len(compressed))
			}
		})
	}
}

// TestFindComparesAll does not accept a codec for the first bytes.
func TestFindComparesAll(t *testing.T) {
	content := layer()
	compressed := compress(t, content, recompress.Codec("gzip-go-6").NewWriter)
	last := len(compressed) - 1
	for name, other := range map[string][]byte{
		"the last byte differs": append(bytes.Clone(compressed[:last]), compressed[last]^1),
		"more bytes":            append(bytes.Clone(compressed), 0),
		"fewer bytes":           compressed[:last],
	} {
		if got, err := recompress.Find(t.Context(), section(other), section(content)); got != "" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestFindGNUGzip cannot find how C programs have compressed.
func TestFindGNUGzip(t *testing.T) {
	if _, err := exec.LookPath("gzip"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("needs gzip")
	}
	content := layer()
	for _, level := range []string{"-1", "-6", "-9"} {
		cmd := exec.CommandContext(t.Context(), "gzip", "-n", level)
		cmd.Stdin = bytes.NewReader(content)
		compressed, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := recompress.Find(t.Context(), section(compressed), section(content)); got != "" || err != nil {
			t.Errorf("gzip %s: %q, %v", level, got, err)
		}
		checkReader(t, compressed, content)
	}
}

func checkReader(tb testing.TB, compressed, content []byte) {
	tb.Helper()
	r, err := recompress.NewReader(bytes.NewReader(compressed))
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was read
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		tb.Errorf("decompressed to %d bytes, want %d: %v", len(got), len(content), err)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestRefusals(t *testing.T) {
	if _, err := recompress.Codec("gzip-go-10").NewWriter(io.Discard); report.CodeOf(err) != report.Mismatch {
		t.Errorf("an unknown codec: %v", err)
	}
	content := layer()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := recompress.Find(ctx, section(content), section(content)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
	compressed := compress(t, content, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithWindowSize(64<<20)) })
	r, err := recompress.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was read
	if _, err = io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a large window: %v", err)
	}
	for _, data := range []string{"", "x", "\x1f\x8b\x08"} {
		if got, err := recompress.Find(t.Context(), section([]byte(data)), section(content)); got != "" || err != nil {
			t.Errorf("%q: %q, %v", data, got, err)
		}
	}
}
