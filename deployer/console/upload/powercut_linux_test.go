package upload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/durable/powercut"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// cutSize is the size of an archive of three pieces, as small as pieces may be.
const cutSize = 2*chunk.MinSize + 77

// smallest is an archive that was signed in the smallest pieces.
func smallest(t *testing.T) ([]byte, Offer) {
	t.Helper()
	data, offer := archive(t, cutSize, 7)
	offer.Chunks = &chunk.List{Size: cutSize, ChunkSize: chunk.MinSize, Algorithm: offer.Chunks.Algorithm}
	for part := range slices.Chunk(data, chunk.MinSize) {
		sum := sha256.Sum256(part)
		offer.Chunks.Digests = append(offer.Chunks.Digests, sum[:]...)
	}
	return data, offer
}

// TestPowerCut cuts the power at every step of an upload: when it begins, while two requests bring it, and when it is discarded.
// Whatever the disk holds then, a console that starts again lets the person finish it, with the bytes that were signed, and
// nothing of it is left for ever.
func TestPowerCut(t *testing.T) {
	data, offer := smallest(t)
	if dir := os.Getenv("UPLOAD_TO"); dir != "" {
		sends(t, dir, os.Getenv("UPLOAD_UNTIL"), data, offer)
		return
	}
	for _, until := range []string{"sent", "discarded"} {
		t.Run(until, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err = os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			output, err := os.Create(filepath.Join(t.TempDir(), "output"))
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close() //nolint:errcheck // read by its name
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPowerCut$")
			cmd.Env = append(os.Environ(), "UPLOAD_TO="+dir, "UPLOAD_UNTIL="+until)
			cmd.Stdout, cmd.Stderr = output, output
			seen := map[[sha256.Size]byte]bool{}
			steps := map[string]bool{}
			status, err := powercut.Play(t.Context(), cmd, dir, func(d powercut.Disk) {
				steps[d.Before] = true
				sum := sha256.New()
				for _, name := range slices.Sorted(maps.Keys(d.Files)) {
					fmt.Fprintf(sum, "%q %d ", name, len(d.Files[name]))
					_, _ = io.WriteString(sum, d.Files[name])
				}
				key := [sha256.Size]byte(sum.Sum(nil))
				if d.Before != "" && seen[key] {
					return
				}
				seen[key] = true
				goesOnFrom(t, d, until, data, offer)
			})
			if text, failure := os.ReadFile(output.Name()); err != nil || failure != nil || status.ExitStatus() != 0 {
				t.Fatalf("%v, %v\n%s", err, failure, text)
			}
			if len(steps) < 8 {
				t.Errorf("the power was cut at %d steps only", len(steps))
			}
		})
	}
}

// sends is the console whose power fails.
func sends(t *testing.T, dir, until string, data []byte, offer Offer) {
	t.Helper()
	u := create(t, open(t, dir), offer)
	for _, end := range []int{chunk.MinSize, cutSize} {
		at, err := u.Received(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if at, err = u.Append(t.Context(), at, bytes.NewReader(data[at:end])); err != nil || at != int64(end) {
			t.Fatalf("at %d, %v", at, err)
		}
	}
	if until == "discarded" {
		if err := u.Discard(); err != nil {
			t.Fatal(err)
		}
	}
}

// goesOnFrom starts a console on a state of the disk.
func goesOnFrom(t *testing.T, d powercut.Disk, until string, data []byte, offer Offer) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range d.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("power cut before %q: %s", d.Before, fmt.Sprintf(format, args...))
	}
	for _, u := range s.Of(offer.Owner) {
		at, err := u.Received(t.Context())
		if err != nil || d.Before == "" && at != cutSize {
			fail("the upload is at %d: %v", at, err)
		}
	}
	if left := len(s.Of(offer.Owner)); d.Before == "" && (left == 1) != (until == "sent") {
		fail("%d uploads after all was %s", left, until)
	}
	u, err := s.Create(offer)
	if err != nil {
		fail("%v", err)
		return
	}
	at, err := u.Received(t.Context())
	if err == nil {
		at, err = u.Append(t.Context(), at, bytes.NewReader(data[at:]))
	}
	if err != nil || at != cutSize {
		fail("it does not go on: at %d, %v", at, err)
		return
	}
	f, err := u.Open()
	if err != nil {
		fail("%v", err)
		return
	}
	got, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, data) {
		fail("%d bytes, not those that were signed: %v", len(got), err)
	}
	s.now = func() time.Time { return time.Now().Add(2 * Lifetime) }
	s.Sweep()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		fail("this is never removed: %v, %v", left, err)
	}
}
