package tardiff_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/build/tardiff"
	"github.com/solutionctl/solutionctl/schema/report"
)

// entry is an entry of a tar file; a regular file when it has no other type.
type entry struct {
	name    string
	content []byte
	kind    byte
	modTime time.Time
}

func makeTar(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644, Typeflag: e.kind, ModTime: e.modTime}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeSymlink {
			h.Linkname = "elsewhere"
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(data []byte) tardiff.Tar {
	return tardiff.Tar{ReaderAt: bytes.NewReader(data), Size: int64(len(data))}
}

func diff(tb testing.TB, old, made []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := tardiff.Diff(tb.Context(), &b, tarOf(old), tarOf(made)); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func apply(ctx context.Context, patch, old []byte, size int) ([]byte, error) {
	var b bytes.Buffer
	err := tardiff.Apply(ctx, &b, bytes.NewReader(patch), tarOf(old), int64(size))
	return b.Bytes(), err
}

// program resembles machine code: it can hardly be compressed, and contains addresses that all change when something is inserted.
func program(r *rand.Rand, size, shift int) []byte {
	data := make([]byte, 0, size)
	for len(data) < size {
		code := binary.LittleEndian.AppendUint64(nil, r.Uint64())
		data = append(data, code...)
		if r.IntN(4) == 0 {
			data = binary.LittleEndian.AppendUint32(data, uint32(0x400000+r.IntN(1<<20)+shift))
		}
	}
	return data[:size]
}

func noise(size int) []byte { return program(rand.New(rand.NewPCG(7, uint64(size))), size, 0) }

func insert(data []byte, at int, more []byte) []byte {
	return append(append(bytes.Clone(data[:at]), more...), data[at:]...)
}

func TestDiff(t *testing.T) {
	big, other := noise(300_000), noise(200_000)
	text := []byte(strings.Repeat("a line of text\n", 3000))
	later := time.Unix(1e9, 0)
	base := []entry{{name: "usr/bin/big", content: big}, {name: "etc/text", content: text}, {name: "dir/", kind: tar.TypeDir}}
	long := strings.Repeat("long/", 60) + "name"
	for _, test := range []struct {
		name      string
		old, made []entry
		most      int // bytes of the patch
	}{
		{"equal", base, base, 300},
		{"other times", base, []entry{{name: "usr/bin/big", content: big, modTime: later}, {name: "etc/text", content: text, modTime: later}, {name: "dir/", kind: tar.TypeDir, modTime: later}}, 400},
		{"a renamed file", base, []entry{{name: "opt/other", content: big}}, 300},
		{"a new version in another directory", []entry{{name: "lib/libx.so.1.2", content: big}}, []entry{{name: "lib64/libx.so.1.3", content: insert(big, 1000, []byte("new"))}}, 400},
		{"bytes inserted", base, []entry{{name: "usr/bin/big", content: insert(big, 150_000, []byte("something that is new"))}}, 400},
		{"bytes removed", base, []entry{{name: "usr/bin/big", content: append(bytes.Clone(big[:1000]), big[5000:]...)}}, 400},
		{"addresses changed", []entry{{name: "x", content: program(rand.New(rand.NewPCG(1, 1)), 400_000, 0)}}, []entry{{name: "x", content: program(rand.New(rand.NewPCG(1, 1)), 400_000, 64)}}, 60_000},
		{"pieces in another order", base, []entry{{name: "usr/bin/big", content: append(bytes.Clone(big[100_000:]), big[:100_000]...)}}, 400},
		{"another file", base, []entry{{name: "x", content: other}}, 210_000},
		{"a longer name", []entry{{name: long, content: big}}, []entry{{name: long, content: big[:200_000]}}, 500},
		{"nothing to read", []entry{{name: "x", kind: tar.TypeSymlink}}, []entry{{name: "x", content: text}}, 300},
		{"the last of two counts", []entry{{name: "x", content: big}, {name: "x", content: other}}, []entry{{name: "x", content: other}}, 300},
		{"a link replaces the file", []entry{{name: "x", content: text}, {name: "x", kind: tar.TypeSymlink}}, []entry{{name: "x", content: text}}, 300},
		{"a name that leaves the root", []entry{{name: "../x", content: big}}, []entry{{name: "../../x", content: big}}, 300},
		{"a short file", []entry{{name: "x", content: []byte("ab")}}, []entry{{name: "x", content: []byte("b")}}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			old, made := makeTar(t, test.old...), makeTar(t, test.made...)
			patch := diff(t, old, made)
			if !bytes.Equal(patch, diff(t, old, made)) {
				t.Error("two patches of the same files differ")
			}
			if len(patch) > test.most {
				t.Errorf("the patch has %d bytes, want at most %d", len(patch), test.most)
			}
			back, err := apply(t.Context(), patch, old, len(made))
			if err != nil || !bytes.Equal(back, made) {
				t.Errorf("%d bytes instead of %d: %v", len(back), len(made), err)
			}
		})
	}
}

// TestLargeFile compares a file piece by piece.
func TestLargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("long: TestDiff has files of one piece")
	}
	r := rand.New(rand.NewPCG(5, 5))
	content := make([]byte, 150<<20)
	for i := 0; i < len(content); i += 8 {
		binary.LittleEndian.PutUint64(content[i:], r.Uint64())
	}
	changed := insert(content, 1<<20, noise(3<<20))
	old, made := makeTar(t, entry{name: "x", content: content}), makeTar(t, entry{name: "x", content: changed})
	patch := diff(t, old, made)
	back, err := apply(t.Context(), patch, old, len(made))
	if err != nil || !bytes.Equal(back, made) || len(patch) > 33<<17 {
		t.Errorf("%d bytes instead of %d, the patch has %d: %v", len(back), len(made), len(patch), err)
	}
}

