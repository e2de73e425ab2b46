package upload

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// archive returns some content, and its signed digests.
func archive(t *testing.T, size int, seed byte) ([]byte, Offer) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	sums, err := chunk.Sum(t.Context(), bytes.NewReader(data), int64(size), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return data, Offer{Owner: "jane", Name: "shop-1.0.0.iso", Solution: "shop", Version: "1.0.0", Chunks: &sums.Chunks}
}

const (
	size  = 10<<20 + 12345
	piece = chunk.DefaultSize
)

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *Spool, o Offer) *Upload {
	t.Helper()
	u, err := s.Create(o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func code(t *testing.T, err error, want report.Code) {
	t.Helper()
	if err == nil || report.CodeOf(err) != want {
		t.Fatalf("error %v, want %s", err, want)
	}
}

// TestGoesOn loses the connection, then the program, with the end of the file in every state that a crash leaves.
func TestGoesOn(t *testing.T) {
	data, offer := archive(t, size, 1)
	for _, test := range []struct {
		name  string
		crash func(path string) error
		want  int64
	}{
		{"as it was", func(string) error { return nil }, piece},
		{"with a part of a chunk", func(path string) error { return appendTo(path, data[piece:piece+100]) }, piece},
		{"with zeros that never reached the disk", func(path string) error { return appendTo(path, make([]byte, piece)) }, piece},
		{"with a chunk whose end was lost", func(path string) error { return os.Truncate(path, piece-7) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			u := create(t, open(t, dir), offer)
			at, err := u.Append(t.Context(), 0, io.MultiReader(bytes.NewReader(data[:piece+1000]), iotest.ErrReader(errors.New("reset by peer"))))
			if err == nil || at != piece {
				t.Fatalf("at %d, %v", at, err)
			}
			if err = test.crash(u.spool.path(u.ID, dataSuffix)); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir) // another process
			if u, err = s.Find("jane", u.ID); err != nil {
				t.Fatal(err)
			}
			if at, err = u.Received(t.Context()); err != nil || at != test.want {
				t.Fatalf("goes on at %d, %v; want %d", at, err, test.want)
			}
			if again := create(t, s, offer); again.ID != u.ID {
				t.Error("the same archive is another upload")
			}
			if at, err = u.Append(t.Context(), at, bytes.NewReader(data[at:])); err != nil || at != size || !u.Complete() {
				t.Fatalf("at %d, %v", at, err)
			}
			f, err := u.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // opened for reading
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, not those that were sent: %v", len(got), err)
			}
		})
	}
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// TestAltered is an archive with one wrong bit: the part before it is kept, and the part after it is not read.
func TestAltered(t *testing.T) {
	data, offer := archive(t, size, 1)
	u := create(t, open(t, filepath.Join(t.TempDir(), "spool")), offer)
	wrong := bytes.Clone(data)
	wrong[piece+5] ^= 1
	sent := bytes.NewReader(wrong)
	at, err := u.Append(t.Context(), 0, sent)
	code(t, err, report.Corrupt)
	if at != piece || sent.Len() != size-2*piece {
		t.Errorf("at %d, %d bytes were not read", at, sent.Len())
	}
	if info, _ := os.Stat(u.spool.path(u.ID, dataSuffix)); info.Size() != piece {
		t.Errorf("%d bytes are kept", info.Size())
	}
	if at, err = u.Append(t.Context(), piece, bytes.NewReader(data[piece:])); err != nil || at != size {
		t.Errorf("with the right bytes: at %d, %v", at, err)
	}
	if _, err = u.Append(t.Context(), size, bytes.NewReader([]byte("more"))); err != nil || u.Length() != size {
		t.Errorf("%d bytes, %v", u.Length(), err)
	}
}

func TestOneWriter(t *testing.T) {
	data, offer := archive(t, size, 1)
	u := create(t, open(t, filepath.Join(t.TempDir(), "spool")), offer)
	_, err := u.Append(t.Context(), 1, bytes.NewReader(data))
	code(t, err, report.Conflict)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, failure := u.Append(t.Context(), 0, r)
		done <- failure
	}()
	if _, err = w.Write(data[:piece+1]); err != nil { // the first chunk was taken when the next byte is
		t.Fatal(err)
	}
	_, err = u.Append(t.Context(), piece, bytes.NewReader(data[piece:]))
	code(t, err, report.Locked)
	if at, failure := u.Received(t.Context()); failure != nil || at != piece {
		t.Errorf("at %d, %v", at, failure)
	}
	if err = errors.Join(w.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if at, err := u.Append(t.Context(), piece, bytes.NewReader(data[piece:])); err != nil || at != size {
		t.Errorf("at %d, %v", at, err)
	}
}

func TestBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	now := time.Now()
	s, err := Open(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	_, first := archive(t, 100, 1)
	_, second := archive(t, 200, 2) // of the same name
	_, third := archive(t, 300, 3)
	a, b := create(t, s, first), create(t, s, second)
	if a.ID == b.ID {
		t.Error("two archives of one name are one upload")
	}
	_, err = s.Create(third)
	code(t, err, report.Refused)
	third.Owner = "joe"
	if _, err = s.Find("joe", a.ID); report.CodeOf(err) != report.NotFound {
		t.Errorf("the upload of somebody else: %v", err)
	}
	for _, id := range []string{"", "..", "../" + a.ID, a.ID + "/", "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if _, err = s.Find("jane", id); report.CodeOf(err) != report.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	// A tenth stays free, and 300 bytes others were promised.
	for _, test := range []struct {
		free int64
		fits bool
	}{{665, false}, {666, true}} {
		s.free = func(string) (int64, error) { return test.free, nil }
		if _, err = s.Create(third); (err == nil) != test.fits {
			t.Errorf("%d bytes are free: %v", test.free, err)
		}
	}
	now = now.Add(Lifetime - time.Second)
	if len(s.Of("jane")) != 2 {
		t.Error("an upload is gone too soon")
	}
	now = now.Add(time.Second)
	s.Sweep()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// TestLinks puts links where the files of an upload are.
func TestLinks(t *testing.T) {
	data, offer := archive(t, 100, 1)
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir)
	u := create(t, s, offer)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, nil, 0o600), os.Remove(s.path(u.ID, dataSuffix)), os.Symlink(victim, s.path(u.ID, dataSuffix))); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Append(t.Context(), 0, bytes.NewReader(data)); err == nil {
		t.Error("wrote through a link")
	}
	if got, err := os.ReadFile(victim); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := u.Open(); err == nil {
		t.Error("opened a link")
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // what it is about
		t.Fatal(err)
	}
	_, err := Open(dir, time.Now)
	code(t, err, report.Refused)
}
