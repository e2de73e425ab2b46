package oci

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// FileSystem is the root file system of an image for one platform.
type FileSystem struct {
	Manifest Digest
	Platform schema.Platform
	Created  time.Time // zero if the configuration has no time
	Layers   []Blob    // the lowest first
}

// FileSystems returns the root file systems of all platforms. Artifacts and attestations have none. It reads configurations and no layer.
func (i *Image) FileSystems(ctx context.Context) ([]FileSystem, error) {
	all, err := i.rootFileSystems(ctx)
	if err != nil {
		return nil, err
	}
	var list []FileSystem
	for _, root := range all {
		list = append(list, FileSystem{Manifest: root.manifest, Created: root.created, Platform: root.platform, Layers: root.blobs})
	}
	return list, nil
}

// OpenUncompressed streams the uncompressed form of a layer, whatever compression its media type claims; that of a layer in bzip2 or xz, which
// no container runtime unpacks, is an error. The end of the stream is an error
// if the compressed bytes do not have the digest of the blob. A reader takes little memory except for the window of zstandard, at most
// 128 MiB. The stream of a small blob can be long: the caller limits it.
func (b Blob) OpenUncompressed(ctx context.Context) (io.ReadCloser, error) {
	compressed, err := b.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	verified := VerifyReader(contextReader{ctx, compressed}, b.Descriptor)
	plain, err := decompressLayer(verified, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(report.Errorf(report.Corrupt, "layer %s cannot be unpacked: %w", shorten(b.Digest), err), compressed.Close())
	}
	// A few compressed bytes can be many: both sides look at the context.
	return &uncompressedBlob{Reader: contextReader{ctx, plain}, digest: b.Digest, plain: plain, verified: verified, compressed: compressed}, nil
}

type uncompressedBlob struct {
	io.Reader
	digest     Digest
	plain      io.Closer
	verified   io.Reader
	compressed io.Closer
}

func (u *uncompressedBlob) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if errors.Is(err, io.EOF) { // bytes behind the end of the compressed stream are part of the blob
		if _, failure := io.Copy(io.Discard, u.verified); failure != nil {
			err = failure
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && report.CodeOf(err) == report.Failure && !errors.Is(err, context.Canceled) {
		err = report.Errorf(report.Corrupt, "layer %s cannot be unpacked: %w", shorten(u.digest), err)
	}
	return n, err
}

func (u *uncompressedBlob) Close() error { return errors.Join(u.plain.Close(), u.compressed.Close()) }
