package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// frameBlock is the size in bytes of the blocks that are compressed on their own, so that each can be read without the others.
const frameBlock = 1 << 20

// keptBlocks is how many blocks of a frame a reader keeps.
const keptBlocks = 4

// compressFrame compresses a frame block by block: the same blocks for the same bytes.
func compressFrame(ctx context.Context, frame io.Reader, size int64, use func(block []byte) error) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(frameBlock), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	plain, compressed := make([]byte, frameBlock), []byte(nil)
	for ; size > 0; size -= int64(len(plain)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		plain = plain[:min(frameBlock, size)]
		if _, err = io.ReadFull(frame, plain); err != nil {
			return fmt.Errorf("read what lies between the blobs: %w", err)
		}
		compressed = encoder.EncodeAll(plain, compressed[:0])
		if err = use(compressed); err != nil {
			return err
		}
	}
	return encoder.Close()
}

// frameReader reads a compressed frame at any offset.
type frameReader struct {
	r       io.ReaderAt
	frame   schema.ArchiveFrame
	from    string
	offsets []int64 // of each block in r

	mu     sync.Mutex
	decode *zstd.Decoder
	kept   [keptBlocks]keptBlock
	next   int // the place of the block that is forgotten next
	packed []byte
}

type keptBlock struct {
	number int64
	data   []byte // nil: none
}

// newFrameReader returns a reader of a validated frame.
func newFrameReader(r Frame, frame schema.ArchiveFrame, from string) (*frameReader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(uint64(2*frame.BlockSize))) //nolint:gosec // positive
	if err != nil {
		return nil, err
	}
	f := &frameReader{r: r, frame: frame, from: from, decode: decoder, offsets: make([]int64, len(frame.Blocks))}
	at := r.At
	for i, size := range frame.Blocks {
		f.offsets[i] = at
		at += size
	}
	return f, nil
}

// ReadAt implements [io.ReaderAt] for ranges inside of the frame.
func (f *frameReader) ReadAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(p) {
		data, err := f.block(offset / f.frame.BlockSize)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], data[offset%f.frame.BlockSize:])
		n, offset = n+m, offset+int64(m)
	}
	return n, nil
}

// block returns a block as it was before it was compressed.
func (f *frameReader) block(number int64) ([]byte, error) {
	for _, k := range f.kept {
		if k.data != nil && k.number == number {
			return k.data, nil
		}
	}
	f.packed = append(f.packed[:0], make([]byte, f.frame.Blocks[number])...)
	if n, err := f.r.ReadAt(f.packed, f.offsets[number]); n < len(f.packed) {
		return nil, fmt.Errorf("read the frame: %w", err)
	}
	place := &f.kept[f.next]
	f.next = (f.next + 1) % keptBlocks
	size := min(f.frame.BlockSize, f.frame.Size-number*f.frame.BlockSize)
	data, err := f.decode.DecodeAll(f.packed, place.data[:0])
	if err == nil && int64(len(data)) != size {
		err = errors.New("it has another size than the layout requires")
	}
	if err != nil {
		place.data = nil
		return nil, report.Errorf(report.Corrupt, "block %d of the frame in %s is damaged: %w", number, f.from, err).WithHint("get it again from its source")
	}
	*place = keptBlock{number, data}
	return data, nil
}
