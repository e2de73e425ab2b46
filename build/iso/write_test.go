package iso

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// TestGolden pins the bytes: a later release must build the same file from the same archive.
func TestGolden(t *testing.T) {
	got := fmt.Sprintf("%x", sha256.Sum256(imageBytes(t, smallTree())))
	const want = "5887b78c132c4455bb04c3afe980fb4a0996239e8987efe3787e9cc50063de58"
	if got != want {
		t.Errorf("the image has SHA-256 %s, want %s", got, want)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	files := stressTree(500)
	if !bytes.Equal(imageBytes(t, files), imageBytes(t, slices.Clone(files))) {
		t.Error("two images of the same files differ")
	}
}

func TestExtents(t *testing.T) {
	files := stressTree(500)
	image := layout(t, files)
	data := imageBytes(t, files)
	sums := contentSums(t, files)
	end := image.MetadataSize()
	for _, e := range image.Extents() {
		if e.Offset != end || e.Offset%4096 != 0 || e.Size == 0 {
			t.Fatalf("%s: %d bytes at %d, want it at %d", e.Path, e.Size, e.Offset, end)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data[e.Offset:e.Offset+e.Size])); got != sums[e.Path] {
			t.Errorf("%s: the extent holds other content", e.Path)
		}
		end = (e.Offset + e.Size + 4095) / 4096 * 4096
		if gap := data[e.Offset+e.Size : end]; len(bytes.Trim(gap, "\x00")) > 0 {
			t.Errorf("%s: no zeros after the extent", e.Path)
		}
	}
	if end != image.Size() {
		t.Errorf("the extents end at %d, the image at %d", end, image.Size())
	}
}

func TestSharedExtent(t *testing.T) {
	opened := 0
	shared := func(path string) File {
		f := textFile(path, "same bytes")
		open := f.Open
		f.Key, f.Open = "digest", func() (io.ReadCloser, error) { opened++; return open() }
		return f
	}
	files := []File{shared("a/x"), textFile("own", "same bytes"), shared("b/y"), shared("b/z")}
	image := layout(t, files)
	var paths []string
	for _, e := range image.Extents() {
		paths = append(paths, e.Path+" "+e.Key)
	}
	if want := []string{"a/x digest", "own "}; !slices.Equal(paths, want) {
		t.Errorf("extents %q, want %q", paths, want)
	}
	if _, err := image.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	if opened != 1 {
		t.Errorf("the shared content was opened %d times", opened)
	}
}

func TestMetadataStandsAlone(t *testing.T) {
	files := smallTree()
	want := imageBytes(t, files)
	for i := range files {
		files[i].Open = nil
	}
	image := layout(t, files)
	var got bytes.Buffer
	if err := image.WriteMetadata(&got); err != nil {
		t.Fatal(err)
	}
	if int64(got.Len()) != image.MetadataSize() || !bytes.Equal(got.Bytes(), want[:image.MetadataSize()]) {
		t.Error("WriteMetadata and WriteTo differ")
	}
	if _, err := image.WriteTo(io.Discard); err == nil || !strings.Contains(err.Error(), "has no source") {
		t.Errorf("WriteTo without sources: %v", err)
	}
}

