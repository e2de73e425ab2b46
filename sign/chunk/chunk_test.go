package chunk_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return data
}

// small returns a list with the smallest chunks, so that little data has many.
func small(data []byte) *chunk.List {
	l := &chunk.List{Size: int64(len(data)), ChunkSize: chunk.MinSize, Algorithm: "sha256"}
	for piece := range slices.Chunk(data, chunk.MinSize) {
		digest := sha256.Sum256(piece)
		l.Digests = append(l.Digests, digest[:]...)
	}
	return l
}

func TestSum(t *testing.T) {
	for _, size := range []int{1, 100, 128 << 10, chunk.DefaultSize - 1, chunk.DefaultSize, chunk.DefaultSize + 1, 3*chunk.DefaultSize + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			data := random(size)
			var events report.Recorder
			sums, err := chunk.Sum(t.Context(), bytes.NewReader(data), int64(size), &events, crypto.SHA384, crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			if sums.SHA256 != sha256.Sum256(data) {
				t.Error("the digest of the whole differs")
			}
			if want := sha512.Sum384(data); !bytes.Equal(sums.Digest(crypto.SHA384), want[:]) {
				t.Error("the additional digest differs")
			}
			if sums.Digest(crypto.SHA512) != nil {
				t.Error("a digest that nobody asked for")
			}
			if err := sums.Chunks.Validate(); err != nil {
				t.Error(err)
			}
			var want []byte
			for piece := range slices.Chunk(data, chunk.DefaultSize) {
				digest := sha256.Sum256(piece)
				want = append(want, digest[:]...)
			}
			if !bytes.Equal(sums.Chunks.Digests, want) {
				t.Error("the digests of the chunks differ")
			}
			all := events.Events()
			if last := all[len(all)-1]; last.State != report.Done || last.Done != int64(size) {
				t.Errorf("last event %+v", last)
			}
		})
	}
}

