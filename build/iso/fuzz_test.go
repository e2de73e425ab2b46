package iso

import (
	"bytes"
	"io/fs"
	"testing"
)

// A fuzzed image is a good one with edits, so that the fuzzer spends its time behind the descriptors: each edit is
// three bytes of offset and one of content, and one that lies outside the image cuts it there.
const (
	editBytes = 4
	cutEdit   = 1 << 23
)

// edited applies edits to a copy of the image.
func edited(image, edits []byte) []byte {
	data := bytes.Clone(image)
	for ; len(edits) >= editBytes; edits = edits[editBytes:] {
		at := int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])
		switch {
		case at >= cutEdit:
			data = data[:min(len(data), at-cutEdit)]
		case at < len(data):
			data[at] = edits[3]
		}
	}
	return data
}

// editsBetween returns the edits that make one image of the other, up to the shorter length.
func editsBetween(from, to []byte) []byte {
	var edits []byte
	for at := range min(len(from), len(to)) {
		if from[at] != to[at] {
			edits = append(edits, byte(at>>16), byte(at>>8), byte(at), to[at])
		}
	}
	if at := cutEdit + len(to); len(to) < len(from) {
		edits = append(edits, byte(at>>16), byte(at>>8), byte(at), 0)
	}
	return edits
}

// addFaults seeds a fuzz target with every fault, and returns the image to edit.
func addFaults(f *testing.F) (image []byte) {
	f.Helper()
	image = imageBytes(f, patchTree())
	f.Add([]byte(nil))
	for _, fault := range faults() {
		p := &patched{f, bytes.Clone(image)}
		fault.patch(p)
		f.Add(editsBetween(image, p.data))
	}
	return image
}

func TestEdits(t *testing.T) {
	good := newPatched(t).data
	for _, f := range faults() {
		p := newPatched(t)
		f.patch(p)
		if got := edited(good, editsBetween(good, p.data)); len(p.data) <= len(good) && !bytes.Equal(got, p.data) {
			t.Errorf("%s: the edits make another image", f.name)
		}
	}
}

// FuzzOpen requires that an image that Open accepts can be read.
func FuzzOpen(f *testing.F) {
	image := addFaults(f)
	f.Fuzz(func(t *testing.T, edits []byte) {
		r := newCounted(t, edited(image, edits))
		fsys, err := Open(r, r.size)
		if err == nil {
			readAll(t, fsys)
		}
	})
}

// FuzzCheck requires that Open refuses exactly the images that Check wants refused.
func FuzzCheck(f *testing.F) {
	image := addFaults(f)
	f.Fuzz(func(t *testing.T, edits []byte) {
		r := newCounted(t, edited(image, edits))
		refused := false
		findings := Check(r, r.size)
		for _, finding := range findings {
			refused = refused || ruleByID(finding.Rule).Refused
		}
		if _, err := Open(r, r.size); err != nil && !refused {
			t.Errorf("Open: %v, but Check finds only %v", err, findings)
		}
	})
}

// FuzzCompareDiskFS requires that go-diskfs is kept within bounds whatever it reads.
func FuzzCompareDiskFS(f *testing.F) {
	image := addFaults(f)
	f.Fuzz(func(t *testing.T, edits []byte) {
		r := newCounted(t, edited(image, edits))
		CompareDiskFS(r, r.size)
		if r.calls > 200_000 {
			t.Errorf("%d reads", r.calls)
		}
	})
}

// readAll reads every file through the file system.
func readAll(tb testing.TB, fsys fs.FS) {
	tb.Helper()
	err := fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		_, err = fs.ReadFile(fsys, path)
		return err
	})
	if err != nil {
		tb.Errorf("an accepted image cannot be read: %v", err)
	}
}