func TestLayoutRefuses(t *testing.T) {
	many := make([]File, 65536)
	for i := range many {
		many[i] = textFile(fmt.Sprintf("d%d/f", i), "")
	}
	other := textFile("other", "12")
	other.Key = "k"
	keyed := textFile("keyed", "1")
	keyed.Key = "k"
	for _, test := range []struct {
		name  string
		files []File
		want  string // in the message
	}{
		{"empty path", []File{textFile("", "")}, `""`},
		{"the root", []File{textFile(".", "")}, `"."`},
		{"absolute", []File{textFile("/etc/passwd", "")}, `"/etc/passwd"`},
		{"parent", []File{textFile("a/../../b", "")}, `"a/../../b": the path contains ".."`},
		{"not in shortest form", []File{textFile("a//b", "")}, `"a//b"`},
		{"leading dot", []File{textFile("a/.hidden", "")}, `"a/.hidden": the name begins with a dot`},
		{"leading dot of a directory", []File{textFile("a/.git/config", "")}, `"a/.git"`},
		{"control character", []File{textFile("a/b\x1b[0m", "")}, `"a/b\x1b[0m": the name contains a control character`},
		{"backslash", []File{textFile(`a\b`, "")}, "backslash"},
		{"not UTF-8", []File{textFile("a/\xff", "")}, `"a/\xff"`},
		{"long name", []File{textFile("a/"+strings.Repeat("x", 246), "")}, "246 bytes and the limit is 245"},
		{"twice", []File{textFile("a/b", ""), textFile("a/b", "")}, `"a/b": the path occurs twice`},
		{"file and directory", []File{textFile("a", ""), textFile("a/b", "")}, `"a": the path is a file and a directory`},
		{"directory and file", []File{textFile("a/b", ""), textFile("a", "")}, `"a": the path is a file and a directory`},
		{"case", []File{textFile("manifest.yaml", ""), textFile("MANIFEST.yaml", "")}, "in case or in Unicode composition"},
		{"composition", []File{textFile("d/caf\u00e9", ""), textFile("d/cafe\u0301", "")}, "in case or in Unicode composition"},
		{"level 9", []File{textFile("2/3/4/5/6/7/8/9/f", "")}, `"2/3/4/5/6/7/8/9": the directory is deeper than 8 levels`},
		{"65,536 directories", many, `"d65534" is one directory too many`},
		{"negative size", []File{{Path: "a", Size: -1}}, `"a": the size is negative`},
		{"huge file", []File{{Path: "a", Size: 1 << 62}}, `"a": the file is larger`},
		{"2^32 sectors", []File{{Path: "a", Size: 1 << 42}, {Path: "b", Size: 1 << 42}}, `"b" does not fit`},
		{"set-user-ID", []File{{Path: "a", Mode: fs.ModeSetuid | 0o755}}, `"a": mode u`},
		{"symbolic link", []File{{Path: "a", Mode: fs.ModeSymlink}}, `"a": mode L`},
		{"one key, two sizes", []File{keyed, other}, `"other": two sizes, 2 and 1 bytes`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Layout(test.files, testOptions())
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range []Options{
		{},
		{ModTime: time.Date(1899, 12, 31, 23, 59, 59, 0, time.UTC)},
		{ModTime: time.Date(2155, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -3600))},
		{ModTime: testTime(), VolumeID: strings.Repeat("x", 33)},
		{ModTime: testTime(), VolumeID: "a\nb"},
		{ModTime: testTime(), VolumeID: "\xff"},
		{ModTime: testTime(), ApplicationID: strings.Repeat("x", 129)},
	} {
		if _, err := Layout(nil, o); report.CodeOf(err) != report.Invalid {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	for _, o := range []Options{
		{ModTime: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)},
		{ModTime: time.Date(2155, 12, 31, 23, 59, 59, 999_999_999, time.UTC), VolumeID: strings.Repeat("x", 32), ApplicationID: strings.Repeat("x", 128)},
		{ModTime: testTime(), VolumeID: "Société Générale 🚀"},
	} {
		image, err := Layout(nil, o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if n, err := image.WriteTo(io.Discard); err != nil || n != image.Size() {
			t.Errorf("%+v: wrote %d of %d bytes: %v", o, n, image.Size(), err)
		}
	}
}

func TestSourceOfOtherSize(t *testing.T) {
	failure := errors.New("unplugged")
	for _, test := range []struct {
		name string
		size int64
		from func() (io.ReadCloser, error)
		code report.Code
		want string
	}{
		{"short", 5, textFile("", "1234").Open, report.Corrupt, "data/b has only 4 bytes, want 5"},
		{"empty", 5, textFile("", "").Open, report.Corrupt, "data/b has only 0 bytes, want 5"},
		{"long", 3, textFile("", "1234").Open, report.Corrupt, "data/b has more, want 3 bytes"},
		{"not there", 3, func() (io.ReadCloser, error) { return os.Open("testdata/nothing") }, report.Failure, "testdata/nothing"},
		{"read error", 3, reading(io.MultiReader(strings.NewReader("1"), failingReader{failure})), report.Failure, "the source of data/b: unplugged"},
		{"read error after the end", 1, reading(io.MultiReader(strings.NewReader("1"), failingReader{failure})), report.Failure, "the source of data/b: unplugged"},
		{"close error", 1, func() (io.ReadCloser, error) { return failingCloser{strings.NewReader("1"), failure}, nil }, report.Failure, "data/b: unplugged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := layout(t, []File{textFile("a", "a"), {Path: "data/b", Size: test.size, Open: test.from}, textFile("c", "c")})
			n, err := image.WriteTo(io.Discard)
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if n >= image.Size() {
				t.Errorf("%d bytes of %d were written", n, image.Size())
			}
		})
	}
}

func reading(r io.Reader) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

type failingCloser struct {
	io.Reader
	err error
}

func (c failingCloser) Close() error { return c.err }

// TestFullDevice runs out of space at every sector of the metadata and of the content.
func TestFullDevice(t *testing.T) {
	full := errors.New("no space left on device")
	files := smallTree()
	for n := 100; n <= maxName; n++ { // continuation areas
		files = append(files, textFile(fmt.Sprintf("long/%s-%d", strings.Repeat("n", n-len("-000")), n), "long"))
	}
	image := layout(t, files)
	step := int64(sectorSize)
	for room := int64(0); room < image.Size(); room += step {
		if room > image.MetadataSize() {
			step = 37 * sectorSize
		}
		n, err := image.WriteTo(&device{room: room, err: full})
		if !errors.Is(err, full) || n > room {
			t.Fatalf("room for %d bytes: wrote %d, %v", room, n, err)
		}
		if room < image.MetadataSize() {
			if err := image.WriteMetadata(&device{room: room, err: full}); !errors.Is(err, full) {
				t.Fatalf("metadata, room for %d bytes: %v", room, err)
			}
		}
	}
	if _, err := image.WriteTo(&device{room: image.Size(), err: full}); err != nil {
		t.Errorf("room for everything: %v", err)
	}
}

// device is a writer with room for so many bytes.
type device struct {
	room int64
	err  error
}

func (d *device) Write(b []byte) (int, error) {
	if int64(len(b)) > d.room {
		n := int(d.room)
		d.room = 0
		return n, d.err
	}
	d.room -= int64(len(b))
	return len(b), nil
}

func TestShortWriteIsAnError(t *testing.T) {
	if _, err := layout(t, smallTree()).WriteTo(lazyWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

// lazyWriter breaks the contract of [io.Writer] as network file systems have been seen to do.
type lazyWriter struct{}

func (lazyWriter) Write(b []byte) (int, error) { return len(b) / 2, nil }

// FuzzLayout: for any names and sizes, a layout is refused or its metadata has the announced length, and no two extents
// overlap.
func FuzzLayout(f *testing.F) {
	f.Add("manifest.yaml\nimages/ui/1.0.0/version\n", uint64(2048), uint16(0))
	f.Add("a\na/b", uint64(0), uint16(1))
	f.Add("a:b\na_b\na*b\na?b", uint64(1<<33), uint16(0))
	f.Add("x\nx.\nx..\nX", uint64(4096), uint16(3))
	f.Add(strings.Repeat("d/", 8)+"f\n"+strings.Repeat("漢", 81)+"\n"+strings.Repeat("n", 245), uint64(maxSection), uint16(0))
	f.Add("../a\n/b\nc/./d\n\xff\n.e\nf\\g\nh\x00", uint64(1<<63), uint16(7))
	f.Fuzz(func(t *testing.T, names string, size uint64, salt uint16) {
		var files []File
		for i, name := range strings.SplitN(names, "\n", 20) {
			// Fuzzers do not find long lists of names with one prefix by themselves.
			for n := range int(salt)%3*150 + 1 {
				files = append(files, File{Path: strings.Repeat(name, 1+n%2) + strings.Repeat("'", n), Size: int64(size) >> (i % 64), Key: name[:len(name)%2]})
			}
		}
		image, err := Layout(files, testOptions())
		if err != nil {
			if report.CodeOf(err) != report.Invalid {
				t.Fatal(err)
			}
			return
		}
		var metadata device
		metadata.room = image.MetadataSize()
		metadata.err = errors.New("longer than MetadataSize")
		if err := image.WriteMetadata(&metadata); err != nil || metadata.room != 0 {
			t.Fatalf("%d bytes missing, %v", metadata.room, err)
		}
		end := image.MetadataSize()
		for _, e := range image.Extents() {
			if e.Offset < end || e.Offset%4096 != 0 || e.Size <= 0 {
				t.Fatalf("extent %+v after %d", e, end)
			}
			end = e.Offset + e.Size
		}
		if end > image.Size() {
			t.Fatalf("extents end at %d, the image at %d", end, image.Size())
		}
	})
}

func BenchmarkWriteTo(b *testing.B) {
	image := layout(b, stressTree(5000))
	b.SetBytes(image.Size())
	for b.Loop() {
		if _, err := image.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	files := stressTree(20000)
	for b.Loop() {
		layout(b, files)
	}
}
