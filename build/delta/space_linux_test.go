package delta_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// small mounts a file system of some bytes.
func small(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("needs root, to mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestRoom applies no patch where there is no room for what it makes, for its source, and for the archive.
func TestRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	files := randomFiles(r, 10, 60_000)
	old := layouttest.Archive(t, "1.0.0", gzipped(t, "gzip-go-6", layer(t, files)))
	made := layouttest.Archive(t, "1.1.0", gzipped(t, "gzip-go-6", layer(t, update(r, files))))
	d := openDelta(t, create(t, made, source("old.iso", old)))
	if len(d.Patches) != 1 {
		t.Fatalf("%d patches, want 1", len(d.Patches))
	}
	size := int64(len(made))
	patched := d.Patches[0].Source.Unpacked
	for _, blob := range layout.Blobs(&d.Layout) {
		if blob.SHA256 == d.Patches[0].SHA256 {
			patched += blob.Size
		}
	}
	for _, test := range []struct {
		name   string
		room   int64
		spare  int64
		needed string // in the error; empty: it is enough
	}{
		{"enough", patched + size + 64<<10, size, ""},
		{"not for the archive", patched + size/2, size, strconv.FormatInt(patched+size, 10) + " bytes are needed, "},
		{"enough where the archive is not written", patched + 64<<10, 0, ""},
		{"not for the patches", patched / 2, 0, strconv.FormatInt(patched, 10) + " bytes are needed, "},
		{"of a size that overflows", patched + size, math.MaxInt64, strconv.FormatInt(math.MaxInt64, 10) + " bytes are needed, "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := small(t, int(test.room))
			a, err := d.Archive(t.Context(), delta.Workspace{Dir: dir, Spare: test.spare}, source("old.iso", old))
			if test.needed != "" {
				hints := strings.Join(report.Hints(err), "")
				if report.CodeOf(err) != report.NoSpace || !strings.Contains(err.Error(), test.needed) || !strings.Contains(hints, dir) {
					t.Errorf("%s: %v (%s), want %s with %q", report.CodeOf(err), err, hints, report.NoSpace, test.needed)
				}
				return
			}
			if err == nil && test.spare > 0 {
				err = a.WriteFile(t.Context(), filepath.Join(dir, "new.iso"), nil, report.Discard)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err = a.Close(); err != nil {
				t.Error(err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "new.iso")); test.spare > 0 && (err != nil || !bytes.Equal(data, made)) {
				t.Errorf("%d bytes, want %d: %v", len(data), len(made), err)
			}
		})
	}
}

// TestRoomForOne applies patches one after another where there is no room for the sources of several.
func TestRoomForOne(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	var first, second [][]byte
	for range 3 {
		files := randomFiles(r, 10, 60_000)
		first = append(first, gzipped(t, "gzip-go-6", layer(t, files)))
		second = append(second, gzipped(t, "gzip-go-6", layer(t, update(r, files))))
	}
	old, made := layouttest.Archive(t, "1.0.0", first...), layouttest.Archive(t, "1.1.0", second...)
	d := openDelta(t, create(t, made, source("old.iso", old)))
	if len(d.Patches) != 3 {
		t.Fatalf("%d patches, want 3", len(d.Patches))
	}
	room, largest := int64(0), int64(0)
	for i, p := range d.Patches {
		room, largest = room+int64(len(second[i])), max(largest, p.Source.Unpacked)
	}
	a, err := d.Archive(t.Context(), delta.Workspace{Dir: small(t, int(room+largest+64<<10))}, source("old.iso", old))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err = a.Copy(t.Context(), &b, report.Discard); err != nil || !bytes.Equal(b.Bytes(), made) {
		t.Errorf("%d bytes, want %d: %v", b.Len(), len(made), err)
	}
	if err = a.Close(); err != nil {
		t.Error(err)
	}
}

// TestRoomToCreate unpacks new layers one after another where there is no room for several.
func TestRoomToCreate(t *testing.T) {
	const layers = 8
	before := runtime.GOMAXPROCS(layers)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	r := rand.New(rand.NewPCG(37, 38))
	var first, second [][]byte
	for range layers {
		files := randomFiles(r, 10, 60_000)
		first = append(first, gzipped(t, "gzip-go-6", layer(t, files)))
		second = append(second, gzipped(t, "gzip-go-6", layer(t, update(r, files))))
	}
	old, made := layouttest.Archive(t, "1.0.0", first...), layouttest.Archive(t, "1.1.0", second...)
	want := create(t, made, source("old.iso", old))
	room, largest := int64(len(want)), int64(0)
	for i, p := range openDelta(t, want).Patches {
		room, largest = room+int64(len(second[i])), max(largest, p.Source.Unpacked)
	}
	name := filepath.Join(small(t, int(room+largest+64<<10)), "x.delta") // to prove it
	_, err := delta.Create(t.Context(), name, options(made, source("old.iso", old)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), err)
	}
}

// TestRoomWithoutPatches reserves the room of an archive before it is written.
func TestRoomWithoutPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	shared := layouttest.Noise(r, 200_000)
	old, made := layouttest.Archive(t, "1.0.0", shared), layouttest.Archive(t, "1.1.0", shared, layouttest.Noise(r, 9000))
	d := openDelta(t, create(t, made, source("old.iso", old)))
	a, err := d.Archive(t.Context(), delta.Workspace{}, source("old.iso", old))
	if err != nil {
		t.Fatal(err)
	}
	dir := small(t, len(made)/2)
	err = a.WriteFile(t.Context(), filepath.Join(dir, "new.iso"), nil, report.Discard)
	if report.CodeOf(err) != report.NoSpace || !strings.Contains(err.Error(), strconv.Itoa(len(made))+" bytes are needed, ") {
		t.Errorf("%s: %v, want %s", report.CodeOf(err), err, report.NoSpace)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
