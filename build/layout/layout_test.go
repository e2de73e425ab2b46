package layout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func source(data []byte) layout.Source {
	return layout.Source{Name: "demo.iso", ReaderAt: bytes.NewReader(data), Size: int64(len(data))}
}

// assemble puts an archive together from a frame and from its own blobs.
func assemble(tb testing.TB, p *layout.Parts, frame []byte) *layout.Archive {
	tb.Helper()
	places := map[string]media.Run{}
	for i, b := range layout.Blobs(&p.Layout) {
		places[b.SHA256] = media.Run{ReaderAt: p.Blob(i), Name: "demo.iso"}
	}
	a, err := layout.Assemble(&p.Layout, "the test", layout.Frame{ReaderAt: bytes.NewReader(append(make([]byte, 7), frame...)), At: 7}, places)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func frameOf(tb testing.TB, p *layout.Parts) []byte {
	tb.Helper()
	var frame bytes.Buffer
	err := p.WriteFrame(tb.Context(), func(block []byte) error {
		_, err := frame.Write(block)
		return err
	})
	if err != nil || int64(frame.Len()) != layout.FrameSize(p.Layout.Frame) {
		tb.Fatalf("a frame of %d bytes, %d in its layout: %v", frame.Len(), layout.FrameSize(p.Layout.Frame), err)
	}
	return frame.Bytes()
}

// TestTakeApart puts archives together again, whatever counts as a blob.
func TestTakeApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	large, middle, small := layouttest.Noise(r, 3_000_000), layouttest.Noise(r, 70_000), layouttest.Noise(r, 5000)
	data := layouttest.Archive(t, "1.0.0", large, middle, small, layouttest.Noise(r, 100))
	for _, test := range []struct {
		name   string
		limits layout.Limits
		blobs  [][]byte
	}{
		{"deltas", layout.DeltaLimits, [][]byte{large, middle, small}},
		{"registries", layout.RegistryLimits, [][]byte{large, middle}},
		{"the largest", layout.Limits{Smallest: 1, Most: 1}, [][]byte{large}},
		{"none", layout.Limits{Smallest: 1 << 30, Most: 10}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := layout.TakeApart(t.Context(), source(data), test.limits, report.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if err = p.Layout.Validate(); err != nil || p.Layout.SHA256 != layouttest.Hex(data) {
				t.Errorf("%v, digest %s", err, p.Layout.SHA256)
			}
			var want []layout.Blob
			for _, blob := range test.blobs {
				want = append(want, layout.Blob{SHA256: layouttest.Hex(blob), Size: int64(len(blob))})
			}
			if got := layout.Blobs(&p.Layout); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("blobs %v, want %v", got, want)
			}
			a := assemble(t, p, frameOf(t, p))
			var made bytes.Buffer
			if err = a.Copy(t.Context(), &made, report.Discard); err != nil || !bytes.Equal(made.Bytes(), data) {
				t.Errorf("%d bytes, want %d: %v", made.Len(), len(data), err)
			}
			for range 200 { // anywhere, as readers of archives do
				at, n := r.IntN(len(data)), r.IntN(100_000)
				piece := make([]byte, min(n, len(data)-at))
				if _, err := a.ReadAt(piece, int64(at)); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(piece, data[at:at+len(piece)]) {
					t.Fatalf("%d bytes from %d: %v", len(piece), at, err)
				}
			}
		})
	}
}

// TestDamage names what is damaged: a blob, the frame, or an archive that is not what its names promise.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	blob := layouttest.Noise(r, 50_000)
	data := layouttest.Archive(t, "1.0.0", blob)
	at := bytes.Index(data, blob)
	damaged := bytes.Clone(data)
	damaged[at+100] ^= 1
	if _, err := layout.TakeApart(t.Context(), source(damaged), layout.DeltaLimits, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("an archive with a blob of another name: %v", err)
	}
	p, err := layout.TakeApart(t.Context(), source(data), layout.DeltaLimits, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	frame := frameOf(t, p)
	frame[len(frame)/2] ^= 1
	if err = assemble(t, p, frame).Copy(t.Context(), io.Discard, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("a damaged frame: %v", err)
	}
	data[at+100] ^= 1 // after it was taken apart
	if err = assemble(t, p, frameOf(t, p)).Copy(t.Context(), io.Discard, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("a damaged blob: %v", err)
	}
}

// TestIndex finds blobs by their digests, also those of files with other names, and no blob of another size.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	blob := layouttest.Noise(r, 40_000)
	data := layouttest.Archive(t, "1.0.0", blob)
	x, err := layout.NewIndex(source(data))
	if err != nil || x.Solution != "demo" || x.Version != "1.0.0" {
		t.Fatalf("%+v, %v", x, err)
	}
	for _, test := range []struct {
		blob  layout.Blob
		there bool
	}{
		{layout.Blob{SHA256: layouttest.Hex(blob), Size: 40_000}, true},
		{layout.Blob{SHA256: layouttest.Hex(blob), Size: 39_999}, false},
		{layout.Blob{SHA256: layouttest.Hex([]byte("other")), Size: 40_000}, false},
	} {
		run, err := x.Find(t.Context(), test.blob)
		if err != nil || (run.ReaderAt != nil) != test.there {
			t.Errorf("%+v: %+v, %v", test.blob, run, err)
		}
		if run.ReaderAt == nil {
			continue
		}
		found := make([]byte, len(blob))
		if _, err = run.ReadAt(found, run.From); err != nil || !bytes.Equal(found, blob) {
			t.Errorf("other bytes: %v", err)
		}
	}
}

// Example lists what an archive consists of.
func Example() {
	data, err := layouttest.Make("1.0.0", bytes.Repeat([]byte("layer"), 20_000))
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := layout.TakeApart(context.Background(), source(data), layout.DeltaLimits, report.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(parts.Layout.ID())
	for _, s := range parts.Layout.Segments {
		fmt.Println(kind(s), s.Size)
	}
	// Output:
	// demo-1.0.0
	// frame 69632
	// blob 100000
	// frame 6496
}

func kind(s schema.ArchiveSegment) string {
	if s.SHA256 == "" {
		return "frame"
	}
	return "blob"
}

// TestDescribe describes an archive as TakeApart does, and reads no blob whose digest is its name.
func TestDescribe(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	blob := layouttest.Noise(r, 900_000)
	data := layouttest.Archive(t, "1.0.0", blob, layouttest.Noise(r, 70_000))
	want, err := layout.TakeApart(t.Context(), source(data), layout.RegistryLimits, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, blob)
	unread := source(data)
	unread.ReaderAt = hole{bytes.NewReader(data), int64(at), int64(at + len(blob))}
	got, err := layout.Describe(t.Context(), unread, layouttest.Hex(data), layout.RegistryLimits)
	if err != nil || fmt.Sprint(got.Layout) != fmt.Sprint(want.Layout) || !bytes.Equal(frameOf(t, got), frameOf(t, want)) {
		t.Errorf("%+v, %v; want %+v", got, err, want.Layout)
	}
}

// hole fails to read a range.
type hole struct {
	io.ReaderAt
	from, to int64
}

func (h hole) ReadAt(p []byte, offset int64) (int, error) {
	if offset < h.to && offset+int64(len(p)) > h.from {
		return 0, errors.New("this is not to be read")
	}
	return h.ReaderAt.ReadAt(p, offset)
}
