package iso

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// marked is content of zeros with text at its start, across the end of the first section, and at its end.
type marked struct {
	size int64
	at   int64
}

func (m marked) marks() map[int64]string {
	return map[int64]string{0: "begin", maxSection - 3: "section", m.size - 3: "end"}
}

func (m *marked) Read(b []byte) (int, error) {
	if m.at == m.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), m.size-m.at)]
	clear(b)
	for offset, text := range m.marks() {
		for i := range text {
			if k := offset + int64(i) - m.at; k >= 0 && k < int64(len(b)) {
				b[k] = text[i]
			}
		}
	}
	m.at += int64(len(b))
	return len(b), nil
}

func (m *marked) Close() error { return nil }

// writeSparse makes an image whose large extents are holes, apart from the marks: metadata first, then the extents in
// any order, as a parallel build writes them.
func writeSparse(t *testing.T, image *Image) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "large.iso")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if err := out.Truncate(image.Size()); err != nil {
		t.Skipf("the file system holds no sparse file of %d bytes: %v", image.Size(), err)
	}
	if err := image.WriteMetadata(out); err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(image.Extents()) {
		source, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		if large, ok := source.(*marked); ok {
			for offset, text := range large.marks() {
				if _, err := out.WriteAt([]byte(text), e.Offset+offset); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, e.Offset), source); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// TestLargeFile records a file in two sections, 4.5 GiB, and one whose only section is as long as it can be.
func TestLargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 4 GiB")
	}
	t.Parallel()
	bsdtar, sevenZip := needTool(t, "bsdtar", "libarchive-tools"), needTool(t, "7z", "7zip")
	const size = maxSection + 4099
	files := []File{
		textFile("before", "before"),
		{Path: "large", Size: size, Open: func() (io.ReadCloser, error) { return &marked{size: size}, nil }},
		{Path: "section", Size: maxSection, Open: func() (io.ReadCloser, error) { return &marked{size: maxSection}, nil }},
		textFile("after", "after"),
	}
	image := layout(t, files)
	name := writeSparse(t, image)

	if got := run(t, bsdtar, "-xOf", name, "after"); got != "after" {
		t.Errorf("the file after the large ones: got %q", got)
	}
	listing := run(t, bsdtar, "-tvf", name)
	for _, want := range []string{fmt.Sprint(size), fmt.Sprint(int64(maxSection))} {
		if !strings.Contains(listing, " "+want+" ") {
			t.Errorf("bsdtar lists no file of %s bytes:\n%s", want, listing)
		}
	}
	command := exec.CommandContext(t.Context(), sevenZip, "x", "-so", name, "large")
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := sameContent(stdout, &marked{size: size}); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

// sameContent compares two streams.
func sameContent(a, b io.Reader) error {
	x, y := make([]byte, 1<<18), make([]byte, 1<<18)
	for at := int64(0); ; {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return fmt.Errorf("they differ between bytes %d and %d", at, at+int64(max(n, m)))
		}
		at += int64(n)
		if errA != nil || errB != nil {
			return nil
		}
	}
}

// TestStreamedLargeFile writes a file of two sections through WriteTo and finds both in the stream.
func TestStreamedLargeFile(t *testing.T) {
	const size = maxSection + 4099
	image := layout(t, []File{{Path: "large", Size: size, Open: func() (io.ReadCloser, error) { return &marked{size: size}, nil }}})
	reader, writer := io.Pipe()
	go func() {
		_, err := image.WriteTo(writer)
		writer.CloseWithError(err)
	}()
	t.Cleanup(func() { _ = reader.Close() })
	e := image.Extents()[0]
	head := make([]byte, e.Offset)
	if _, err := io.ReadFull(reader, head); err != nil {
		t.Fatal(err)
	}
	if err := sameContent(io.LimitReader(reader, size), &marked{size: size}); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(reader)
	if err != nil || int64(len(rest)) != image.Size()-e.Offset-size || len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("%d bytes after the extent, %v", len(rest), err)
	}
	var metadata bytes.Buffer
	if err := image.WriteMetadata(&metadata); err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(head) != sha256.Sum256(metadata.Bytes()) {
		t.Error("the stream begins with other metadata")
	}
	for _, section := range []struct {
		lba, size uint32
		flags     byte
	}{{uint32(e.Offset / sectorSize), maxSection, flagMultiExtent}, {uint32(e.Offset/sectorSize) + maxSection/sectorSize, 4099, 0}} {
		want := appendRecord(nil, "LARGE.;1", section.lba, section.size, appendTime7(nil, testTime()), section.flags)[1:]
		if !bytes.Contains(head, want) {
			t.Errorf("no record of the section %+v", section)
		}
	}
}
