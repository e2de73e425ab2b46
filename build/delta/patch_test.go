package delta_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/recompress"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// layerFiles are the files of a layer.
type layerFiles struct {
	content map[string][]byte
	modTime time.Time
}

// randomFiles are programs of about this size, which compress to about half of it.
func randomFiles(r *rand.Rand, number, size int) layerFiles {
	files := layerFiles{map[string][]byte{}, time.Unix(1e9, 0)}
	for i := range number {
		content := layouttest.Noise(r, size/2+r.IntN(size))
		for at := 0; at < len(content); at += 16 {
			clear(content[at:min(at+8, len(content))])
		}
		files.content[fmt.Sprintf("usr/bin/program-%d", i)] = content
	}
	return files
}

// update is a base image that was built again: all times are new, and some programs have other versions.
func update(r *rand.Rand, old layerFiles) layerFiles {
	files := layerFiles{maps.Clone(old.content), old.modTime.Add(time.Hour)}
	for i, name := range slices.Sorted(maps.Keys(old.content)) {
		if i%5 == 0 {
			content := old.content[name]
			at := r.IntN(len(content))
			files.content[name] = append(append(bytes.Clone(content[:at]), layouttest.Noise(r, 50)...), content[at:]...)
		}
	}
	return files
}

// layer is a layer before it is compressed.
func layer(tb testing.TB, files layerFiles) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files.content)) {
		content := files.content[name]
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o755, ModTime: files.modTime}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// gzipped is a layer compressed with a codec.
func gzipped(tb testing.TB, codec recompress.Codec, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := codec.NewWriter(&b)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err = w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err = w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func openDelta(tb testing.TB, data []byte) *delta.Delta {
	tb.Helper()
	d, err := delta.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// TestPatches makes deltas between archives whose layers share no bytes once they are compressed.
func TestPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	files := randomFiles(r, 20, 60_000)
	updated, touched := update(r, files), layerFiles{files.content, time.Unix(1.5e9, 0)}
	unnamed := func(data []byte) []byte { // as gzip without -n writes it
		data = bytes.Clone(data)
		data[4]++
		return data
	}
	for _, test := range []struct {
		name      string
		codec     recompress.Codec
		change    func([]byte) []byte
		made      layerFiles
		whole     bool
		patches   int
		permille  int // of the archive
		formatted int
	}{
		{name: "a base update, gzip of Go", codec: "gzip-go-6", made: updated, patches: 1, permille: 60, formatted: 2},
		{name: "a base update, gzip of podman", codec: "pgzip-5", made: updated, patches: 1, permille: 60, formatted: 2},
		{name: "a base update, zstandard", codec: "zstd-klauspost-default", made: updated, patches: 1, permille: 60, formatted: 2},
		{name: "a base update, not compressed", codec: "none", made: updated, patches: 1, permille: 60, formatted: 2},
		{name: "new times only", codec: "gzip-go-6", made: touched, patches: 1, permille: 20, formatted: 2},
		{name: "another program has compressed", codec: "gzip-go-6", change: unnamed, made: updated, permille: 1100, formatted: 1},
		{name: "without patches", codec: "gzip-go-6", made: updated, whole: true, permille: 1100, formatted: 1},
		{name: "nothing is alike", codec: "gzip-go-6", made: layerFiles{map[string][]byte{"usr/bin/program-0": layouttest.Noise(r, 60_000)}, time.Unix(1e9, 0)}, permille: 1100, formatted: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			blob := gzipped(t, test.codec, layer(t, test.made))
			if test.change != nil {
				blob = test.change(blob)
			}
			old := layouttest.Archive(t, "1.0.0", gzipped(t, test.codec, layer(t, files)))
			made := layouttest.Archive(t, "1.1.0", blob)
			dir := t.TempDir()
			_, err := delta.Create(t.Context(), filepath.Join(dir, "x.delta"), delta.CreateOptions{
				New: source("new.iso", made), Old: []layout.Source{source("other.iso", layouttest.Archive(t, "0.1.0", make([]byte, 5000))), source("old.iso", old)},
				WrittenBy: "1.0.0", Whole: test.whole, Sink: report.Discard,
			})
			if err != nil {
				t.Fatal(err)
			}
			x, err := os.ReadFile(filepath.Join(dir, "x.delta"))
			if err != nil {
				t.Fatal(err)
			}
			d := openDelta(t, x)
			if len(d.Patches) != test.patches || d.FormatVersion != test.formatted {
				t.Errorf("%d patches in format %d, want %d in %d", len(d.Patches), d.FormatVersion, test.patches, test.formatted)
			}
			if test.patches > 0 && (len(d.Bases) != 1 || d.Bases[0].SHA256 != layouttest.Hex(old) || d.NewBytes() != 0) {
				t.Errorf("needs %v and has %d new bytes, want the old archive alone", d.Bases, d.NewBytes())
			}
			if most := len(made)*test.permille/1000 + 2000; len(x) > most { // delta.json and the headers do not depend on the size of the archive
				t.Errorf("the delta has %d bytes, the archive %d: want at most %d", len(x), len(made), most)
			}
			back, err := apply(t.Context(), x, source("old.iso", old))
			if err != nil || !bytes.Equal(back, made) {
				t.Fatalf("%d bytes instead of %d: %v", len(back), len(made), err)
			}
			if back, err = apply(t.Context(), x, source("new.iso", made)); err != nil || !bytes.Equal(back, made) {
				t.Errorf("of the archive that it makes: %d bytes instead of %d: %v", len(back), len(made), err)
			}
			if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestRandomLayers makes and applies deltas between archives of several layers, some of them changed, by several codecs. Every second delta
// has two old archives.
func TestRandomLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	codecs := []recompress.Codec{"gzip-go-6", "gzip-go-1", "pgzip-6", "zstd-klauspost-fastest", "none"}
	pairs, patches := 200, 0
	if testing.Short() {
		pairs = 15
	}
	for n := range pairs {
		var first, second [][]byte
		for range 1 + r.IntN(3) {
			codec, files := codecs[r.IntN(len(codecs))], randomFiles(r, 1+r.IntN(4), 30_000)
			first = append(first, gzipped(t, codec, layer(t, files)))
			second = append(second, gzipped(t, codec, layer(t, update(r, files))))
		}
		made := layouttest.Archive(t, "1.1.0", append(second, first[:r.IntN(len(first))]...)...)
		old := []layout.Source{source("old.iso", layouttest.Archive(t, "1.0.0", first...))}
		if n%2 == 1 {
			old = []layout.Source{source("a.iso", layouttest.Archive(t, "0.9.0", first[:1]...)), source("b.iso", layouttest.Archive(t, "1.0.0", first[1:]...))}
		}
		x := create(t, made, old...)
		if !bytes.Equal(x, create(t, made, old...)) {
			t.Fatalf("pair %d: two deltas of the same archives differ", n)
		}
		back, err := apply(t.Context(), x, old...)
		if err != nil || !bytes.Equal(back, made) {
			t.Fatalf("pair %d: %d bytes instead of %d: %v", n, len(back), len(made), err)
		}
		patches += len(openDelta(t, x).Patches)
	}
	if patches < pairs {
		t.Errorf("%d patches in %d deltas, want one in each or more", patches, pairs)
	}
}

// rewrite is a delta with another document, and with another patch.
func rewrite(tb testing.TB, data []byte, change func(*schema.ArchiveDelta), replace func([]byte) []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(data)), tar.NewWriter(&b)
	for {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // a Reader returns it bare
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			tb.Fatal(err)
		}
		switch {
		case h.Name == "delta.json" && change != nil:
			var document schema.ArchiveDelta
			if err = json.Unmarshal(content, &document); err != nil {
				tb.Fatal(err)
			}
			change(&document)
			if content, err = json.Marshal(document); err != nil {
				tb.Fatal(err)
			}
		case strings.HasPrefix(h.Name, "patches/") && replace != nil:
			if content = replace(content); content == nil {
				continue
			}
		}
		h.Size = int64(len(content))
		if err = w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if _, err = w.Write(content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestHostilePatches refuses what is wrong with a patch by the exit status 5, and leaves no temporary file.
func TestHostilePatches(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	files := randomFiles(r, 6, 40_000)
	first := gzipped(t, "gzip-go-6", layer(t, files))
	old, made := layouttest.Archive(t, "1.0.0", first), layouttest.Archive(t, "1.1.0", gzipped(t, "gzip-go-6", layer(t, update(r, files))))
	x := create(t, made, source("old.iso", old))
	if n := len(openDelta(t, x).Patches); n != 1 {
		t.Fatalf("%d patches, want 1", n)
	}
	patch := func(change func(*schema.DeltaPatch)) []byte {
		return rewrite(t, x, func(d *schema.ArchiveDelta) { change(&d.Patches[0]) }, nil)
	}
	other := strings.Repeat("0123456789abcdef", 4)
	for _, test := range []struct {
		name  string
		delta []byte
		base  []byte
		code  report.Code
		want  string
		hint  string
	}{
		{"another codec", patch(func(p *schema.DeltaPatch) { p.Codec = "gzip-go-9" }), old, report.Mismatch, "gzip-go-9", "solutionctl 1.0.0, which wrote it, or get the whole archive of demo-1.1.0"},
		{"a codec that makes more", patch(func(p *schema.DeltaPatch) { p.Codec = "none" }), old, report.Mismatch, "makes more", "the whole archive"},
		{"an unknown codec", patch(func(p *schema.DeltaPatch) { p.Codec = "gzip-go-10" }), old, report.Mismatch, `does not have the codec "gzip-go-10"`, "the whole archive"},
		{"other content", patch(func(p *schema.DeltaPatch) { p.Content.SHA256 = other }), old, report.Corrupt, "makes other content", "get the delta again"},
		{"content that is shorter", patch(func(p *schema.DeltaPatch) { p.Content.Size-- }), old, report.Invalid, "more bytes than expected", "get the delta again"},
		{"content that is longer", patch(func(p *schema.DeltaPatch) { p.Content.Size++ }), old, report.Invalid, "1 bytes before the end", ""},
		{"content without end", patch(func(p *schema.DeltaPatch) { p.Content.Size = 1 << 40 }), old, report.Invalid, "more than 32 times", "the whole archive"},
		{"sizes that overflow", patch(func(p *schema.DeltaPatch) { p.Content.Size, p.Source.Unpacked = 1<<62, 1<<62 }), old, report.Invalid, "more than 32 times", ""},
		{"a source that is shorter", patch(func(p *schema.DeltaPatch) { p.Source.Unpacked-- }), old, report.Corrupt, "other content than a patch expects", ""},
		{"another source", patch(func(p *schema.DeltaPatch) { p.Source.SHA256 = other }), old, report.Mismatch, "are missing", ""},
		{"a source of another size", patch(func(p *schema.DeltaPatch) { p.Source.Size++ }), old, report.Mismatch, "are missing", ""},
		{"a name that is a path", patch(func(p *schema.DeltaPatch) { p.Codec = "../x" }), old, report.Corrupt, "codec", ""},
		{"a patch of another size", patch(func(p *schema.DeltaPatch) { p.Size++ }), old, report.Invalid, "something else", ""},
		{"another blob", patch(func(p *schema.DeltaPatch) { p.SHA256 = other }), old, report.Invalid, "the layout does not have", ""},
		{"a patch twice", rewrite(t, x, func(d *schema.ArchiveDelta) { d.Patches = append(d.Patches, d.Patches[0]) }, nil), old, report.Invalid, "not after the one before", ""},
		{"patches in format 1", rewrite(t, x, func(d *schema.ArchiveDelta) { d.FormatVersion = 1 }, nil), old, report.Invalid, "format 1 has no patches", ""},
		{"no patch in the file", rewrite(t, x, nil, func([]byte) []byte { return nil }), old, report.Invalid, "something else", ""},
		{"a patch without an entry", rewrite(t, x, func(d *schema.ArchiveDelta) { d.Patches = nil }, nil), old, report.Invalid, "something else", ""},
		{"a damaged patch", rewrite(t, x, nil, func(p []byte) []byte { return with(p, len(p)/2, p[len(p)/2]^1) }), old, "", "the delta is damaged", ""},
		{"not a patch", rewrite(t, x, nil, func(p []byte) []byte { return with(p, 0, 'x') }), old, report.Invalid, "does not begin as a patch", ""},
		{"a damaged source", x, with(old, bytes.Index(old, first)+len(first)/2, first[len(first)/2]^1), report.Corrupt, "base.iso is damaged: blob sha256:" + layouttest.Hex(first), "copy it again"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			_, err := apply(t.Context(), test.delta, source("base.iso", test.base))
			if err == nil || report.CodeOf(err).ExitStatus() != 5 || test.code != "" && report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%s: %v, want %s with %q", report.CodeOf(err), err, test.code, test.want)
			}
			if hints := strings.Join(report.Hints(err), " "); !strings.Contains(hints, test.hint) {
				t.Errorf("hint %q, want %q", hints, test.hint)
			}
			if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