func TestSumFails(t *testing.T) {
	data := random(1000)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken disk")
	for _, test := range []struct {
		name string
		ctx  context.Context
		r    io.ReaderAt
		size int64
		want func(error) bool
	}{
		{"empty", t.Context(), bytes.NewReader(nil), 0, func(err error) bool { return report.CodeOf(err) == report.Invalid }},
		{"short", t.Context(), bytes.NewReader(data), 1001, func(err error) bool { return report.CodeOf(err) == report.Corrupt }},
		{"cancelled", cancelled, bytes.NewReader(data), 1000, func(err error) bool { return errors.Is(err, context.Canceled) }},
		{"broken", t.Context(), readerAt{iotest.ErrReader(broken)}, 1000, func(err error) bool { return errors.Is(err, broken) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := chunk.Sum(test.ctx, test.r, test.size, report.Discard); err == nil || !test.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type readerAt struct{ io.Reader }

func (r readerAt) ReadAt(p []byte, _ int64) (int, error) { return r.Read(p) }

// growing is a file that is being written.
type growing struct {
	mu   sync.Mutex
	data []byte
}

func (g *growing) ReadAt(p []byte, off int64) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return copy(p, g.data[off:]), nil
}

func (g *growing) write(off int, p []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	copy(g.data[off:], p)
}

func TestFollowerSeesOnlyWhatIsWritten(t *testing.T) {
	want := random(2*chunk.DefaultSize + 12345)
	file := &growing{data: make([]byte, len(want))}
	f, err := chunk.Follow(t.Context(), file, int64(len(want)), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	const step = 100_000
	var offsets []int
	for off := 0; off < len(want); off += step {
		offsets = append(offsets, off)
	}
	rand.Shuffle(len(offsets), func(i, j int) { offsets[i], offsets[j] = offsets[j], offsets[i] })
	var writers sync.WaitGroup
	for half := range 2 {
		writers.Go(func() {
			for i := half; i < len(offsets); i += 2 {
				piece := want[offsets[i]:min(offsets[i]+step, len(want))]
				file.write(offsets[i], piece)
				f.Complete(int64(offsets[i]), int64(len(piece)))
			}
		})
	}
	writers.Wait()
	sums, err := f.Sums()
	if err != nil {
		t.Fatal(err)
	}
	if sums.SHA256 != sha256.Sum256(want) {
		t.Error("bytes were hashed before they were written")
	}
}

// TestFollowerWaitsForNoOtherWriter checks that a writer far ahead is not held up while fewer bytes are ready than one read has: the writer of the
// next ones may have failed, and then the others have to end as well.
func TestFollowerWaitsForNoOtherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		const size = 40 << 20
		f, err := chunk.Follow(ctx, zeros{}, size, report.Discard)
		if err != nil {
			t.Fatal(err)
		}
		f.Complete(0, 300_000)
		f.Complete(size-4096, 4096)
		cancel()
		if _, err := f.Sums(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// zeros is a file of zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

func TestFollowerEndsWhenItsWriterGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f, err := chunk.Follow(ctx, &growing{data: make([]byte, 100)}, 100, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	f.Complete(0, 99)
	cause := errors.New("no space")
	cancel(cause)
	if _, err := f.Sums(); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestVerify(t *testing.T) {
	data := random(20*chunk.MinSize + 77)
	list := small(data)
	const size = chunk.MinSize
	for _, test := range []struct {
		name   string
		change func([]byte) []byte
		want   []chunk.Range
	}{
		{"unchanged", func(b []byte) []byte { return b }, nil},
		{"first byte", func(b []byte) []byte { b[0] ^= 1; return b }, []chunk.Range{{From: 0, To: size}}},
		{"last byte", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, []chunk.Range{{From: 20 * size, To: 20*size + 77}}},
		{
			"neighbours are joined", func(b []byte) []byte { b[size-1] ^= 1; b[size] ^= 1; b[9*size] ^= 1; return b },
			[]chunk.Range{{From: 0, To: 2 * size}, {From: 9 * size, To: 10 * size}},
		},
		{"truncated", func(b []byte) []byte { return b[:18*size+1] }, []chunk.Range{{From: 18 * size, To: 20*size + 77}}},
		{"bytes after the end are not looked at", func(b []byte) []byte { return append(b, 1) }, nil},
	} {
		for _, workers := range []int{0, 1, 4} {
			got, err := chunk.Verify(t.Context(), bytes.NewReader(test.change(bytes.Clone(data))), list, workers, report.Discard)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s, %d workers: %v (%v), want %v", test.name, workers, got, err, test.want)
			}
		}
	}
	broken := errors.New("broken disk")
	if _, err := chunk.Verify(t.Context(), readerAt{iotest.ErrReader(broken)}, list, 2, report.Discard); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// busy fails when it is read by two goroutines at once, and counts the reads.
type busy struct {
	io.ReaderAt
	readers, reads atomic.Int32
}

func (b *busy) ReadAt(p []byte, offset int64) (int, error) {
	defer b.readers.Add(-1)
	b.reads.Add(1)
	if b.readers.Add(1) > 1 {
		return 0, errors.New("another one reads")
	}
	runtime.Gosched()
	return b.ReaderAt.ReadAt(p, offset)
}

// TestVerifyReadsInTurn verifies with several workers: each chunk is one read, while nothing else is read.
func TestVerifyReadsInTurn(t *testing.T) {
	data := random(40*chunk.MinSize + 7)
	r := &busy{ReaderAt: bytes.NewReader(data)}
	bad, err := chunk.Verify(t.Context(), r, small(data), 4, report.Discard)
	if err != nil || len(bad) > 0 || r.reads.Load() != 41 {
		t.Errorf("%v %v, %d reads", bad, err, r.reads.Load())
	}
}

func TestReader(t *testing.T) {
	data := random(9*chunk.MinSize + 5)
	r, err := chunk.NewReader(bytes.NewReader(append(bytes.Clone(data), "padding"...)), small(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(io.NewSectionReader(r, 0, r.Size()), data); err != nil {
		t.Error(err)
	}
	if n, err := r.ReadAt(make([]byte, 10), r.Size()-4); n != 4 || !errors.Is(err, io.EOF) {
		t.Errorf("read over the end: %d, %v", n, err)
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is accepted")
	}
}

func TestReaderRefusesChangedChunksOnly(t *testing.T) {
	data := random(4 * chunk.MinSize)
	changed := bytes.Clone(data)
	changed[chunk.MinSize] ^= 1
	r, err := chunk.NewReader(bytes.NewReader(changed), small(data))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 3*chunk.MinSize)
	if n, err := r.ReadAt(p, 0); n != chunk.MinSize || report.CodeOf(err) != report.Corrupt || !bytes.Equal(p[:n], data[:n]) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if n, err := r.ReadAt(p[:10], 2*chunk.MinSize); n != 10 || err != nil {
		t.Errorf("a good chunk: %d, %v", n, err)
	}
	changed[chunk.MinSize] ^= 1 // repaired: a failed chunk must not stick in the cache
	if _, err := r.ReadAt(p, 0); err != nil {
		t.Error(err)
	}
}

// TestReaderIsSafeForConcurrentUse has more readers than the cache has slots.
func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	data := random(5*chunk.MaxSize/4 + 3)
	sums := &chunk.List{Size: int64(len(data)), ChunkSize: 8 << 20, Algorithm: "sha256"}
	for piece := range slices.Chunk(data, 8<<20) {
		digest := sha256.Sum256(piece)
		sums.Digests = append(sums.Digests, digest[:]...)
	}
	r, err := chunk.NewReader(bytes.NewReader(data), sums)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			g := rand.New(rand.NewPCG(1, uint64(i)))
			p := make([]byte, 1000)
			for range 20 {
				off := g.Int64N(int64(len(data) - len(p)))
				if _, err := r.ReadAt(p, off); err != nil || !bytes.Equal(p, data[off:off+int64(len(p))]) {
					t.Errorf("read at %d: %v", off, err)
					return
				}
			}
		})
	}
	readers.Wait()
}

func FuzzList(f *testing.F) {
	f.Add(int64(100), int64(chunk.MinSize), "sha256", make([]byte, 32))
	f.Add(int64(1)<<62, int64(chunk.MaxSize), "sha256", make([]byte, 64))
	f.Add(int64(-1), int64(0), "", []byte(nil))
	f.Fuzz(func(t *testing.T, size, chunkSize int64, algorithm string, digests []byte) {
		l := &chunk.List{Size: size, ChunkSize: chunkSize, Algorithm: algorithm, Digests: digests}
		if l.Validate() != nil {
			if _, err := chunk.NewReader(bytes.NewReader(nil), l); err == nil {
				t.Error("an invalid list is accepted")
			}
			return
		}
		end := int64(0)
		for i := range l.Len() {
			place := l.Range(i)
			if place.From != end || place.Len() < 1 || place.Len() > chunkSize {
				t.Fatalf("chunk %d covers %v after %d", i, place, end)
			}
			end = place.To
		}
		if end != size {
			t.Errorf("the chunks end at %d, want %d", end, size)
		}
	})
}

func ExampleNewReader() {
	archive := []byte("content of an archive")
	sums, err := chunk.Sum(context.Background(), bytes.NewReader(archive), int64(len(archive)), report.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := chunk.NewReader(bytes.NewReader(archive), &sums.Chunks)
	if err != nil {
		fmt.Println(err)
		return
	}
	archive[0] = 'C'
	_, err = r.ReadAt(make([]byte, 7), 0)
	fmt.Println(err)
	// Output: bytes 0 to 20 differ from what was signed
}

// counting counts the bytes that were read.
type counting struct {
	*bytes.Reader
	n int64
}

func (c *counting) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.Reader.ReadAt(p, offset)
	c.n += int64(n)
	return n, err
}

// TestReaderKeepsSmallPieces reads more chunks than are held, again and again, and then more pieces than are kept.
func TestReaderKeepsSmallPieces(t *testing.T) {
	const size = 1 << 20
	data := random(20*size + 9)
	list := &chunk.List{Size: int64(len(data)), ChunkSize: size, Algorithm: "sha256"}
	for part := range slices.Chunk(data, size) {
		digest := sha256.Sum256(part)
		list.Digests = append(list.Digests, digest[:]...)
	}
	source := &counting{Reader: bytes.NewReader(data)}
	r, err := chunk.NewReader(source, list)
	if err != nil {
		t.Fatal(err)
	}
	read := func(offset, n int) {
		t.Helper()
		p := make([]byte, n)
		if _, err := r.ReadAt(p, int64(offset)); err != nil || !bytes.Equal(p, data[offset:offset+n]) {
			t.Fatalf("read %d bytes at %d: %v", n, offset, err)
		}
	}
	for range 3 {
		for at := 100; at < 20*size; at += size {
			read(at, 1000)
		}
	}
	if source.n != 20*size {
		t.Errorf("%d bytes were read for 20 pieces in 20 chunks", source.n)
	}
	for range 2 {
		for at := 0; at < 20*size; at += 64 << 10 {
			read(at, 64<<10)
		}
	}
}

func TestReaderRemembersItsFailure(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 2*chunk.DefaultSize)
	sums, err := chunk.Sum(t.Context(), bytes.NewReader(data), int64(len(data)), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := chunk.NewReader(bytes.NewReader(data[:chunk.DefaultSize+1]), &sums.Chunks) // cut off meanwhile
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 8), 0); err != nil || r.Failure() != nil {
		t.Errorf("%v, %v", err, r.Failure())
	}
	if _, err := r.ReadAt(make([]byte, 8), chunk.DefaultSize); err == nil || report.CodeOf(r.Failure()) != report.Corrupt {
		t.Errorf("%v, %v", err, r.Failure())
	}
}
