package iso

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// needTool returns the path of an independent reader. Without it the test is skipped, except in CI, where it fails.
func needTool(tb testing.TB, tool, debianPackage string) string {
	tb.Helper()
	name, err := exec.LookPath(tool)
	if err == nil {
		return name
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("needs %s: apt-get install %s", tool, debianPackage)
	}
	tb.Skipf("needs %s: apt-get install %s", tool, debianPackage)
	return ""
}

// run runs a tool and returns its standard output.
func run(tb testing.TB, tool string, args ...string) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), tool, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	if err := command.Run(); err != nil {
		tb.Fatalf("%s %s: %v\n%s%s", filepath.Base(tool), strings.Join(args, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return stdout.String()
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// viewName is how a reader shows an entry.
type viewName func(e *entry) string

func rockRidgeView(e *entry) string { return e.name }

func jolietView(e *entry) string {
	return jolietTree.identifier(e.sibling(), int(e.serial[jolietTree]))
}

func primaryView(e *entry) string { return e.identifier(primaryTree) }

// linuxPrimaryView is the name that Linux shows in the primary tree without Rock Ridge.
func linuxPrimaryView(e *entry) string { return strings.ToLower(primaryTree.bare(primaryView(e))) }

// view returns the content sum of each file of the image by the path that a reader shows, and "directory" for each
// directory.
func view(image *Image, sums map[string]string, name viewName) map[string]string {
	out := map[string]string{}
	var walk func(d *directory, prefix string)
	walk = func(d *directory, prefix string) {
		for i := range d.entries {
			e := &d.entries[i]
			shown := prefix + name(e)
			if e.dir == nil {
				out[shown] = sums[image.files[e.file].Path]
				continue
			}
			out[shown] = "directory"
			walk(e.dir, shown+"/")
		}
	}
	walk(image.root, "")
	return out
}

// compareViews reports the first differences between a reader's view and the content of the image.
func compareViews(t *testing.T, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	t.Errorf("%d entries, want %d", len(got), len(want))
	shown := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] && shown < 10 {
			t.Errorf("%q: got %q, want %q", name, got[name], want[name])
			shown++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && shown < 20 {
			t.Errorf("%q is extra", name)
			shown++
		}
	}
}

// diskView returns the content sums below a directory that a tool extracted, and makes it removable.
func diskView(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		shown := filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))
		if e.IsDir() {
			out[shown] = "directory"
			return os.Chmod(name, 0o755) // so that the test's directory can be removed
		}
		out[shown], err = fileSum(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", digest.Sum(nil)), nil
}

// listedPaths makes the listing of isoinfo -f, "/a/b" line by line, comparable with the keys of a view.
func listedPaths(listing string) []string {
	var paths []string
	for line := range strings.Lines(listing) {
		if p := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "/"); p != "" {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// TestReaders gives one image with everything awkward to every reader there is.
func TestReaders(t *testing.T) {
	files := stressTree(3000)
	name, image, sums := writeImage(t, files), layout(t, files), contentSums(t, files)

	t.Run("isoinfo", func(t *testing.T) { testIsoinfo(t, name, image, sums) })
	t.Run("xorriso", func(t *testing.T) {
		dir := t.TempDir()
		run(t, needTool(t, "xorriso", "xorriso"), "-abort_on", "WARNING", "-osirrox", "on", "-indev", name, "-extract", "/", dir)
		compareViews(t, diskView(t, dir), view(image, sums, rockRidgeView))
	})
	t.Run("bsdtar", func(t *testing.T) {
		dir := t.TempDir()
		run(t, needTool(t, "bsdtar", "libarchive-tools"), "-x", "--no-same-permissions", "-f", name, "-C", dir)
		compareViews(t, diskView(t, dir), view(image, sums, rockRidgeView))
	})
	t.Run("7z", func(t *testing.T) {
		tool, dir := needTool(t, "7z", "7zip"), t.TempDir()
		run(t, tool, "t", "-bso0", name)
		run(t, tool, "x", "-bso0", "-o"+dir, name)
		compareViews(t, diskView(t, dir), view(image, sums, jolietView))
	})
	t.Run("pycdlib", func(t *testing.T) { testPycdlib(t, name, image, sums) })
}

// TestLinux mounts an image in a user-mode Linux, whose isofs is that of any Linux.
func TestLinux(t *testing.T) {
	needTool(t, "linux.uml", "user-mode-linux")
	t.Parallel()
	// System calls of such a machine are slow, and it reads no path table: many directories show nothing that few do not.
	files := slices.DeleteFunc(stressTree(0), func(f File) bool { return strings.HasPrefix(f.Path, "dirs/") && f.Path > "dirs/d020" })
	image, sums := layout(t, files), contentSums(t, files)
	modes := mountModes(t, writeImage(t, files))
	for mode, shown := range map[string]viewName{"ro": rockRidgeView, "ro,norock,utf8": jolietView, "ro,norock,nojoliet": linuxPrimaryView} {
		t.Run(mode, func(t *testing.T) { compareViews(t, modes[mode].sums, view(image, sums, shown)) })
	}
	modes["ro"].checkAttributes(t, image)
}

func testIsoinfo(t *testing.T, name string, image *Image, sums map[string]string) {
	t.Helper()
	tool := needTool(t, "isoinfo", "genisoimage")
	if got, want := run(t, tool, "-x", "/MANIFEST.YAML;1", "-i", name), "kind: Solution\n"; got != want {
		t.Errorf("manifest in the primary tree: got %q, want %q", got, want)
	}
	for _, test := range []struct {
		flags string
		view  viewName
	}{{"-f", primaryView}, {"-Rf", rockRidgeView}, {"-Jf", jolietView}} {
		got := listedPaths(run(t, tool, test.flags, "-i", name))
		want := slices.Sorted(maps.Keys(view(image, sums, test.view)))
		if test.flags == "-Jf" { // it prints Joliet names in ISO 8859-1 at best
			got, want = slices.DeleteFunc(got, notInASCII), slices.DeleteFunc(want, notInASCII)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d paths, want %d", test.flags, len(got), len(want))
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("%s: first difference: got %q, want %q", test.flags, got[min(i, len(got)-1)], want[i])
				}
			}
		}
	}
	description := run(t, tool, "-d", "-i", name)
	for _, want := range []string{
		"Volume id: Example Solution 1.0.0\n", "Application id: SOLUTIONCTL\n", "Joliet with UCS level 3 found", "Rock Ridge signatures version 1 found",
		fmt.Sprintf("Volume size is: %d\n", image.sectors),
	} {
		if !strings.Contains(description, want) {
			t.Errorf("isoinfo -d does not print %q:\n%s", want, description)
		}
	}
}

func notInASCII(path string) bool {
	return strings.ContainsFunc(path, func(r rune) bool { return r > unicode.MaxASCII }) || strings.HasPrefix(path, "odd/_")
}

func testPycdlib(t *testing.T, name string, image *Image, sums map[string]string) {
	t.Helper()
	const python = "/usr/bin/python3" // where Debian installs its modules
	tool := needTool(t, python, "python3-pycdlib")
	if err := exec.CommandContext(t.Context(), tool, "-c", "import pycdlib").Run(); err != nil {
		needTool(t, "the module pycdlib", "python3-pycdlib")
	}
	var trees map[string]map[string]string
	if err := json.Unmarshal([]byte(run(t, tool, "testdata/walk.py", name)), &trees); err != nil {
		t.Fatal(err)
	}
	for tree, shown := range map[string]viewName{"iso_path": primaryView, "rr_path": rockRidgeView, "joliet_path": jolietView} {
		t.Run(tree, func(t *testing.T) { compareViews(t, trees[tree], view(image, sums, shown)) })
	}
}

// mounted is the content of an image as Linux shows it in one mount mode.
type mounted struct {
	sums       map[string]string
	attributes map[string]string // "mode links uid gid size time" by path
}

// mountModes runs testdata/mount.sh in a user-mode Linux and returns its output for each mount mode.
func mountModes(t *testing.T, image string) map[string]mounted {
	t.Helper()
	script, err := filepath.Abs("testdata/mount.sh")
	if err != nil {
		t.Fatal(err)
	}
	linux, err := filepath.Abs("../../.ci/uml")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), linux, "mem=256M", "rootfstype=hostfs", "rootflags=/", "ro", "init="+script, "ubd0r="+image,
		"quiet", "con=null", "con0=null,fd:1", "con1=null", "ssl=null")
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // its exit status shows how the machine was switched off
		t.Fatal(err)
	}
	modes := map[string]mounted{}
	var current mounted
	for line := range strings.Lines(strings.ReplaceAll(string(out), "\r", "")) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, "\t")
		switch kind {
		case "mode":
			current = mounted{map[string]string{}, map[string]string{}}
			modes[rest] = current
		case "stat":
			attributes, path, _ := strings.Cut(rest, "\t")
			current.attributes[path] = attributes
			if attributes[0] == 'd' && path != "" {
				current.sums[path] = "directory"
			}
		case "sum":
			sum, path, _ := strings.Cut(rest, "  ./")
			current.sums[path] = sum
		case "end":
			return modes
		}
	}
	t.Fatalf("linux.uml ended early:\n%s", tail(string(out)))
	return nil
}

