package iso

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testTime is the time of everything in the images of the tests.
func testTime() time.Time { return time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC) }

// testOptions returns the options for the images of the tests.
func testOptions() Options {
	return Options{VolumeID: "Example Solution 1.0.0", ApplicationID: "SOLUTIONCTL", ModTime: testTime()}
}

// textFile is a file with this content.
func textFile(path, text string) File {
	return File{Path: path, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

// smallTree is the tree of a small archive.
func smallTree() []File {
	blob := strings.Repeat("layer", 3000)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(blob)))
	layer := textFile("images/ui/1.0.0/"+digest, blob)
	layer.Key = digest
	link := layer
	link.Path = "blobs/sha256/" + digest
	return []File{
		textFile("manifest.yaml", "kind: Solution\n"),
		textFile("registry-config.inc.j2", ""),
		textFile("operator/deploy/crds/databases_crd.yaml", "kind: CustomResourceDefinition\n"),
		textFile("images/ui/1.0.0/version", "Directory Transport Version: 1.1\n"),
		layer,
		link,
	}
}

// stressTree is everything that is known to have broken a writer or a reader of ISO 9660. The file with content that
// comes last fills its sectors, and the last one of all is empty.
func stressTree(small int) []File {
	files := smallTree()
	add := func(path, text string) { files = append(files, textFile(path, text)) }
	for i := range small {
		add(fmt.Sprintf("small/%03d/file-%05d.bin", i%200, i), strings.Repeat(fmt.Sprintf("%05d ", i), i%500))
	}
	for n := 100; n <= maxName; n++ {
		add(fmt.Sprintf("long/%s-%d", strings.Repeat("n", n-len("-000")), n), fmt.Sprint(n))
	}
	for i := range 300 {
		add(fmt.Sprintf("collide/%s-%03d.yaml", strings.Repeat("prefix", 20), i), fmt.Sprint("collide ", i))
	}
	for i := range 700 {
		add(fmt.Sprintf("dirs/d%03d/data", i), fmt.Sprint("in directory ", i))
	}
	for _, name := range []string{
		"日本語.txt", strings.Repeat("漢", 81), "rocket 🚀.png", strings.Repeat("🚀", 61), "café", "cafe", "Ünïcödé",
		"a:b", "a_b", "a*b", "a?b", "a|b", `a"b`, "a<b>", "a'b", "a;b", "a;1", "two  spaces", " space", "trailing ", "x", "x.", "x..",
		"no-extension", "many.dots.in.a.name.yaml", "A.LONG.UPPER.CASE.NAME.WITH.DOTS.TXT", "$HOME", "-rf", "~", "#", "%2e",
		strings.Repeat("N", 110), strings.Repeat("n", 111), "z." + strings.Repeat("e", 200),
	} {
		add("odd/"+name, "named "+name)
	}
	add("d2/d3/d4/d5/d6/d7/d8/deepest", "level 8")
	for _, n := range []int{1, 2047, 2048, 2049, 4095, 4096, 4097} {
		add(fmt.Sprintf("sizes/%d", n), strings.Repeat("s", n))
	}
	for i := range 50 {
		add(fmt.Sprintf("empty/e%02d", i), "")
	}
	for _, name := range []string{"one", "two"} {
		empty := textFile("shared-empty/"+name, "")
		empty.Key = "nothing"
		files = append(files, empty)
	}
	for _, mode := range []fs.FileMode{0o755, 0o640, 0o001} {
		file := textFile(fmt.Sprintf("modes/%o", mode), "mode")
		file.Mode = mode
		files = append(files, file)
	}
	add("aligned-last", strings.Repeat("4096 is twice 2048. ", 4096/16)[:4096])
	add("empty-last", "")
	return files
}

// layout lays files out with the options of the tests.
func layout(tb testing.TB, files []File) *Image {
	tb.Helper()
	image, err := Layout(files, testOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

// imageBytes returns the whole image of files.
func imageBytes(tb testing.TB, files []File) []byte {
	tb.Helper()
	image := layout(tb, files)
	var out bytes.Buffer
	n, err := image.WriteTo(&out)
	if err != nil {
		tb.Fatal(err)
	}
	if n != image.Size() || int64(out.Len()) != n {
		tb.Fatalf("WriteTo returned %d for %d bytes, Size is %d", n, out.Len(), image.Size())
	}
	return out.Bytes()
}

// writeImage writes the image of files into a new file and returns its name.
func writeImage(tb testing.TB, files []File) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "test.iso")
	out, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = layout(tb, files).WriteTo(out)
	if err = errors.Join(err, out.Close()); err != nil {
		tb.Fatal(err)
	}
	return name
}

// contentSums returns the SHA-256 of each file by its path.
func contentSums(tb testing.TB, files []File) map[string]string {
	tb.Helper()
	sums := make(map[string]string, len(files))
	for _, f := range files {
		source, err := f.Open()
		if err != nil {
			tb.Fatal(err)
		}
		digest := sha256.New()
		if _, err := io.Copy(digest, source); err != nil {
			tb.Fatal(err)
		}
		sums[f.Path] = fmt.Sprintf("%x", digest.Sum(nil))
	}
	return sums
}
