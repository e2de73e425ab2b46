package iso

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/schema/report"
)

// foreignWriter is a program that builds images as MetalK8s' documentation describes.
type foreignWriter struct {
	name, tool, pack string
	prefix           []string
	warnings         []string // of Check, for a sound image with all three trees
}

func foreignWriters() []foreignWriter {
	return []foreignWriter{
		{"genisoimage", "genisoimage", "genisoimage", nil, []string{rulePrimaryName}},
		{"xorriso", "xorriso", "xorriso", []string{"-as", "mkisofs"}, []string{ruleParentEntry, rulePrimaryName}},
	}
}

// build makes an image of a directory.
func (w foreignWriter) build(t *testing.T, dir string, flags ...string) *os.File {
	t.Helper()
	tool := needTool(t, w.tool, w.pack)
	name := filepath.Join(t.TempDir(), "foreign.iso")
	run(t, tool, slices.Concat(w.prefix, []string{"-quiet"}, flags, []string{"-o", name, dir})...)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// writeTree writes files of a test into a directory.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// foreignTree is an archive with everything that makes foreign writers mangle names, and that both accept.
func foreignTree() map[string]string {
	files := map[string]string{
		"manifest.yaml": "kind: Solution\n", "operator/deploy/crds/x_crd.yaml": "x", "ui/empty": "",
		"images/app/1.0.0-rc.1/" + strings.Repeat("a1", 32): strings.Repeat("layer", 3000),
		"images/app/1.0.0-rc.1/manifest.json":               "{}", "images/app/1.0.0-rc.1/version": "1.1",
		"charts/app-1.0.0.tgz": "tgz", "charts/other.tar.gz": "tgz", "odd/a:b;c*": "odd", "odd/日本語.txt": "odd", "odd/trail.": "odd",
		"odd/UPPER.TXT": "odd", "long/" + strings.Repeat("n", 120) + ".txt": "long", "long/" + strings.Repeat("m", 180): "longer",
		"long/" + strings.Repeat("d", 101) + "/file": "in a long directory",
	}
	for i := range 300 {
		files[fmt.Sprintf("many/a-common-prefix-that-is-cut-%03d.bin", i)] = fmt.Sprint("many ", i)
	}
	return files
}

// examine opens an image and returns its files and the severities of all findings by rule.
func examine(t *testing.T, f *os.File) (fsys *FS, found map[string]bool) {
	t.Helper()
	stat, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	found = map[string]bool{}
	for _, finding := range Check(f, stat.Size()) {
		found[finding.Rule] = true
		if finding.Severity == report.SeverityError {
			t.Errorf("Check: %s: %s", finding.Rule, finding)
		}
	}
	for _, finding := range CompareDiskFS(f, stat.Size()) {
		if finding.Severity == report.SeverityError {
			t.Errorf("CompareDiskFS: %s: %s", finding.Rule, finding)
		}
	}
	if fsys, err = Open(f, stat.Size()); err != nil {
		t.Fatal(err)
	}
	return fsys, found
}

func TestForeignImages(t *testing.T) {
	for _, w := range foreignWriters() {
		for _, mode := range []struct {
			name  string
			flags []string
			also  []string
		}{
			{"level 3", []string{"-R", "-J", "-l", "-iso-level", "3"}, nil},
			{"long Joliet names", []string{"-R", "-J", "-joliet-long", "-l", "-iso-level", "3"}, nil},
			{"short names", []string{"-r", "-J", "-joliet-long"}, nil},
			{"no Joliet", []string{"-r", "-l"}, []string{ruleNoJoliet}},
		} {
			t.Run(w.name+"/"+strings.ReplaceAll(mode.name, " ", "-"), func(t *testing.T) {
				files := foreignTree()
				fsys, found := examine(t, w.build(t, writeTree(t, files), mode.flags...))
				want := slices.Concat(w.warnings, mode.also)
				if mode.also != nil {
					want = slices.DeleteFunc(want, func(rule string) bool { return rule == ruleParentEntry })
				}
				if os.Getuid() != 0 && slices.Contains(mode.flags, "-R") {
					want = append(want, ruleOwner)
				}
				if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("Check applies %q, want %q", got, want)
				}
				for name, text := range files {
					if data, err := fsys.ReadFile(name); err != nil || string(data) != text {
						t.Errorf("%s: %v or other content", name, err)
					}
				}
				if err := fstest.TestFS(fsys, slices.Collect(maps.Keys(files))...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestForeignRefused builds images that readers disagree about.
func TestForeignRefused(t *testing.T) {
	deep := "a/b/c/d/e/f/g/h/i/deep"
	for _, w := range foreignWriters() {
		noRockRidge := []string{"-J", "-l"}
		if w.name == "xorriso" {
			noRockRidge = append(noRockRidge, "--norock")
		}
		for _, test := range []struct {
			name, rule string
			files      map[string]string
			link       bool
			flags      []string
		}{
			{"symbolic link", ruleFileType, map[string]string{"manifest.yaml": "x"}, true, []string{"-R", "-J", "-l"}},
			{"relocated directory", ruleRelocated, map[string]string{deep: "x"}, false, []string{"-R", "-J", "-l"}},
			{"too deep", ruleLimits, map[string]string{strings.Repeat("d/", maxDepth) + "f": "x"}, false, []string{"-R", "-J", "-l", "-D"}},
			{"no Rock Ridge", ruleNoRockRidge, map[string]string{"manifest.yaml": "x"}, false, noRockRidge},
			{"names that differ in case", ruleDuplicateName, map[string]string{"a/README": "x", "a/readme": "y"}, false, []string{"-R", "-l"}},
		} {
			if test.rule == ruleRelocated && w.name == "xorriso" {
				continue // it nests directories as deep as they are
			}
			t.Run(w.name+"/"+strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
				dir := writeTree(t, test.files)
				if test.link {
					if err := os.Symlink("manifest.yaml", filepath.Join(dir, "link")); err != nil {
						t.Fatal(err)
					}
				}
				f := w.build(t, dir, test.flags...)
				stat, err := f.Stat()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Open(f, stat.Size()); report.CodeOf(err) != report.Corrupt {
					t.Errorf("Open: %v, want it refused", err)
				}
				findings := Check(f, stat.Size())
				if !slices.ContainsFunc(findings, func(f report.Finding) bool { return f.Rule == test.rule }) {
					t.Errorf("Check: %v, want %s", findings, test.rule)
				}
			})
		}
	}
}

// TestForeignLargeFile reads a file above 4 GiB, which has several sections, in an image by xorriso: in a recorded one, and 'make check' also
// in a new one, which takes 20 seconds of a processor.
func TestForeignLargeFile(t *testing.T) {
	const size = 4<<30 + 512<<20
	marks := map[int64]string{0: "first", 0xFFFFF800 - 3: "across", size - 4: "last"}
	for name, image := range map[string]func(t *testing.T) *os.File{
		"recorded": func(t *testing.T) *os.File {
			t.Helper()
			return recorded(t, filepath.Join("testdata", "xorriso-large.gz"))
		},
		"new": func(t *testing.T) *os.File {
			t.Helper()
			if testing.Short() || os.Getenv("CI") != "true" {
				t.Skip("writes an image of 4.5 GiB: 'make check' with CI=true does, and there is the recorded one")
			}
			dir := t.TempDir()
			writeMarks(t, filepath.Join(dir, "large"), marks)
			// genisoimage records a wrong size in Rock Ridge mode
			return foreignWriters()[1].build(t, dir, "-R", "-J", "-l", "-iso-level", "3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, _ := examine(t, image(t))
			f, err := fsys.Open("large")
			if err != nil {
				t.Fatal(err)
			}
			if info, err := f.Stat(); err != nil || info.Size() != size {
				t.Fatalf("%v %v, want %d bytes", info, err, int64(size))
			}
			for at, mark := range marks {
				got := make([]byte, len(mark))
				if _, err := f.(io.ReaderAt).ReadAt(got, at); err != nil || string(got) != mark {
					t.Errorf("at %d: %q %v, want %q", at, got, err, mark)
				}
			}
		})
	}
}

// recorded writes an image of which a file has the sectors that are not empty: compressed, the size of the image, and the offset and the
// content of each sector. The numbers have eight bytes, the largest first.
func recorded(t *testing.T, name string) *os.File {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	data, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "recorded.iso"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = image.Close() })
	var number int64
	if err = binary.Read(data, binary.BigEndian, &number); err == nil {
		err = image.Truncate(number)
	}
	for err == nil {
		if err = binary.Read(data, binary.BigEndian, &number); err == nil {
			_, err = io.CopyN(io.NewOffsetWriter(image, number), data, sectorSize)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return image
}

// TestTwoTreeAttack makes the archive that shows one manifest to isoinfo, with which MetalK8s reads name and version,
// and another one to everything that mounts it.
func TestTwoTreeAttack(t *testing.T) {
	tool := needTool(t, "isoinfo", "genisoimage")
	data := imageBytes(t, []File{textFile("manifest.yaml", "good\n"), textFile("manifold.yaml", "EVIL\n"), textFile("ui/x", "x")})
	p := &patched{t, data}
	a, b := p.record(primaryTree, "MANIFEST.YAML;1"), p.record(primaryTree, "MANIFOLD.YAML;1")
	p.swap(a+2, b+2, 8)                                                              // the extents
	p.swap(p.entry("MANIFEST.YAML;1", "NM"), p.entry("MANIFOLD.YAML;1", "NM"), 5+13) // the names, so that Rock Ridge is unchanged
	name := filepath.Join(t.TempDir(), "attack.iso")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, tool, "-i", name, "-x", "/MANIFEST.YAML;1"); got != "EVIL\n" {
		t.Fatalf("isoinfo shows %q: the attack does not work", got)
	}
	if got := run(t, tool, "-R", "-i", name, "-x", "/manifest.yaml"); got != "good\n" {
		t.Fatalf("isoinfo -R shows %q: the attack does not work", got)
	}
	_, err := Open(bytes.NewReader(data), int64(len(data)))
	if report.CodeOf(err) != report.Corrupt || !strings.Contains(fmt.Sprint(err), "manifold.yaml: ISO 9660 shows this file as MANIFEST.YAML;1") {
		t.Errorf("Open: %v, want a refusal with both names", err)
	}
}

// writeMarks makes a sparse file with text at some offsets.
func writeMarks(t *testing.T, name string, marks map[int64]string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for at, mark := range marks {
		if _, err = f.WriteAt([]byte(mark), at); err != nil {
			t.Fatal(err)
		}
	}
	if err = f.Close(); err != nil {
		t.Fatal(err)
	}
}
