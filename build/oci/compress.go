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

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/pgzip"

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

// layerCache holds compressed layers by the digest of their uncompressed form (diff ID).
type layerCache struct {
	dir     string
	sink    report.Sink
	slots   chan struct{} // one is taken by each compression under way
	records onces[Digest, layerRecord]
}

// newLayerCache returns a cache that keeps about as many processors busy as there are jobs.
func newLayerCache(dir string, jobs int, sink report.Sink) *layerCache {
	layers := min((jobs+codecBlocks-1)/codecBlocks, maxCompressing)
	return &layerCache{dir: dir, sink: sink, slots: make(chan struct{}, layers)}
}

// layerRecord says what a layer became; the blob lies beside the record, under its digest.
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
		if record, ok := c.find(diffID); ok {
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
	if err = os.MkdirAll(c.codecDir(), 0o755); err != nil {
		return record, err
	}
	tmp, err := os.CreateTemp(c.codecDir(), "partial-*")
	if err != nil {
		return record, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	sum := sha256.New()
	size := &countingWriter{}
	plain := sha256.New()
	if err := compressLayer(io.MultiWriter(tmp, sum, size), io.TeeReader(contextReader{ctx, r}, plain)); err != nil {
		return record, err
	}
	if got := hex.EncodeToString(plain.Sum(nil)); got != diffID.Hex {
		return record, report.Errorf(report.Corrupt, "layer %s: its bytes have the digest sha256:%s", diffID, got)
	}
	record = layerRecord{DiffID: diffID, Codec: codec, Digest: Digest{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}, Size: size.n}
	if err := errors.Join(tmp.Close(), os.Rename(tmp.Name(), c.blobPath(record.Digest))); err != nil {
		return record, err
	}
	return record, c.save(record)
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

// cachedLayer is a blob of the cache. A damaged one is removed, so that the next run makes it anew.
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