// mutate changes some entries of a tar file.
func mutate(r *rand.Rand, entries []entry) []entry {
	var list []entry
	for _, e := range entries {
		switch r.IntN(8) {
		case 0:
			continue
		case 1:
			e.modTime = time.Unix(r.Int64N(1e9), 0)
		case 2:
			e.name += ".1"
		case 3:
			e.content = insert(e.content, r.IntN(len(e.content)+1), program(r, r.IntN(3000), 0))
		case 4:
			e.content = e.content[r.IntN(len(e.content)+1):]
		case 5:
			e.content = bytes.Clone(e.content)
			for range 1 + len(e.content)/50 {
				if len(e.content) > 0 {
					e.content[r.IntN(len(e.content))]++
				}
			}
		case 6:
			list = append(list, e)
		}
		list = append(list, e)
	}
	return append(list, entry{name: fmt.Sprintf("new-%d", r.Uint32()), content: program(r, r.IntN(2000), 0)})
}

// TestRandomPairs makes and applies patches between tar files that share some of their bytes.
func TestRandomPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pairs := 200
	if testing.Short() {
		pairs = 40
	}
	for n := range pairs {
		var entries []entry
		for i := range 1 + r.IntN(20) {
			content := program(r, r.IntN(40_000), 0)
			if r.IntN(3) == 0 {
				content = bytes.Repeat(content[:min(len(content), r.IntN(50))], r.IntN(200))
			}
			entries = append(entries, entry{name: fmt.Sprintf("d/%d", i), content: content})
		}
		old, made := makeTar(t, entries...), makeTar(t, mutate(r, entries)...)
		patch := diff(t, old, made)
		back, err := apply(t.Context(), patch, old, len(made))
		if err != nil || !bytes.Equal(back, made) {
			t.Fatalf("pair %d: %d bytes instead of %d: %v", n, len(back), len(made), err)
		}
	}
}

// op is an operation as the format of containers/tar-diff describes it.
func op(code byte, size uint64, data string) []byte {
	return append(binary.AppendUvarint([]byte{code}, size), data...)
}

// patchOf is a patch with these operations.
func patchOf(tb testing.TB, ops ...[]byte) []byte {
	tb.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
	if err != nil {
		tb.Fatal(err)
	}
	return append([]byte("tardf1\n\x00"), z.EncodeAll(bytes.Join(ops, nil), nil)...)
}

