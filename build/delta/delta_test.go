package delta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// with is a copy of data with another byte.
func with(data []byte, at int, b byte) []byte {
	data = bytes.Clone(data)
	data[at] = b
	return data
}

func source(name string, data []byte) layout.Source {
	return layout.Source{Name: name, ReaderAt: bytes.NewReader(data), Size: int64(len(data))}
}

// create makes a delta in memory.
func create(tb testing.TB, made []byte, old ...layout.Source) []byte {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "x.delta")
	if _, err := delta.Create(tb.Context(), name, options(made, old...)); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func options(made []byte, old ...layout.Source) delta.CreateOptions {
	return delta.CreateOptions{
		New: source("new.iso", made), Old: old, Bundles: []layout.Bundle{{Data: []byte("{}")}, {Signer: "second", Data: []byte("{}")}},
		WrittenBy: "1.0.0", Sink: report.Discard,
	}
}

// apply makes the archive of a delta.
func apply(ctx context.Context, made []byte, bases ...layout.Source) ([]byte, error) {
	d, err := delta.Open(bytes.NewReader(made), int64(len(made)))
	if err != nil {
		return nil, err
	}
	a, err := d.Archive(ctx, delta.Workspace{}, bases...)
	if err != nil {
		return nil, err
	}
	defer a.Close() //nolint:errcheck // it was read
	var b bytes.Buffer
	err = a.Copy(ctx, &b, report.Discard)
	return b.Bytes(), err
}

// TestRandomPairs makes deltas between archives that share some of their blobs: each one gives the same bytes again, is hardly larger
// than the blobs that are new, and reads the same at random offsets as from the first byte to the last.
func TestRandomPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := make([][]byte, 12)
	for i := range pool {
		pool[i] = layouttest.Noise(r, 1+r.IntN(80_000))
	}
	pairs := 200
	if testing.Short() {
		pairs = 40
	}
	for n := range pairs {
		pick := func() (blobs [][]byte) {
			for _, blob := range pool {
				if r.IntN(2) == 0 {
					blobs = append(blobs, blob)
				}
			}
			return append(blobs, layouttest.Noise(r, 1+r.IntN(40_000)))
		}
		first, second, blobs := layouttest.Archive(t, "1.0.0", pick()...), layouttest.Archive(t, "1.1.0", pick()...), pick()
		made := layouttest.Archive(t, "1.2.0", blobs...)
		old := []layout.Source{source("a.iso", first), source("b.iso", second)}[:1+n%2]
		x := create(t, made, old...)
		if !bytes.Equal(x, create(t, made, old...)) {
			t.Fatalf("pair %d: two deltas of the same archives differ", n)
		}
		back, err := apply(t.Context(), x, old...)
		if err != nil || !bytes.Equal(back, made) {
			t.Fatalf("pair %d: %d bytes instead of %d: %v", n, len(back), len(made), err)
		}
		d, err := delta.Open(bytes.NewReader(x), int64(len(x)))
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.Archive(t.Context(), delta.Workspace{}, old...)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			at, p := r.IntN(len(made)), make([]byte, r.IntN(30_000))
			m, failure := a.ReadAt(p, int64(at))
			if want := made[at:min(len(made), at+len(p))]; !bytes.Equal(p[:m], want) || m < len(p) && failure != io.EOF { //nolint:errorlint // ReaderAt returns it bare
				t.Fatalf("pair %d: %d bytes at %d: %d bytes, %v", n, len(p), at, m, failure)
			}
		}
		bundles, err := d.Bundles()
		if err != nil || len(bundles) != 2 || bundles[1].Signer != "second" || string(bundles[1].Data) != "{}" {
			t.Fatalf("pair %d: signatures %v, %v", n, bundles, err)
		}
	}
}

// TestSize compares a delta with the blobs that are new.
func TestSize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shared, fresh := [][]byte{}, layouttest.Noise(r, 1<<20)
	for range 60 {
		shared = append(shared, layouttest.Noise(r, 100_000))
	}
	old := layouttest.Archive(t, "1.0.0", shared...)
	made := layouttest.Archive(t, "1.1.0", append([][]byte{fresh}, shared...)...)
	if x := create(t, made, source("old.iso", old)); len(x) > len(fresh)+len(made)/200+31*3000 { // small files are not blobs
		t.Errorf("the delta has %d bytes, the new blob %d, the archive %d", len(x), len(fresh), len(made))
	}
}

func TestRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shared, other, fresh := layouttest.Noise(r, 50_000), layouttest.Noise(r, 50_000), layouttest.Noise(r, 20_000)
	full := layouttest.Noise(r, 40*512) // it ends where the next header begins
	old, made := layouttest.Archive(t, "1.0.0", shared), layouttest.Archive(t, "1.1.0", shared, fresh)
	x := create(t, made, source("old.iso", old))
	damaged := with(old, bytes.Index(old, shared[:64]), shared[0]^1)
	inBlob := bytes.Index(x, fresh[:64])
	padded := create(t, layouttest.Archive(t, "1.1.0", shared, full), source("old.iso", old))
	replace := func(from, to string) []byte {
		if len(from) != len(to) || !bytes.Contains(x, []byte(from)) {
			t.Fatalf("%q cannot be replaced by %q", from, to)
		}
		return bytes.Replace(x, []byte(from), []byte(to), 1)
	}
	layoutSize := fmt.Sprintf(`"size":%d`, len(made))
	for _, test := range []struct {
		name  string
		delta []byte
		base  []byte
		code  report.Code
		want  string
	}{
		{"another base", x, layouttest.Archive(t, "0.9.0", other), report.Mismatch, "from demo 1.0.0 (sha256:" + layouttest.Hex(old) + "); base.iso is demo 0.9.0: 1 blobs of 50000 bytes are missing"},
		{"damaged base", x, damaged, report.Corrupt, "base.iso is damaged: blob sha256:" + layouttest.Hex(shared)},
		{"a base that is not an archive", x, make([]byte, 100_000), report.Corrupt, "base.iso"},
		{"empty", nil, old, report.Invalid, "not a delta"},
		{"an archive", old, old, report.Invalid, "not a delta"},
		{"truncated", x[:len(x)-600], old, report.Corrupt, "earlier than expected"},
		{"truncated in a blob", x[:inBlob+10], old, report.Corrupt, "earlier than expected"},
		{"truncated in a blob without padding", padded[:bytes.Index(padded, full[:64])+10], old, report.Corrupt, "earlier than expected"},
		{"followed by bytes", append(bytes.Clone(x), 0), old, report.Corrupt, "followed by 1 bytes"},
		{"a blob twice", append(append(bytes.Clone(x[:len(x)-1024]), x[inBlob-512:len(x)-1024]...), x[len(x)-1024:]...), old, report.Invalid, "something else"},
		{"a link instead of a file", with(x, bytes.Index(x, []byte("frame.zst"))+156, '2'), old, report.Invalid, "something else"},
		{"another name", replace("frame.zst", "frame.xxx"), old, report.Invalid, "something else"},
		{"altered blob", with(x, inBlob, x[inBlob]^1), old, report.Corrupt, "the delta is damaged"},
		{"another digest of the whole", replace(layouttest.Hex(made), layouttest.Hex(old)), old, report.Corrupt, ""},
		{"a size that overflows", replace(layoutSize, `"size":`+strings.Repeat("9", len(layoutSize)-7)), old, report.Invalid, "leave"},
		{"newer format", replace(`"formatVersion":1`, `"formatVersion":9`), old, report.Refused, "format 9"},
		{"unknown field", replace(`"writtenBy"`, `"writtenBX"`), old, report.Corrupt, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := apply(t.Context(), test.delta, source("base.iso", test.base))
			if got := report.CodeOf(err); test.code == "" && err != nil || test.code != "" && (got != test.code || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %s with %q", got, err, test.code, test.want)
			}
		})
	}
}

