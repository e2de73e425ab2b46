package durable_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/durable"
)

func Example() {
	dir, err := os.MkdirTemp("", "durable")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only an example
	name := filepath.Join(dir, "settings.yaml")
	fmt.Println(durable.WriteFile(name, []byte("mode: own\n"), 0o644))
	data, err := os.ReadFile(name)
	fmt.Printf("%s%v\n", data, err)
	// Output:
	// <nil>
	// mode: own
	// <nil>
}

func TestWriteFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		there   map[string]string // file: content; -> is a link
		write   func(name string, data []byte, mode fs.FileMode) error
		want    map[string]string
		problem error
	}{
		{"new", nil, durable.WriteFile, map[string]string{"f": "data"}, nil},
		{"replaced", map[string]string{"f": "old"}, durable.WriteFile, map[string]string{"f": "data"}, nil},
		{"left by a process that was killed", map[string]string{"f": "old", ".f.partial": "much that was left"}, durable.WriteFile, map[string]string{"f": "data"}, nil},
		{"a link is replaced, not followed", map[string]string{"g": "other", "f": "-> g"}, durable.WriteFile, map[string]string{"g": "other", "f": "data"}, nil},
		{"new, and there is none", nil, durable.WriteNewFile, map[string]string{"f": "data"}, nil},
		{"new, and there is one", map[string]string{"f": "old"}, durable.WriteNewFile, map[string]string{"f": "old"}, fs.ErrExist},
		{"new, and there is a dangling link", map[string]string{"f": "-> nothing"}, durable.WriteNewFile, map[string]string{"f": "-> nothing"}, fs.ErrExist},
		{"no directory", nil, func(name string, data []byte, mode fs.FileMode) error {
			return durable.WriteFile(filepath.Join(filepath.Dir(name), "missing", "f"), data, mode)
		}, map[string]string{}, fs.ErrNotExist},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, test.there)
			err := test.write(filepath.Join(dir, "f"), []byte("data"), 0o640)
			if !errors.Is(err, test.problem) {
				t.Errorf("got %v, want %v", err, test.problem)
			}
			if got := content(t, dir); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			info, err := os.Lstat(filepath.Join(dir, "f"))
			if test.problem == nil && runtime.GOOS != "windows" && (err != nil || info.Mode() != 0o640) {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestErrorNamesFile checks that an error names the file that could not be written, with its directory, and not the one beside it.
func TestErrorNamesFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"published", ".begun.partial"} { // a directory in place of the file, and of the one beside it
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"published", "begun", "missing/file"} {
		want := filepath.Join(dir, name)
		err := durable.WriteFile(want, []byte("data"), 0o644)
		if of, ok := errors.AsType[*fs.PathError](err); !ok || of.Path != want || strings.Contains(err.Error(), "partial") {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

// TestLinkAsPartial is an attack by a user who is allowed to write to the directory: the content must not follow the link.
func TestLinkAsPartial(t *testing.T) {
	dir := t.TempDir()
	there := map[string]string{"victim": "precious", ".f.partial": "-> victim"}
	fill(t, dir, there)
	err := durable.WriteFile(filepath.Join(dir, "f"), []byte("data"), 0o644)
	if got := content(t, dir); err == nil || got["victim"] != "precious" || got["f"] != "" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestOutside begins to write where a link leads out of the directory.
func TestOutside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "sub")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // a directory handle
	if _, err := durable.CreateIn(root, "sub/f"); err == nil {
		t.Error("a file is written outside of the directory")
	}
}

// TestManyWriters checks that a reader finds only complete contents while several processes write.
func TestManyWriters(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	var all sync.WaitGroup
	for writer := range 8 {
		all.Go(func() {
			for range 8 {
				data := []byte(strings.Repeat(fmt.Sprint(writer), 1000))
				if err := durable.WriteFile(name, data, 0o644); err != nil && runtime.GOOS != "windows" {
					t.Error(err)
				}
				if got, err := os.ReadFile(name); err != nil || len(got) != 1000 || strings.Trim(string(got), string(got[:1])) != "" {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	all.Wait()
	if got := content(t, filepath.Dir(name)); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// TestContinue finds what a writer has kept, once; a new writer begins with nothing.
func TestContinue(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	steps := []struct {
		open func(string) (*durable.File, error)
		has  string
		more string
	}{
		{durable.Continue, "", "one"},
		{durable.Continue, "one", "two"},
		{durable.Create, "", "three"},
		{durable.Continue, "three", "four"},
	}
	for i, step := range steps {
		f, err := step.open(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || string(data) != step.has {
			t.Fatalf("step %d: it has %q, want %q: %v", i, data, step.has, err)
		}
		if err = errors.Join(f.Truncate(0), writeAt(f, step.more), f.Keep()); err != nil {
			t.Fatal(err)
		}
		if _, err = os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("step %d: it was published: %v", i, err)
		}
	}
	f, err := durable.Continue(name)
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Publish(0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); string(data) != "four" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// TestBusy: a writer that does not wait is refused while there is another one, whose bytes it leaves alone.
func TestBusy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("writers do not exclude each other")
	}
	name := filepath.Join(t.TempDir(), "file")
	first, err := durable.TryCreate(name)
	if err != nil {
		t.Fatal(err)
	}
	if err = writeAt(first, "first"); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(string) (*durable.File, error){durable.TryCreate, durable.Continue} {
		if _, err = open(name); !errors.Is(err, durable.ErrBusy) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v", err)
		}
	}
	if err = first.Publish(0o644); err != nil {
		t.Fatal(err)
	}
	if data, failed := os.ReadFile(name); string(data) != "first" || failed != nil {
		t.Errorf("%q, %v", data, failed)
	}
	second, err := durable.TryCreate(name)
	if err != nil {
		t.Fatal(err)
	}
	if err = second.Discard(); err != nil {
		t.Error(err)
	}
}

func writeAt(f *durable.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, map[string]string{"f": "old"})
	f, err := durable.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half of"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Discard(); err != nil {
			t.Error(err)
		}
	}
	if got := content(t, dir); len(got) != 1 || got["f"] != "old" {
		t.Errorf("left: %v", got)
	}
}

func TestOpenNoFollow(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, map[string]string{"f": "data", "link": "-> f"})
	if _, err := durable.OpenNoFollow(filepath.Join(dir, "link")); !errors.Is(err, durable.ErrLink) {
		t.Errorf("link: %v", err)
	}
	f, err := durable.OpenNoFollow(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestMkdirAllAndRemove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := durable.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "f")
	fill(t, dir, map[string]string{"f": "data"})
	if err := durable.MkdirAll(filepath.Join(name, "c"), 0o755); err == nil {
		t.Error("a directory below a file")
	}
	if err := durable.Rename(name, filepath.Join(filepath.Dir(dir), "g")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := durable.Remove(filepath.Join(filepath.Dir(dir), "g")); err != nil {
			t.Error(err)
		}
	}
}

func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		name = filepath.Join(dir, name)
		var err error
		if target, isLink := strings.CutPrefix(data, "-> "); isLink {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if target, err := os.Readlink(name); err == nil {
			found[entry.Name()] = "-> " + target
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(data)
	}
	return found
}

// TestScratch leaves nothing in its directory, not even while it is used.
func TestScratch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	f, err := durable.NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt([]byte("content"), 3); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 7)
	if _, err = f.ReadAt(p, 3); err != nil || string(p) != "content" {
		t.Errorf("read %q, %v", p, err)
	}
	entries, err := os.ReadDir(dir)
	if runtime.GOOS != "windows" && len(entries) > 0 || err != nil {
		t.Errorf("in use: %v, %v", entries, err)
	}
	if err = errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if entries, err = os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
