//go:build unix

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// TestMain lets the test binary be the process that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		if err := actInChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// actInChild adds the archive beside the store, or removes it, and kills itself before a step.
func actInChild(dir string) error {
	last, err := strconv.Atoi(os.Getenv("STORE_TEST_STEP"))
	if err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	steps := 0
	s.step = inTurn(func(string) error {
		if steps++; steps > last {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})
	switch os.Getenv("STORE_TEST_ACT") {
	case "remove":
		return remove(s, "demo-1.0.0")
	case "replace":
		source, failure := openSource(filepath.Join(dir, "rebuilt.iso"), "1.0.0-rc.1")
		if failure != nil {
			return failure
		}
		_, _, err = add(s, source)
		return err
	}
	source, err := openSource(filepath.Join(dir, "demo.iso"), "1.0.0")
	if err != nil {
		return err
	}
	if os.Getenv("STORE_TEST_ACT") == "countersign" {
		source.Bundles = siteBundles
	}
	_, _, err = add(s, source)
	return err
}

// inTurn makes a step that several goroutines call be called by one at a time: an archive is written by two.
func inTurn(step func(string) error) func(string) error {
	var mu sync.Mutex
	return func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		return step(name)
	}
}

func openSource(path, version string) (Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return Source{}, err
	}
	return sourceOf(f, version)
}

func add(s *Store, source Source) (Entry, Method, error) {
	l, err := s.Lock()
	if err != nil {
		return Entry{}, "", err
	}
	defer l.Unlock() //nolint:errcheck // the process ends, or the test notices
	return l.Add(contextOfTests, source, StageOptions{Now: time.Unix(1e9, 0), WrittenBy: "test"})
}

func remove(s *Store, id string) error {
	l, err := s.Lock()
	if err != nil {
		return err
	}
	return errors.Join(l.Remove(id), l.Unlock())
}

func sourceOf(f *os.File, version string) (Source, error) {
	info, err := f.Stat()
	if err != nil {
		return Source{}, err
	}
	sums, err := chunk.Sum(contextOfTests, f, info.Size(), report.Discard)
	if err != nil {
		return Source{}, err
	}
	return Source{
		Content: f, File: f, Chunks: &sums.Chunks, SHA256: hex.EncodeToString(sums.SHA256[:]), Path: f.Name(), Name: "demo", Version: version,
		Payload: "sha256:" + strings.Repeat("0", 64), Signers: []string{"key"}, Bundles: vendorBundles,
	}, nil
}

// writeArchive writes a stand-in for an archive: a store does not parse one. It has three pieces.
func writeArchive(t *testing.T, path string) []byte {
	t.Helper()
	data := make([]byte, 2*chunk.DefaultSize+4096)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(data)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return data
}

func newSource(t *testing.T, path, version string) Source {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() }) //nolint:errcheck // opened for reading
	source, err := sourceOf(f, version)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// content reads every entry through its verified reader. No entry lacks the signature of the vendor.