// TestWriteFile leaves the old file and nothing else when the delta is damaged, and writes the signatures beside the archive.
func TestWriteFile(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	shared, fresh := layouttest.Noise(r, 50_000), layouttest.Noise(r, 20_000)
	old, made := layouttest.Archive(t, "1.0.0", shared), layouttest.Archive(t, "1.1.0", shared, fresh)
	x := create(t, made, source("old.iso", old))
	dir := t.TempDir()
	name := filepath.Join(dir, "new.iso")
	write := func(data []byte) error {
		d, err := delta.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		a, err := d.Archive(t.Context(), delta.Workspace{Dir: dir}, source("old.iso", old))
		if err != nil {
			return err
		}
		bundles, err := d.Bundles()
		if err != nil {
			return err
		}
		return a.WriteFile(t.Context(), name, bundles, report.Discard)
	}
	if err := write(with(x, bytes.Index(x, fresh[:64]), fresh[0]^1)); report.CodeOf(err) != report.Corrupt {
		t.Errorf("a damaged delta: %v", err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := write(x); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); !bytes.Equal(data, made) || err != nil {
		t.Errorf("%d bytes, want %d: %v", len(data), len(made), err)
	}
	for _, bundle := range []string{".sigstore.json", ".second.sigstore.json"} {
		if data, err := os.ReadFile(name + bundle); string(data) != "{}" || err != nil {
			t.Errorf("%s: %q, %v", bundle, data, err)
		}
	}
}

// TestCreateRefuses proves a delta before it has its name.
func TestCreateRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	shared := layouttest.Noise(r, 50_000)
	old, made := layouttest.Archive(t, "1.0.0", shared), layouttest.Archive(t, "1.1.0", shared, layouttest.Noise(r, 9000))
	for _, test := range []struct {
		name      string
		old, made []byte
		code      report.Code
	}{
		{"damaged base", with(old, bytes.Index(old, shared), shared[0]^1), made, report.Corrupt},
		{"damaged archive", old, with(made, bytes.Index(made, shared), shared[0]^1), report.Corrupt},
		{"same archive", made, made, report.Usage},
		{"not an archive", made[:3000], made, report.Corrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := delta.Create(t.Context(), filepath.Join(dir, "x.delta"), delta.CreateOptions{
				New: source("new.iso", test.made), Old: []layout.Source{source("old.iso", test.old)}, WrittenBy: "1.0.0", Sink: report.Discard,
			})
			if report.CodeOf(err) != test.code {
				t.Errorf("%v, want %s", err, test.code)
			}
			if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestInterruptedApply ends with its context.
func TestInterruptedApply(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	shared := layouttest.Noise(r, 50_000)
	x := create(t, layouttest.Archive(t, "1.1.0", shared), source("old.iso", layouttest.Archive(t, "1.0.0", shared)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := apply(ctx, x, source("old.iso", layouttest.Archive(t, "1.0.0", shared))); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
}

// FuzzDelta opens and applies foreign bytes: what is applied without an error has the digest that the delta names.
func FuzzDelta(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	shared := layouttest.Noise(r, 5_000)
	old := layouttest.Archive(f, "1.0.0", shared)
	x := create(f, layouttest.Archive(f, "1.1.0", shared, layouttest.Noise(r, 5_000)), source("old.iso", old))
	f.Add(x)
	f.Add(x[:2000])
	r = rand.New(rand.NewPCG(14, 15))
	files := randomFiles(r, 3, 4000)
	layers := layouttest.Archive(f, "1.0.0", gzipped(f, "gzip-go-6", layer(f, files)))
	patched := create(f, layouttest.Archive(f, "1.1.0", gzipped(f, "gzip-go-6", layer(f, update(r, files)))), source("old.iso", layers))
	f.Add(patched)
	f.Add([]byte("delta.json\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := delta.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil || d.Layout.Size > 1<<24 {
			return
		}
		made, err := apply(t.Context(), data, source("old.iso", old), source("layers.iso", layers))
		if err == nil && layouttest.Hex(made) != d.Layout.SHA256 {
			t.Error("another digest")
		}
	})
}

// TestManySignatures makes a delta with as many signatures as a pull writes beside an archive.
func TestManySignatures(t *testing.T) {
	made := layouttest.Archive(t, "1.1.0", layouttest.Noise(rand.New(rand.NewPCG(11, 12)), 50_000))
	o := options(made)
	for len(o.Bundles) < 1000 {
		o.Bundles = append(o.Bundles, layout.Bundle{Signer: fmt.Sprint(len(o.Bundles)), Data: []byte("{}")})
	}
	d, err := delta.Create(t.Context(), filepath.Join(t.TempDir(), "x.delta"), o)
	if err != nil || len(d.ArchiveDelta.Bundles) != 1000 {
		t.Errorf("%v", err)
	}
}
