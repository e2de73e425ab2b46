package sign_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// imageOf is an image with files of zeros, and its size.
func imageOf(t *testing.T, files ...iso.File) (*os.File, int64) {
	t.Helper()
	image, err := iso.Layout(files, iso.Options{VolumeID: "demo", ModTime: now})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "demo.iso"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err = errors.Join(image.WriteMetadata(f), f.Truncate(image.Size())); err != nil {
		t.Fatal(err)
	}
	return f, image.Size()
}

// TestIdentifyLargeManifest: an archive whose manifest is larger than any document is refused before its manifest is in memory.
func TestIdentifyLargeManifest(t *testing.T) {
	const size = 64 << 20
	f, length := imageOf(t, iso.File{Path: "manifest.yaml", Size: size})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := sign.Identify(f, length)
	runtime.ReadMemStats(&after)
	if report.CodeOf(err) != report.Invalid {
		t.Errorf("got %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size/4 {
		t.Errorf("%d MiB were allocated for a manifest of %d MiB", used>>20, size>>20)
	}
}