func content(t *testing.T, s *Store) map[string][]byte {
	t.Helper()
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		f, err := s.Open(e)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(io.NewSectionReader(f.Verified, 0, e.Size))
		if err = errors.Join(err, f.Unchanged(), f.Close()); err != nil {
			t.Fatal(err)
		}
		all[e.ID()] = data
		if bundles, err := s.Bundles(e); err != nil || !slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(b, vendorBundles[0].Data) }) {
			t.Errorf("%s has bundles %q, %v", e.ID(), bundles, err)
		}
	}
	return all
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAdd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	if entries, err := s.Entries(); err != nil || len(entries) != 0 {
		t.Fatalf("a store that does not exist: %v, %v", entries, err)
	}
	original := filepath.Join(dir, "demo.iso")
	want := writeArchive(t, original)
	source := newSource(t, original, "1.0.0")
	entry, method, err := add(s, source)
	if err != nil {
		t.Fatal(err)
	}
	if method != Copied && method != Reflinked {
		t.Errorf("method %s", method)
	}
	if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) || len(got) != 1 {
		t.Errorf("%d archives, or other content", len(got))
	}
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Entry{entry}, entries); diff != "" {
		t.Error(diff)
	}
	if entry.Path != filepath.Join(s.Dir(), "demo-1.0.0.iso") || entry.Original != original || entry.SHA256 != source.SHA256 {
		t.Errorf("entry: %+v", entry)
	}
	for name, mode := range map[string]fs.FileMode{
		".": fs.ModeDir | 0o750, "demo-1.0.0.iso": 0o440, "demo-1.0.0.json": 0o440, bundleName(entry, vendorBundles[0]): 0o440,
	} {
		info, err := os.Stat(filepath.Join(s.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	if _, err := s.Find("demo", "1.0.0"); report.CodeOf(err) != report.NotFound {
		t.Fatalf("in an empty store: %v", err)
	}
	original, link := filepath.Join(dir, "demo.iso"), filepath.Join(dir, "link")
	writeArchive(t, original)
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.10.0", "1.9.0"} {
		source := newSource(t, original, version)
		source.Path = filepath.Join(dir, version+".iso")
		if _, _, err := add(s, source); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range [][2]string{
		{"demo-1.9.0"},
		{"demo", "1.9.0"},
		{filepath.Join(dir, "1.9.0.iso")},
		{filepath.Join(link, "1.9.0.iso")}, // a file that is gone, in a directory with another name
		{filepath.Join(s.Dir(), "demo-1.9.0.iso")},
	} {
		if e, err := s.Find(words[0], words[1]); err != nil || e.Version != "1.9.0" {
			t.Errorf("%q: %v, %v", words, e.Version, err)
		}
	}
	_, err := s.Find("demo", "1.8.0")
	if hints := strings.Join(report.Hints(err), " "); report.CodeOf(err) != report.NotFound || !strings.Contains(hints, "1.9.0, 1.10.0") {
		t.Errorf("%v, hints %q", err, hints)
	}
}

func TestAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	original := filepath.Join(dir, "demo.iso")
	want := writeArchive(t, original)
	source := newSource(t, original, "1.0.0")
	if _, _, err := add(s, source); err != nil {
		t.Fatal(err)
	}
	t.Run("the same archive is not read, but what is in the store", func(t *testing.T) {
		unread := source
		unread.File = nil
		if _, method, err := add(s, unread); err != nil || method != Present {
			t.Errorf("%s, %v", method, err)
		}
	})
	t.Run("other content", func(t *testing.T) {
		other := source
		other.SHA256 = strings.Repeat("0", 64)
		if _, _, err := add(s, other); report.CodeOf(err) != report.Replaced {
			t.Errorf("%v", err)
		}
	})
	for name, spoil := range map[string]func(path string) error{
		"lost":     os.Remove,
		"cut off":  func(path string) error { return os.Truncate(path, 4096) },
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"altered": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoil(filepath.Join(s.Dir(), "demo-1.0.0.iso")); err != nil {
				t.Fatal(err)
			}
			e, err := s.Find("demo-1.0.0", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(e); name != "altered" && report.CodeOf(err) != report.Corrupt {
				t.Errorf("open: %v", err)
			}
			if _, method, err := add(s, source); err != nil || method == Present {
				t.Fatalf("%s, %v", method, err)
			}
			if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) {
				t.Error("other content")
			}
		})
	}
}

