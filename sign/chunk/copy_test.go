package chunk_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// memory is a file in memory that is full at some size.
type memory struct {
	mu    sync.Mutex
	data  []byte
	limit int64
}

var errFull = errors.New("full")

func (m *memory) WriteAt(p []byte, offset int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := offset + int64(len(p))
	if m.limit > 0 && end > m.limit {
		return 0, errFull
	}
	if end > int64(len(m.data)) {
		m.data = append(m.data, make([]byte, end-int64(len(m.data)))...)
	}
	return copy(m.data[offset:], p), nil
}

func TestCopy(t *testing.T) {
	for _, size := range []int{1, chunk.MinSize, 5*chunk.MinSize + 7} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			data := random(size)
			var out memory
			var events report.Recorder
			digest, err := chunk.Copy(t.Context(), &out, bytes.NewReader(data), small(data), nil, &events)
			if err != nil || digest != sha256.Sum256(data) {
				t.Fatalf("%x, %v", digest, err)
			}
			if !bytes.Equal(out.data, data) {
				t.Error("the copy differs")
			}
			if all := events.Events(); len(all) == 0 || all[len(all)-1].State != report.Done || all[len(all)-1].Done != int64(size) {
				t.Errorf("events: %+v", all)
			}
		})
	}
}

// TestCopyWritesOnlyWhatIsListed copies something that is altered, or that changes between two reads of it.
func TestCopyWritesOnlyWhatIsListed(t *testing.T) {
	data := random(4 * chunk.MinSize)
	list := small(data)
	for _, place := range []int{0, chunk.MinSize - 1, 3 * chunk.MinSize} {
		altered := slices.Clone(data)
		altered[place] ^= 1
		var out memory
		_, err := chunk.Copy(t.Context(), &out, bytes.NewReader(altered), list, nil, report.Discard)
		if report.CodeOf(err) != report.Corrupt {
			t.Errorf("byte %d: got %v", place, err)
		}
		for at, piece := 0, out.data; at+chunk.MinSize <= len(piece); at += chunk.MinSize {
			got := piece[at : at+chunk.MinSize]
			if !bytes.Equal(got, data[at:at+chunk.MinSize]) && !bytes.Equal(got, make([]byte, chunk.MinSize)) {
				t.Errorf("byte %d: what was not listed was written at %d", place, at)
			}
		}
	}
}

// TestFirstError reads a file in which several chunks differ, and one that ends behind the first of them: whichever goroutine is faster, the
// first one is named.
func TestFirstError(t *testing.T) {
	data := random(40 * chunk.MinSize)
	list := small(data)
	altered := slices.Clone(data)
	for i := 7; i < 40; i++ {
		altered[i*chunk.MinSize] ^= 1
	}
	want := fmt.Sprintf("bytes %d to %d differ from what was signed", 7*chunk.MinSize, 8*chunk.MinSize-1)
	for i := range 100 {
		content := bytes.NewReader(altered[:[]int{40, 8}[i%2]*chunk.MinSize])
		var out memory
		if _, err := chunk.Copy(t.Context(), &out, content, list, nil, report.Discard); err == nil || err.Error() != want {
			t.Fatalf("copy: got %v, want %s", err, want)
		}
		if len(out.data) > 7*chunk.MinSize {
			t.Fatalf("%d bytes were written, want at most %d", len(out.data), 7*chunk.MinSize)
		}
		if _, err := chunk.Check(t.Context(), content, list, nil, report.Discard); err == nil || err.Error() != want {
			t.Fatalf("check: got %v, want %s", err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, size := range []int{1, 63, chunk.MinSize, 40*chunk.MinSize + 7} {
		data := random(size)
		digest, err := chunk.Check(t.Context(), bytes.NewReader(data), small(data), nil, report.Discard)
		if err != nil || digest != sha256.Sum256(data) {
			t.Errorf("%d bytes: %x, %v", size, digest, err)
		}
	}
}

func TestCopyFails(t *testing.T) {
	data := random(20 * chunk.MinSize) // more than is in memory at once
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chunk.Copy(cancelled, &memory{}, bytes.NewReader(data), small(data), nil, report.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := chunk.Copy(t.Context(), &memory{limit: chunk.MinSize}, bytes.NewReader(data), small(data), nil, report.Discard); !errors.Is(err, errFull) {
		t.Errorf("full: %v", err)
	}
	if _, err := chunk.Copy(t.Context(), &memory{}, bytes.NewReader(data[:100]), small(data), nil, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("cut off: %v", err)
	}
	if _, err := chunk.Copy(t.Context(), &memory{}, bytes.NewReader(data), &chunk.List{Size: 5}, nil, report.Discard); report.CodeOf(err) != report.Invalid {
		t.Errorf("bad list: %v", err)
	}
}

func TestCheckFails(t *testing.T) {
	data := random(20 * chunk.MinSize)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chunk.Check(cancelled, bytes.NewReader(data), small(data), nil, report.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := chunk.Check(t.Context(), bytes.NewReader(data[:100]), small(data), nil, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("cut off: %v", err)
	}
	if _, err := chunk.Check(t.Context(), bytes.NewReader(data), &chunk.List{Size: 5}, nil, report.Discard); report.CodeOf(err) != report.Invalid {
		t.Errorf("bad list: %v", err)
	}
}
