package oci

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"time"
)

// Internals for the tests of this package.

// SetWait replaces the pause between attempts.
func (r *Resolver) SetWait(wait func(context.Context, time.Duration) error) { r.wait = wait }

// SetIdle replaces the time after which a silent connection is closed.
func (r *Resolver) SetIdle(idle time.Duration) { r.idle = idle }

// SetWait replaces the pause between attempts.
func (o *PushOptions) SetWait(wait func(context.Context, time.Duration) error) { o.wait = wait }

// SetIdle replaces the time after which a silent connection is closed.
func (o *PushOptions) SetIdle(idle time.Duration) { o.idle = idle }

// IndexTar indexes a tar file in memory.
func IndexTar(ctx context.Context, data []byte) (fs.FS, error) {
	return indexTar(ctx, bytes.NewReader(data), int64(len(data)))
}

// IndexTarAt indexes a tar file.
func IndexTarAt(ctx context.Context, r io.ReaderAt, size int64) (fs.FS, error) {
	return indexTar(ctx, r, size)
}

// ParseManifest checks a manifest and returns its media type.
func ParseManifest(data []byte) (string, error) {
	doc, err := parseManifest(data, "")
	if err != nil {
		return "", err
	}
	return string(doc.MediaType), nil
}

// ParseSource returns kind, path and name of a source.
func ParseSource(s string) ([3]string, error) {
	src, err := parseSource(s)
	return [3]string{src.kind, src.path, src.ref}, err
}

// CompressLayer compresses as layers are.
var CompressLayer = compressLayer

// Codec is the codec of CompressLayer.
const Codec = codec

// NginxString quotes a foreign string.
var NginxString = nginxString
