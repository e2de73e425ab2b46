package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/pgzip"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// codec names the bytes that compressing a layer yields: gzip level 6 of klauspost/compress as pgzip writes it in
// blocks of 1 MiB, with an empty header. The output depends on the block size but not on the number of processors. A
// golden test holds it; when an upgrade of the library changes the output, the number goes up, and old cache entries
// are no longer found.
const codec = "pgzip6-1MiB-v1"

const (
	codecBlock     = 1 << 20
	codecBlocks    = 4 // compressed at a time; not part of the codec
	maxCompressing = 4 // layers; each takes some 10 MiB
)

// layerCache holds compressed layers by the digest of their uncompressed form (diff ID): in a directory, or without one
// in unlinked files that are gone with the process.
type layerCache struct {
	dir     string // "": nothing is kept
	work    string // of the files without a name
	sink    report.Sink
	slots   chan struct{} // one is taken by each compression under way
	records onces[Digest, layerRecord]

	mu    sync.Mutex
	files map[Digest]*durable.Scratch // by the digest of the compressed layer
}

// Close frees the space of layers that are not kept.
func (c *layerCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}

// newLayerCache returns a cache that keeps about as many processors busy as there are jobs.
func newLayerCache(dir, work string, jobs int, sink report.Sink) *layerCache {
	layers := min((jobs+codecBlocks-1)/codecBlocks, maxCompressing)
	return &layerCache{dir: dir, work: work, sink: sink, slots: make(chan struct{}, layers)}
}

// layerRecord holds the result of compressing a layer; the blob lies beside the record, under its digest.
type layerRecord struct {
	DiffID Digest `json:"diffID"`
	Codec  string `json:"codec"`
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
}

func (c *layerCache) codecDir() string { return filepath.Join(c.dir, "layers", codec) }
func (c *layerCache) recordPath(diffID Digest) string {
	return filepath.Join(c.codecDir(), diffID.Hex+".json")
}
func (c *layerCache) blobPath(d Digest) string { return filepath.Join(c.codecDir(), d.Hex+".gz") }

// compress returns the compressed form of a layer, from the cache when it is there. open streams the layer; its digest
// must be diffID. Several images that need the layer at once wait for the same compression.
func (c *layerCache) compress(ctx context.Context, diffID Digest, name string, open func() (io.ReadCloser, error)) (Blob, error) {
	record, err := c.records.get(diffID, func() (layerRecord, error) {
		if record, ok := c.find(diffID); ok && c.dir != "" {
			return record, nil
		}
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return layerRecord{}, ctx.Err()
		}
		event := report.Event{Step: "compress", Name: name, State: report.Started}
		c.sink.Emit(event)
		record, err := c.fill(ctx, diffID, open)
		event.State, event.Done = report.Done, record.Size
		if err != nil {
			event.State = report.Failed
		}
		c.sink.Emit(event)
		return record, err
	})
	return c.blob(record), err
}

// find returns the record of a layer whose blob is still there.
func (c *layerCache) find(diffID Digest) (layerRecord, bool) {
	var record layerRecord
	data, err := os.ReadFile(c.recordPath(diffID))
	if err != nil || json.Unmarshal(data, &record) != nil || record.DiffID != diffID || record.Codec != codec {
		return record, false
	}
	info, err := os.Stat(c.blobPath(record.Digest))
	return record, err == nil && info.Size() == record.Size
}

// fill compresses a layer into the cache. Files appear under their final names only when they are complete, so that several
// processes can share a cache.
func (c *layerCache) fill(ctx context.Context, diffID Digest, open func() (io.ReadCloser, error)) (record layerRecord, err error) {
	r, err := open()
	if err != nil {
		return record, err
	}
	defer func() { _ = r.Close() }()
	if c.dir == "" {
		return c.fillScratch(ctx, diffID, r)
	}
	if err = os.MkdirAll(c.codecDir(), 0o755); err != nil {
		return record, err
	}
	tmp, err := os.CreateTemp(c.codecDir(), "partial-*")
	if err != nil {
		return record, err
	}
	if record, err = compressTo(ctx, tmp, diffID, r); err != nil {
		return record, errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
	}
	if err := errors.Join(tmp.Close(), os.Rename(tmp.Name(), c.blobPath(record.Digest))); err != nil {
		return record, errors.Join(err, os.Remove(tmp.Name()))
	}
	return record, c.save(record)
}

