package iso

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

func openBytes(tb testing.TB, data []byte) *FS {
	tb.Helper()
	fsys, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatal(err)
	}
	return fsys
}

func TestFS(t *testing.T) {
	for name, files := range map[string][]File{"small": smallTree(), "stress": stressTree(300)} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, f := range files {
				want = append(want, f.Path)
			}
			if err := fstest.TestFS(openBytes(t, imageBytes(t, files)), want...); err != nil {
				t.Error(err)
			}
		})
	}
	if err := fstest.TestFS(openBytes(t, imageBytes(t, nil))); err != nil {
		t.Error(err)
	}
}

// TestContent compares every file of an image with its source; there must be no other files.
func TestContent(t *testing.T) {
	files := stressTree(300)
	fsys, sums := openBytes(t, imageBytes(t, files)), contentSums(t, files)
	seen := 0
	err := fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		seen++
		data, err := fs.ReadFile(fsys, path)
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sums[path] {
			t.Errorf("%s has other content", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(files) {
		t.Errorf("%d files, want %d", seen, len(files))
	}
}

func TestStat(t *testing.T) {
	files := smallTree()
	image := layout(t, files)
	fsys := openBytes(t, imageBytes(t, files))
	if got, want := fsys.VolumeID(), testOptions().VolumeID; got != want {
		t.Errorf("volume id %q, want %q", got, want)
	}
	for _, e := range image.Extents() {
		info, err := fsys.Stat(e.Path)
		if err != nil {
			t.Fatal(err)
		}
		links := 1
		if e.Key != "" {
			links = 2
		}
		stat := info.Sys().(*Stat)
		if !slices.Equal(stat.Sections, []Section{{e.Offset, e.Size}}) || stat.Links != uint32(links) || stat.UID != 0 || stat.GID != 0 {
			t.Errorf("%s: %+v, want the extent at %d with %d links", e.Path, stat, e.Offset, links)
		}
		if info.Size() != e.Size || info.Mode() != 0o444 || !info.ModTime().Equal(testTime()) {
			t.Errorf("%s: %s", e.Path, fs.FormatFileInfo(info))
		}
	}
	for path, mode := range map[string]fs.FileMode{
		".": fs.ModeDir | 0o555, "images/ui": fs.ModeDir | 0o555, "registry-config.inc.j2": 0o444,
	} {
		info, err := fsys.Stat(path)
		if err != nil || info.Mode() != mode || len(info.Sys().(*Stat).Sections) != 0 {
			t.Errorf("%s: %v %v, want mode %v without sections", path, info, err, mode)
		}
	}
}

func TestErrors(t *testing.T) {
	fsys := openBytes(t, imageBytes(t, smallTree()))
	_, notFound := fsys.Open("manifest.yml")
	_, invalid := fsys.Stat("/manifest.yaml")
	_, directory := fsys.ReadFile("images")
	_, file := fsys.ReadDir("manifest.yaml")
	f, err := fsys.Open("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, negative := f.(io.Seeker).Seek(-1, io.SeekStart)
	_, whence := f.(io.Seeker).Seek(0, 9)
	_, before := f.(io.ReaderAt).ReadAt(make([]byte, 1), -1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, closed := f.Read(make([]byte, 1))
	for _, test := range []struct{ got, want error }{
		{notFound, fs.ErrNotExist},
		{invalid, fs.ErrInvalid},
		{directory, errIsDirectory},
		{file, errNotDirectory},
		{negative, fs.ErrInvalid},
		{whence, fs.ErrInvalid},
		{before, fs.ErrInvalid},
		{closed, fs.ErrClosed},
		{f.Close(), fs.ErrClosed},
	} {
		var pathError *fs.PathError
		if !errors.Is(test.got, test.want) || !errors.As(test.got, &pathError) {
			t.Errorf("got %v, want a PathError with %v", test.got, test.want)
		}
	}
}

// stitchedFS is a file of three sections, two of which touch, as foreign writers make them of files above 4 GiB.
func stitchedFS(tb testing.TB) (fsys *FS, content []byte) {
	tb.Helper()
	content = make([]byte, 5*sectorSize+100)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	image := bytes.Repeat([]byte{0xEE}, 40*sectorSize)
	copy(image[10*sectorSize:], content[:3*sectorSize])
	copy(image[20*sectorSize:], content[3*sectorSize:])
	n := &node{name: "f", path: "f"}
	for _, s := range []Section{{10 * sectorSize, sectorSize}, {11 * sectorSize, 2 * sectorSize}, {20 * sectorSize, 2*sectorSize + 100}} {
		n.addSection(s)
	}
	if len(n.sections) != 2 {
		tb.Fatalf("%v: sections that touch are one", n.sections)
	}
	root := &node{name: ".", path: ".", dir: true, mode: fs.ModeDir | 0o555, children: []*node{n}}
	return &FS{r: bytes.NewReader(image), nodes: map[string]*node{".": root, "f": n}}, content
}

func TestStitched(t *testing.T) {
	fsys, content := stitchedFS(t)
	if err := fstest.TestFS(fsys, "f"); err != nil {
		t.Error(err)
	}
	f, err := fsys.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(f.(io.Reader), content); err != nil {
		t.Error(err)
	}
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same ranges each time
	for range 1000 {
		at, n := random.IntN(len(content)+10), random.IntN(3*sectorSize)
		got := make([]byte, n)
		done, err := f.(io.ReaderAt).ReadAt(got, int64(at))
		want := content[min(at, len(content)):min(at+n, len(content))]
		if !bytes.Equal(got[:done], want) || (done < n) != (err == io.EOF) {
			t.Fatalf("%d bytes at %d: got %d bytes and %v, want %d", n, at, done, err, len(want))
		}
	}
}

// TestReadLargeFile reads a file of two sections and one whose only section is as long as it can be.
func TestReadLargeFile(t *testing.T) {
	sizes := map[string]int64{"large": 9 << 29, "section": maxSection}
	var files []File
	for name, size := range sizes {
		files = append(files, File{Path: name, Size: size, Open: func() (io.ReadCloser, error) { return &marked{size: size}, nil }})
	}
	f, err := os.Open(writeSparse(t, layout(t, files)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	stat, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if findings := slices.Concat(Check(f, stat.Size()), CompareDiskFS(f, stat.Size())); len(findings) > 0 {
		t.Error(findings)
	}
	fsys, err := Open(f, stat.Size())
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range sizes {
		file, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, statErr := file.Stat(); statErr != nil || info.Size() != size || len(info.Sys().(*Stat).Sections) != 1 {
			t.Fatalf("%s: %v %v, want %d bytes in one run", name, info, statErr, size)
		}
		for at, mark := range (marked{size: size}).marks() {
			got := make([]byte, len(mark))
			if _, err := file.(io.ReaderAt).ReadAt(got, at); err != nil || string(got) != mark {
				t.Errorf("%s at %d: %q %v, want %q", name, at, got, err, mark)
			}
		}
	}
}

func TestFileReads(t *testing.T) {
	fsys := openBytes(t, imageBytes(t, []File{textFile("f", strings.Repeat("0123456789", 1000)), textFile("empty", "")}))
	for name, content := range map[string][]byte{"f": bytes.Repeat([]byte("0123456789"), 1000), "empty": nil} {
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(f, content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.(io.Seeker).Seek(int64(len(content)/2), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var rest bytes.Buffer
		if n, err := f.(io.WriterTo).WriteTo(&rest); err != nil || n != int64(rest.Len()) || !bytes.Equal(rest.Bytes(), content[len(content)/2:]) {
			t.Errorf("%s: WriteTo gives %d bytes and %v", name, n, err)
		}
	}
}

// TestMediumEndsEarly cuts the content after the image was opened: that is an error and never the end of the file.
func TestMediumEndsEarly(t *testing.T) {
	const small, large = "images/ui/1.0.0/version", "read-ahead"
	data := imageBytes(t, append(smallTree(), textFile(large, strings.Repeat("x", 200_000))))
	for name, left := range map[string]int64{small: 5, large: 150_000} {
		r := &shrinking{data: data}
		fsys, err := Open(r, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		info, err := fsys.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		r.data = data[:info.Sys().(*Stat).Sections[0].Offset+left]
		if _, err = fsys.ReadFile(name); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: ReadFile: %v", name, err)
		}
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if !errors.Is(err, io.ErrUnexpectedEOF) || int64(len(got)) != left {
			t.Errorf("%s: Read: %d bytes and %v", name, len(got), err)
		}
	}
}

type shrinking struct{ data []byte }

func (s *shrinking) ReadAt(p []byte, offset int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, offset)
}

// measured remembers the sizes of reads.
type measured struct {
	io.ReaderAt
	sizes []int
}

func (r *measured) ReadAt(p []byte, offset int64) (int, error) {
	r.sizes = append(r.sizes, len(p))
	return r.ReaderAt.ReadAt(p, offset)
}

// TestReadAhead reads a file in small pieces: the image is read in large ones, and never more than twice as much as was asked for.
func TestReadAhead(t *testing.T) {
	const size, piece = 5<<20 + 7, 32 << 10
	content := strings.Repeat("0123456789", size/10+1)[:size]
	data := imageBytes(t, []File{textFile("f", content)})
	r := &measured{ReaderAt: bytes.NewReader(data)}
	fsys, err := Open(r, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	r.sizes = nil
	f, err := fsys.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for asked := piece; ; asked += piece {
		var n int64
		n, err = io.CopyN(struct{ io.Writer }{&got}, struct{ io.Reader }{f}, piece)
		read := 0
		for _, size := range r.sizes {
			read += size
		}
		if read > 2*asked {
			t.Fatalf("%d bytes were read for %d", read, asked)
		}
		if n < piece && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != content {
		t.Error("other content")
	}
	if most := 5 + size/copyBuffer + 2; len(r.sizes) > most {
		t.Errorf("%d reads, want at most %d: %d", len(r.sizes), most, r.sizes)
	}
	r.sizes = nil
	if _, err = f.(io.Seeker).Seek(100, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	small := make([]byte, 10)
	if _, err = f.Read(small); err != nil || string(small) != content[100:110] || !slices.Equal(r.sizes, []int{10}) {
		t.Errorf("after Seek: %q %v, reads %d", small, err, r.sizes)
	}
}

func TestConcurrentReads(t *testing.T) {
	files := smallTree()
	fsys, sums := openBytes(t, imageBytes(t, files)), contentSums(t, files)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, f := range files {
				data, err := fs.ReadFile(fsys, f.Path)
				if got := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || got != sums[f.Path] {
					t.Errorf("%s: %v or other content", f.Path, err)
				}
				if _, err := fs.Glob(fsys, "images/*/*"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// TestOpenIsCheap opens an archive with many files: the number of reads follows the directories, not the files.
func TestOpenIsCheap(t *testing.T) {
	data := imageBytes(t, manyFiles(20000))
	c := newCounted(t, data)
	if n := allocated(func() {
		if _, err := Open(c, c.size); err != nil {
			t.Fatal(err)
		}
	}); n > 80<<20 {
		t.Errorf("opening allocates %d bytes", n)
	}
	if c.calls > 1000 {
		t.Errorf("opening makes %d reads", c.calls)
	}
}