func TestApply(t *testing.T) {
	old := makeTar(t, entry{name: "a/x", content: []byte("0123456789")}, entry{name: "y", content: []byte("abc")}, entry{name: "l", kind: tar.TypeSymlink})
	good := patchOf(t, op(0, 2, "ab"), op(1, 3, "a/x"), op(2, 3, ""), op(4, 8, ""), op(2, 1, ""), op(3, 1, "\xff"), op(4, 0, ""), op(2, 1, ""), op(1, 4, "../y"), op(2, 2, ""))
	const want = "ab" + "012" + "8" + "8" + "0" + "ab"
	if back, err := apply(t.Context(), good, old, len(want)); err != nil || string(back) != want {
		t.Errorf("%q, %v, want %q", back, err, want)
	}
	open := op(1, 1, "y")
	for _, test := range []struct {
		name  string
		patch []byte
		code  report.Code
		want  string
	}{
		{"empty", nil, report.Invalid, "does not begin"},
		{"another header", []byte("tardf2\n\x00"), report.Invalid, "does not begin"},
		{"no stream", []byte("tardf1\n\x00abcdefgh"), report.Corrupt, "cannot be read"},
		{"no operations", patchOf(t), report.Invalid, "10 bytes before the end"},
		{"too short", patchOf(t, op(0, 2, "ab")), report.Invalid, "8 bytes before the end"},
		{"too long", patchOf(t, op(0, 11, "01234567890")), report.Invalid, "more bytes than expected"},
		{"a size that overflows", patchOf(t, open, op(2, 1<<63, "")), report.Invalid, "more bytes than expected"},
		{"a size of more than 64 bits", patchOf(t, append([]byte{0}, bytes.Repeat([]byte{0xff}, 11)...)), report.Corrupt, "overflow"},
		{"no file is open", patchOf(t, op(2, 1, "")), report.Invalid, "behind the end"},
		{"behind the end", patchOf(t, open, op(2, 4, "")), report.Invalid, "behind the end"},
		{"add behind the end", patchOf(t, open, op(4, 2, ""), op(3, 2, "ab")), report.Invalid, "behind the end"},
		{"seek behind the end", patchOf(t, open, op(4, 4, "")), report.Invalid, "behind the end"},
		{"a negative offset", patchOf(t, open, op(4, 1<<63+5, "")), report.Invalid, "behind the end"},
		{"an unknown file", patchOf(t, op(1, 6, "../a/y")), report.Invalid, "does not have"},
		{"a link", patchOf(t, op(1, 1, "l")), report.Invalid, "does not have"},
		{"the root", patchOf(t, op(1, 0, "")), report.Invalid, "does not have"},
		{"a long name", patchOf(t, op(1, 1<<40, "")), report.Invalid, "name has"},
		{"an unknown operation", patchOf(t, op(5, 0, "")), report.Invalid, "unknown operation 5"},
		{"data missing", patchOf(t, op(0, 5, "ab")), report.Corrupt, "cannot be read"},
		{"a size missing", patchOf(t, []byte{0}), report.Corrupt, "cannot be read"},
		{"operations without end", patchOf(t, open, bytes.Repeat(op(4, 1, ""), 1<<20)), report.Invalid, "more operations"},
		{"a stream that is cut", good[:len(good)-3], report.Corrupt, "cannot be read"},
		{"a large window", largeWindow(t), report.Corrupt, "window"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := apply(t.Context(), test.patch, old, len(want))
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %s with %q", report.CodeOf(err), err, test.code, test.want)
			}
		})
	}
	if _, err := apply(t.Context(), good, []byte("not a tar file"), len(want)); report.CodeOf(err) != report.Invalid {
		t.Errorf("from a file that is not a tar file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := apply(ctx, good, old, len(want)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
}

// largeWindow is a patch that asks for 128 MiB of memory.
func largeWindow(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	b.WriteString("tardf1\n\x00")
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(128<<20))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err = io.Copy(z, io.LimitReader(zeros{}, 1<<20)); err != nil {
		tb.Fatal(err)
	}
	if err = z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestDiffRefuses(t *testing.T) {
	good := makeTar(t, entry{name: "x", content: []byte("x")})
	for name, data := range map[string][]byte{"empty": nil, "text": []byte(strings.Repeat("text", 1000))} {
		if err := tardiff.Diff(t.Context(), io.Discard, tarOf(good), tarOf(data)); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s as the new file: %v", name, err)
		}
		if err := tardiff.Diff(t.Context(), io.Discard, tarOf(data), tarOf(good)); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s as the old file: %v", name, err)
		}
	}
}

// FuzzApply applies foreign operations: no more bytes than expected are made.
func FuzzApply(f *testing.F) {
	old := makeTar(f, entry{name: "x", content: noise(2000)}, entry{name: "y", content: []byte("abc")})
	f.Add(op(0, 2, "ab"), 2)
	f.Add(bytes.Join([][]byte{op(1, 1, "x"), op(2, 100, ""), op(4, 5, ""), op(3, 2, "ab")}, nil), 102)
	f.Fuzz(func(t *testing.T, ops []byte, size int) {
		if size < 0 || size > 1<<20 {
			return
		}
		for _, patch := range [][]byte{patchOf(t, ops), append([]byte("tardf1\n\x00"), ops...)} {
			made, err := apply(t.Context(), patch, old, size)
			if len(made) > size || err == nil && len(made) < size {
				t.Errorf("%d bytes of %d: %v", len(made), size, err)
			}
		}
	})
}

// FuzzDiff compares foreign files: a patch makes the second one, whatever they have.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("some text that is long enough for an anchor"), []byte("some text that is long enough for an anchor!"))
	f.Add(noise(3000), insert(noise(3000), 100, []byte("xyz")))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		old, made := makeTar(t, entry{name: "x", content: a}), makeTar(t, entry{name: "x", content: b})
		back, err := apply(t.Context(), diff(t, old, made), old, len(made))
		if err != nil || !bytes.Equal(back, made) {
			t.Errorf("%d bytes instead of %d: %v", len(back), len(made), err)
		}
		if err = tardiff.Diff(t.Context(), io.Discard, tarOf(a), tarOf(b)); err != nil && report.CodeOf(err) != report.Invalid {
			t.Error(err)
		}
	})
}
