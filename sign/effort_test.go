package sign_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TestVerdictOfInterruption shows the exit status with which the program ends.
func TestVerdictOfInterruption(t *testing.T) {
	w := newWorld(t)
	store, err := trust.Load([]string{w.trustDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	verdict, _, err := sign.Verify(ctx, bytes.NewReader(w.data), int64(len(w.data)), w.bundles, sign.Options{Store: store, Now: now, Workers: 2})
	if !errors.Is(err, context.Canceled) || verdict.Verified || verdict.Code != report.Cancelled || verdict.Exit != 130 {
		t.Errorf("%v, code %s, exit %d", err, verdict.Code, verdict.Exit)
	}
}

// counting counts the bytes that are read.
type counting struct {
	io.ReaderAt
	read atomic.Int64
}

func (c *counting) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.read.Add(int64(n))
	return n, err
}

// TestOneReadForEachChunkSize lets one trusted and hostile key sign many lists of other chunk sizes.
func TestOneReadForEachChunkSize(t *testing.T) {
	w := newWorld(t)
	honest := w.bundles[0].Data
	bundles := [][]byte{honest}
	for n := range 10 {
		st := w.statement()
		st.Predicate.Chunks.ChunkSize = chunk.DefaultSize >> (1 + n%2)
		count := (st.Predicate.Size-1)/st.Predicate.Chunks.ChunkSize + 1
		st.Predicate.Chunks.Digests = bytes.Repeat([]byte{byte(n)}, int(count)*sha256.Size)
		bundles = append(bundles, w.sign(w.second, st))
	}
	right, err := chunk.SumChunks(t.Context(), bytes.NewReader(w.data), int64(len(w.data)), chunk.MinSize, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	st := w.statement()
	st.Predicate.Chunks = *right
	w.set(append(bundles, w.sign(w.second, st))...)
	store, err := trust.Load([]string{w.trustDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(w.data))
	r := &counting{ReaderAt: bytes.NewReader(w.data)}
	verdict, _, err := sign.Verify(t.Context(), r, size, w.bundles, sign.Options{Store: store, Now: now, Workers: 2, Identify: identifyAcme})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range verdict.Signatures {
		if accepted := i == 0 || i == len(verdict.Signatures)-1; accepted != (s.Status == sign.Accepted) {
			t.Errorf("signature %d: %s %s", i, s.Status, s.Reason)
		}
	}
	if got, want := r.read.Load(), 4*size; got != want { // of three other sizes, and of the whole
		t.Errorf("%d bytes of %d were read", got, size)
	}
}

// TestLocateReadsOnce names many ranges of an image whose directories are read once.
func TestLocateReadsOnce(t *testing.T) {
	f, size := imageOf(t, iso.File{Path: "a.txt", Size: 5000}, iso.File{Path: "b/c.txt", Size: 5000})
	ctx, cancel := context.WithCancel(t.Context())
	r := &counting{ReaderAt: f}
	locate := sign.Locate(ctx, r, size)
	whole := chunk.Range{From: 0, To: size}
	if got := locate(whole); got != "a.txt and 1 more" {
		t.Errorf("the whole image: %q", got)
	}
	read := r.read.Load()
	for at := int64(0); at < size; at += 2048 {
		locate(chunk.Range{From: at, To: at + 1})
	}
	if got := locate(chunk.Range{From: 0, To: 1}); got != "directories or padding" || r.read.Load() != read {
		t.Errorf("%q; %d bytes were read for the first range, then %d more", got, read, r.read.Load()-read)
	}
	cancel()
	r = &counting{ReaderAt: f}
	if got := sign.Locate(ctx, r, size)(whole); got != "" || r.read.Load() > 0 {
		t.Errorf("after an interruption: %q, %d bytes were read", got, r.read.Load())
	}
}