// checkAttributes compares mode, links, owner, size and time of every entry with those of the files.
func (m mounted) checkAttributes(t *testing.T, image *Image) {
	t.Helper()
	want := map[string]string{}
	links, subdirs, seen := map[string]int{}, map[string]int{"": 0}, map[string]bool{}
	for _, f := range image.files {
		links[f.Key]++
		for dir := path.Dir(f.Path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			subdirs[dir] += 0
			subdirs[strings.TrimPrefix(path.Dir(dir), ".")]++
		}
	}
	for _, f := range image.files {
		n := 1
		if f.Key != "" && f.Size > 0 {
			n = links[f.Key]
		}
		mode := cmp.Or(f.Mode, 0o444)
		want[f.Path] = fmt.Sprintf("f %o %d 0 0 %d %d", mode, n, f.Size, image.options.ModTime.Unix())
	}
	for dir, n := range subdirs {
		want[dir] = fmt.Sprintf("d 555 %d 0 0 %d", n+2, image.options.ModTime.Unix())
	}
	got := maps.Clone(m.attributes)
	for name, attributes := range got {
		if fields := strings.Fields(attributes); fields[0] == "d" { // the size of a directory is its own affair
			got[name] = strings.Join(slices.Delete(fields, 5, 6), " ")
		}
	}
	compareViews(t, got, want)
}