func TestAlteredContentIsNotAdded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	original := filepath.Join(dir, "demo.iso")
	data := writeArchive(t, original)
	for name, place := range map[string]int{"first piece": 5, "last byte": len(data) - 1} {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, original, "1.0.0")
			altered := slices.Clone(data)
			altered[place] ^= 1
			if err := os.WriteFile(original, altered, 0o644); err != nil {
				t.Fatal(err)
			}
			_, _, err := add(s, source)
			if report.CodeOf(err) != report.Corrupt {
				t.Errorf("got %v", err)
			}
			if left := files(t, s.Dir()); left != nil {
				t.Errorf("left %q", left)
			}
			if err := os.WriteFile(original, data, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestDigestOfAnotherArchive gives pieces that are right with a digest that is not, and the other way round.
func TestDigestOfAnotherArchive(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	genuine, malicious := filepath.Join(dir, "genuine.iso"), filepath.Join(dir, "malicious.iso")
	data := writeArchive(t, genuine)
	data[17] ^= 1
	if err := os.WriteFile(malicious, data, 0o644); err != nil {
		t.Fatal(err)
	}
	honest := newSource(t, genuine, "1.0.0")
	forged := newSource(t, malicious, "1.0.0")
	forged.SHA256 = honest.SHA256
	refuse := func(source Source, want report.Code) {
		t.Helper()
		before := files(t, s.Dir())
		if _, _, err := add(s, source); report.CodeOf(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if after := files(t, s.Dir()); !slices.Equal(before, after) {
			t.Errorf("left %q", after)
		}
	}
	refuse(forged, report.Mismatch)
	if _, _, err := add(s, honest); err != nil {
		t.Fatal(err)
	}
	refuse(forged, report.Mismatch)

	// Cut otherwise, the pieces are compared with those of the archive at hand, which is there already.
	again := newSource(t, genuine, "1.0.0")
	again.Chunks = cutOtherwise(t, genuine)
	if _, method, err := add(s, again); err != nil || method != Present {
		t.Errorf("%s, %v", method, err)
	}
	again.Chunks = cutOtherwise(t, malicious)
	refuse(again, report.Corrupt)
}

// cutOtherwise lists smaller pieces of a file.
func cutOtherwise(t *testing.T, path string) *chunk.List {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := &chunk.List{Size: int64(len(data)), ChunkSize: chunk.MinSize, Algorithm: "sha256"}
	for piece := range slices.Chunk(data, chunk.MinSize) {
		digest := sha256.Sum256(piece)
		list.Digests = append(list.Digests, digest[:]...)
	}
	return list
}

func TestStagedIsNotSeen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	l, err := s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(); report.CodeOf(err) != report.Locked {
		t.Errorf("a second lock: %v", err)
	}
	var staged []*Staged
	for _, version := range []string{"1.0.0", "2.0.0"} {
		g, err := l.Stage(t.Context(), newSource(t, original, version), StageOptions{Now: time.Unix(1e9, 0)})
		if err != nil {
			t.Fatal(err)
		}
		staged = append(staged, g)
	}
	if got := content(t, s); len(got) != 0 {
		t.Errorf("%d entries before the commit", len(got))
	}
	if _, err := staged[0].Commit(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(staged[1].Discard(), l.Unlock()); err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, s.Dir()), entryFiles(t, s, vendorBundles); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLink makes a file that was pulled that of the store. One that is damaged, or that another file has replaced, is not.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	if err := os.MkdirAll(s.PulledDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	pulled := filepath.Join(s.PulledDir(), "demo-1.0.0.iso")
	want := writeArchive(t, pulled)
	open := func(version string) Source {
		source := newSource(t, pulled, version)
		source.Path = pulled
		return source
	}
	entry, method, err := add(s, open("1.0.0"))
	if err != nil || method != Linked {
		t.Fatalf("%s, %v", method, err)
	}
	info, err := os.Stat(entry.Path)
	if err != nil || info.Mode() != 0o440 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err = os.Remove(pulled); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) {
		t.Error("other content")
	}

	data := writeArchive(t, pulled)
	damaged := open("2.0.0")
	data[9] ^= 1
	if err = os.WriteFile(pulled, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = add(s, damaged); report.CodeOf(err) != report.Corrupt {
		t.Errorf("a damaged file: %v", err)
	}
	want = writeArchive(t, pulled)
	replaced := open("3.0.0")
	if err = errors.Join(os.Remove(pulled), os.WriteFile(pulled, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, method, err = add(s, replaced); err != nil || method == Linked {
		t.Errorf("another file has the name: %s, %v", method, err)
	}
	if got := content(t, s); len(got) != 2 || !bytes.Equal(got["demo-3.0.0"], want) {
		t.Errorf("%d entries", len(got))
	}
}

// steps returns the disk operations of adding an archive to a store that does not exist yet, and of removing it.
func steps(t *testing.T) (adding, removing []string) {
	t.Helper()
	dir := t.TempDir()
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	s := open(t, filepath.Join(dir, "store"))
	s.step = inTurn(func(name string) error { adding = append(adding, name); return nil })
	if _, _, err := add(s, newSource(t, original, "1.0.0")); err != nil {
		t.Fatal(err)
	}
	s.step = inTurn(func(name string) error { removing = append(removing, name); return nil })
	if err := remove(s, "demo-1.0.0"); err != nil {
		t.Fatal(err)
	}
	return adding, removing
}

// TestKill kills a process before each step. Whatever it was doing, every entry of the store is complete afterwards, and
// the same command finishes the work.
func TestKill(t *testing.T) {
	adding, removing := steps(t)
	for i, step := range adding {
		t.Run(fmt.Sprintf("adding %d %s", i, step), func(t *testing.T) {
			dir := t.TempDir()
			original := filepath.Join(dir, "demo.iso")
			want := writeArchive(t, original)
			kill(t, dir, i, "add")
			s := open(t, filepath.Join(dir, "store"))
			for id, data := range content(t, s) {
				if !bytes.Equal(data, want) {
					t.Errorf("%s is incomplete", id)
				}
			}
			if _, _, err := add(s, newSource(t, original, "1.0.0")); err != nil {
				t.Fatal(err)
			}
			if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) {
				t.Error("other content")
			}
			if got, want := files(t, s.Dir()), entryFiles(t, s, vendorBundles); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	for i, step := range removing {
		t.Run(fmt.Sprintf("removing %d %s", i, step), func(t *testing.T) {
			dir := t.TempDir()
			original := filepath.Join(dir, "demo.iso")
			writeArchive(t, original)
			s := open(t, filepath.Join(dir, "store"))
			if _, _, err := add(s, newSource(t, original, "1.0.0")); err != nil {
				t.Fatal(err)
			}
			kill(t, dir, i, "remove")
			content(t, s)
			if err := remove(s, "demo-1.0.0"); err != nil {
				t.Fatal(err)
			}
			if left := files(t, s.Dir()); left != nil {
				t.Errorf("left %q", left)
			}
		})
	}
}

// replaceable makes a store that has a pre-release, and the archive of one that was built again beside it.
func replaceable(t *testing.T) (dir string, s *Store, old, rebuilt []byte) {
	t.Helper()
	dir = t.TempDir()
	original := filepath.Join(dir, "demo.iso")
	old = writeArchive(t, original)
	s = open(t, filepath.Join(dir, "store"))
	if _, _, err := add(s, newSource(t, original, "1.0.0-rc.1")); err != nil {
		t.Fatal(err)
	}
	rebuilt = slices.Clone(old) // of the same size: only the digests differ
	rebuilt[len(rebuilt)-1] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "rebuilt.iso"), rebuilt, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, s, old, rebuilt
}

// TestReplace interrupts the replacement of a pre-release before each step, by a failure or by the end of the process. The
// old or the new archive is there completely, at once and after the next process has tidied up; the same command finishes.
func TestReplace(t *testing.T) {
	const id = "demo-1.0.0-rc.1"
	dir, s, _, rebuilt := replaceable(t)
	var steps []string
	s.step = inTurn(func(name string) error { steps = append(steps, name); return nil })
	if _, method, err := add(s, newSource(t, filepath.Join(dir, "rebuilt.iso"), "1.0.0-rc.1")); err != nil || method != Copied && method != Reflinked {
		t.Fatalf("%s, %v", method, err)
	}
	complete := func(t *testing.T, s *Store, any ...[]byte) {
		t.Helper()
		got := content(t, s)[id]
		if !slices.ContainsFunc(any, func(want []byte) bool { return bytes.Equal(got, want) }) {
			t.Error("neither the old nor the new archive is there")
		}
	}
	complete(t, s, rebuilt)
	for i, step := range steps {
		for _, way := range []string{"killed", "failed"} {
			t.Run(fmt.Sprintf("%s %d %s", way, i, step), func(t *testing.T) {
				dir, s, old, rebuilt := replaceable(t)
				source := newSource(t, filepath.Join(dir, "rebuilt.iso"), "1.0.0-rc.1")
				if way == "killed" {
					kill(t, dir, i, "replace")
				} else {
					count := 0
					s.step = inTurn(func(string) error {
						if count++; count == i+1 {
							return syscall.ENOSPC
						}
						return nil
					})
					if _, _, err := add(s, source); !errors.Is(err, syscall.ENOSPC) {
						t.Fatal(err)
					}
				}
				s = open(t, filepath.Join(dir, "store"))
				complete(t, s, old, rebuilt)
				if err := s.Tidy(t.Context(), 0, nil); err != nil {
					t.Fatal(err)
				}
				complete(t, s, old, rebuilt)
				if got, want := files(t, s.Dir()), entryFiles(t, s, vendorBundles); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				if _, _, err := add(s, source); err != nil {
					t.Fatal(err)
				}
				complete(t, s, rebuilt)
			})
		}
	}
}

func kill(t *testing.T, dir string, step int, act string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+dir, fmt.Sprintf("STORE_TEST_STEP=%d", step), "STORE_TEST_ACT="+act)
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
}

// TestFailure makes each step fail. The error reports it, nothing remains, and the same command finishes the work.
func TestFailure(t *testing.T) {
	adding, _ := steps(t)
	for i, step := range adding {
		t.Run(fmt.Sprintf("%d %s", i, step), func(t *testing.T) {
			dir := t.TempDir()
			original := filepath.Join(dir, "demo.iso")
			want := writeArchive(t, original)
			s := open(t, filepath.Join(dir, "store"))
			count := 0
			s.step = inTurn(func(name string) error {
				if count++; count == i+1 {
					return &fs.PathError{Op: name, Path: "store", Err: syscall.ENOSPC}
				}
				return nil
			})
			if _, _, err := add(s, newSource(t, original, "1.0.0")); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v", err)
			}
			if left := files(t, s.Dir()); left != nil && !slices.Equal(left, entryFiles(t, s, vendorBundles)) {
				t.Errorf("left %q", left)
			}
			s = open(t, filepath.Join(dir, "store"))
			if _, _, err := add(s, newSource(t, original, "1.0.0")); err != nil {
				t.Fatal(err)
			}
			if got := content(t, s); !bytes.Equal(got["demo-1.0.0"], want) {
				t.Error("other content")
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	s := open(t, filepath.Join(dir, "store"))
	l, err := s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock() //nolint:errcheck // the test is over
	if _, _, err := l.Add(cancelled(t), newSource(t, original, "1.0.0"), StageOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := files(t, s.Dir()); left != nil {
		t.Errorf("left %q", left)
	}
}

func TestForeignRecords(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		code           report.Code
	}{
		{"newer format", `"formatVersion": 1`, `"formatVersion": 2`, report.Refused},
		{"not JSON", `{`, ``, report.Corrupt},
		{"another archive's", `"version": "1.0.0"`, `"version": "1.0.1"`, report.Corrupt},
		{"too few digests", `"size": `, `"size": 9`, report.Corrupt},
		{"a path for a name", `"name": "demo"`, `"name": "../demo"`, report.Corrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			original := filepath.Join(dir, "demo.iso")
			writeArchive(t, original)
			s := open(t, filepath.Join(dir, "store"))
			if _, _, err := add(s, newSource(t, original, "1.0.0")); err != nil {
				t.Fatal(err)
			}
			record := filepath.Join(s.Dir(), "demo-1.0.0.json")
			data, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(data), test.old, test.new, 1)
			if changed == string(data) {
				t.Fatal("nothing was changed")
			}
			if err := errors.Join(os.Remove(record), os.WriteFile(record, []byte(changed), 0o440)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Entries(); report.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestTidy: commands that change nothing also remove the remains of a killed process.
func TestTidy(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Tidy(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "demo-1.0.0.iso"), []byte("its record is gone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s.Dir()); left != nil {
		t.Errorf("left %q", left)
	}
}

// TestLockWithin waits for the holder of the lock, up to the timeout.
func TestLockWithin(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store"))
	l, err := s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.LockWithin(t.Context(), time.Millisecond, nil); report.CodeOf(err) != report.Locked {
		t.Errorf("after the time: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	if _, err = s.LockWithin(cancelled, time.Hour, sinkFunc(func(report.Event) { cancel() })); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var told []report.State
	later, err := s.LockWithin(t.Context(), time.Hour, sinkFunc(func(e report.Event) {
		if told = append(told, e.State); len(told) == 1 { // it waits
			if failure := l.Unlock(); failure != nil {
				t.Error(failure)
			}
		}
	}))
	if err != nil || !slices.Equal(told, []report.State{report.Started, report.Done}) {
		t.Fatalf("%v, %v", told, err)
	}
	if err := later.Unlock(); err != nil {
		t.Error(err)
	}
}

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }
