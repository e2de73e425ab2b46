package chunk_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	n int
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.n += n
	return n, err
}

// TestZeros reads spaces of a file, some of which are none, and changes the file before it is copied.
func TestZeros(t *testing.T) {
	const size = 3*chunk.MinSize + 100
	signed := random(size)
	clear(signed[100:200])
	clear(signed[chunk.MinSize-50 : chunk.MinSize+50]) // in two chunks
	for _, test := range []struct {
		name         string
		from, length int
		before       func(file []byte) // changes the file before it is examined
		after        func(file []byte) // changes it before it is copied
		want         report.Code       // of the copy
		examined     report.Code
		read         int // bytes, at most
	}{
		{name: "zeros", from: 100, length: 100, read: 100},
		{name: "zeros in two chunks", from: chunk.MinSize - 50, length: 100, read: 100},
		{name: "other bytes are verified at once", from: 150, length: 100, read: 100 + chunk.MinSize},
		{name: "the end of the file", from: size - 50, length: 100, read: chunk.MinSize},
		{
			name: "zeros that were not signed", from: 300, length: 50, read: 50,
			before: func(file []byte) { clear(file[300:350]) },
			after:  func(file []byte) { copy(file[300:350], signed[300:]) },
			want:   report.Corrupt,
		},
		{
			name: "zeros that were not signed, in the second chunk", from: chunk.MinSize - 50, length: 200, read: 200,
			before: func(file []byte) { clear(file[chunk.MinSize-50 : chunk.MinSize+150]) },
			after:  func(file []byte) { copy(file, signed) },
			want:   report.Corrupt,
		},
		{
			name: "changed bytes", from: 100, length: 100, read: 100 + chunk.MinSize,
			before:   func(file []byte) { file[150] = 1 },
			examined: report.Corrupt, want: report.Corrupt,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := bytes.Clone(signed)
			if test.before != nil {
				test.before(file)
			}
			source := &counted{ReaderAt: bytes.NewReader(file)}
			reader, err := chunk.NewReader(source, small(signed))
			if err != nil {
				t.Fatal(err)
			}
			zeros, p := chunk.NewZeros(reader), make([]byte, test.length)
			n, err := zeros.ReadAt(p, int64(test.from))
			if report.CodeOf(err) != test.examined && err != io.EOF { //nolint:errorlint // ReaderAt returns EOF bare
				t.Fatalf("read: %v, want the code %q", err, test.examined)
			}
			if err == nil && !bytes.Equal(p[:n], file[test.from:test.from+n]) {
				t.Error("other bytes were read")
			}
			if source.n > test.read {
				t.Errorf("%d bytes were read of the file, want %d", source.n, test.read)
			}
			if test.after != nil {
				test.after(file)
			}
			var out memory
			if _, err = chunk.Copy(t.Context(), &out, source, small(signed), zeros, report.Discard); report.CodeOf(err) != test.want {
				t.Errorf("copy: %v, want the code %q", err, test.want)
			}
			if _, err = chunk.Check(t.Context(), source, small(signed), zeros, report.Discard); report.CodeOf(err) != test.want {
				t.Errorf("check: %v, want the code %q", err, test.want)
			}
		})
	}
}

// TestManyZeros reads more spaces than are kept in mind: further ones are verified at once.
func TestManyZeros(t *testing.T) {
	signed := make([]byte, chunk.MinSize)
	source := &counted{ReaderAt: bytes.NewReader(signed)}
	reader, err := chunk.NewReader(source, small(signed))
	if err != nil {
		t.Fatal(err)
	}
	zeros := chunk.NewZeros(reader)
	const kept = 4096
	for i := range kept + 1 {
		if _, err := zeros.ReadAt(make([]byte, 1), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if want := kept + 1 + chunk.MinSize; source.n != want {
		t.Errorf("%d bytes were read, want %d: the last space with its whole chunk", source.n, want)
	}
}
