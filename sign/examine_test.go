package sign_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// TestIdentifyLargeManifest: an archive whose manifest is larger than any document is refused before its manifest is in memory.
func TestIdentifyLargeManifest(t *testing.T) {
	const size = 64 << 20
	image, err := iso.Layout([]iso.File{{Path: "manifest.yaml", Size: size}}, iso.Options{VolumeID: "demo", ModTime: now})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "demo.iso"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is removed
	if err = image.WriteMetadata(f); err != nil {
		t.Fatal(err)
	}
	if err = f.Truncate(image.Size()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = sign.Identify(f, image.Size())
	runtime.ReadMemStats(&after)
	if report.CodeOf(err) != report.Invalid {
		t.Errorf("got %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size/4 {
		t.Errorf("%d MiB were allocated for a manifest of %d MiB", used>>20, size>>20)
	}
}