// fillScratch compresses a layer into a file without a name.
func (c *layerCache) fillScratch(ctx context.Context, diffID Digest, r io.Reader) (layerRecord, error) {
	tmp, err := durable.NewScratch(c.work)
	if err != nil {
		return layerRecord{}, err
	}
	record, err := compressTo(ctx, tmp, diffID, r)
	if err != nil {
		return record, errors.Join(err, tmp.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files[record.Digest] != nil { // two layers that compress to the same bytes
		return record, tmp.Close()
	}
	if c.files == nil {
		c.files = map[Digest]*durable.Scratch{}
	}
	c.files[record.Digest] = tmp
	return record, nil
}

// compressTo writes a layer, compressed, to w; its digest must be diffID.
func compressTo(ctx context.Context, w io.Writer, diffID Digest, r io.Reader) (record layerRecord, err error) {
	sum := sha256.New()
	size := &countingWriter{}
	plain := sha256.New()
	if err := compressLayer(io.MultiWriter(w, sum, size), io.TeeReader(contextReader{ctx, r}, plain)); err != nil {
		return record, err
	}
	if got := hex.EncodeToString(plain.Sum(nil)); got != diffID.Hex {
		return record, report.Errorf(report.Corrupt, "layer %s: its bytes have the digest sha256:%s", diffID, got)
	}
	return layerRecord{DiffID: diffID, Codec: codec, Digest: Digest{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}, Size: size.n}, nil
}

// save writes the record, after its blob.
func (c *layerCache) save(record layerRecord) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(c.codecDir(), "partial-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(tmp, bytes.NewReader(data))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return os.Rename(tmp.Name(), c.recordPath(record.DiffID))
}

// blob is a layer in the cache.
func (c *layerCache) blob(record layerRecord) Blob {
	d := Descriptor{MediaType: types.DockerLayer, Digest: record.Digest, Size: record.Size}
	if c.dir == "" {
		return c.scratchBlob(d)
	}
	return Blob{Descriptor: d, Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		f, err := os.Open(c.blobPath(record.Digest))
		if err != nil {
			return nil, err
		}
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return cachedLayer{f}, nil
	}}
}

// scratchBlob is a layer in a file without a name. Its space is given back when it is released.
func (c *layerCache) scratchBlob(d Descriptor) Blob {
	file := func() *durable.Scratch {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.files[d.Digest]
	}
	return Blob{
		Descriptor: d,
		Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			f := file()
			if f == nil {
				return nil, report.Errorf(report.Failure, "layer %s was released", d.Digest)
			}
			return io.NopCloser(io.NewSectionReader(f, offset, d.Size-offset)), nil
		},
		Release: func() {
			if f := file(); f != nil {
				_ = f.Close() // a temporary file that was read
			}
		},
	}
}

// cachedLayer is a blob of the cache. A damaged one is removed, so that the next run makes it again.
type cachedLayer struct{ *os.File }

// reject implements [rejecter].
func (l cachedLayer) reject(err error) error {
	return report.Errorf(report.Corrupt, "cached layer %s: %w", l.Name(), errors.Join(err, os.Remove(l.Name()))).
		WithHint("run the command again; the damaged file was removed from the cache")
}

// compressLayer writes r compressed with the pinned codec.
func compressLayer(w io.Writer, r io.Reader) error {
	z, err := pgzip.NewWriterLevel(w, 6)
	if err != nil {
		return err
	}
	if err = z.SetConcurrency(codecBlock, codecBlocks); err != nil {
		return err
	}
	_, err = io.Copy(z, r)
	return errors.Join(err, z.Close())
}

type countingWriter struct{ n int64 }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
