package twin

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// implementations are the implementations for this processor.
func implementations() map[string]func() both {
	all := map[string]func() both{"parallel": func() both { return newParallel() }}
	if supported() {
		all["interleaved"] = func() both { return newInterleaved() }
	}
	return all
}

// FuzzHash compares every implementation with the standard library, written in pieces of any length.
func FuzzHash(f *testing.F) {
	for _, size := range []int{0, 1, 55, 56, 63, 64, 65, 127, 128, 191, 192, 193, 1000, 4096} {
		f.Add(uint64(size), uint16(size), byte(2))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint16, blocks byte) {
		random := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		chunkSize := (int(blocks) + 1) * sha256.BlockSize
		wantWhole, wantChunks := reference(data, chunkSize)
		for name, newBoth := range implementations() {
			h := New(chunkSize)
			h.both = newBoth()
			for rest := data; len(rest) > 0; {
				n := 1 + random.IntN(len(rest))
				h.Write(rest[:n])
				rest = rest[n:]
			}
			whole, chunks := h.Sums()
			if whole != wantWhole || !bytes.Equal(chunks, wantChunks) {
				t.Errorf("%s: %d bytes in chunks of %d: got %x %x, want %x %x", name, size, chunkSize, whole, chunks, wantWhole, wantChunks)
			}
		}
	})
}

func reference(data []byte, chunkSize int) (whole [sha256.Size]byte, chunks []byte) {
	for at := 0; at < len(data); at += chunkSize {
		digest := sha256.Sum256(data[at:min(at+chunkSize, len(data))])
		chunks = append(chunks, digest[:]...)
	}
	return sha256.Sum256(data), chunks
}

// FuzzBoth adds pieces of any length to a computation of the standard library, and compares it with one that got them directly.
func FuzzBoth(f *testing.F) {
	for _, size := range []uint16{0, 1, 55, 56, 63, 64, 65, 127, 128, 1000, 4096} {
		f.Add(uint64(size), size, size/2)
	}
	f.Fuzz(func(t *testing.T, seed uint64, first, second uint16) {
		random := rand.New(rand.NewPCG(seed, 2))
		want, got := sha256.New(), sha256.New()
		for _, size := range []uint16{first &^ 63, second, first} {
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			want.Write(data)
			if digest := Both(got, data); digest != sha256.Sum256(data) {
				t.Errorf("%d bytes: got %x", size, digest)
			}
		}
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("whole: got %x, want %x", got.Sum(nil), want.Sum(nil))
		}
	})
}

func TestChunkSize(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a chunk size that is not a multiple of the block size was taken")
		}
	}()
	New(100)
}

// Benchmark shows the cost of a second digest beside the one of the standard library.
func Benchmark(b *testing.B) {
	data := make([]byte, 128<<10)
	b.Run("one digest", func(b *testing.B) {
		h := sha256.New()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			h.Write(data)
		}
	})
	for name, newBoth := range implementations() {
		b.Run(name, func(b *testing.B) {
			h := newBoth()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				h.write(data)
			}
		})
	}
}
