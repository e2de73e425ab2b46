package oci_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestOpenUncompressed reads what container runtimes unpack, compares digests, and ends with its context.
func TestOpenUncompressed(t *testing.T) {
	plain := bytes.Repeat([]byte("layer"), 100_000)
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	layer := func(data []byte) oci.Blob {
		digest, size, err := v1.SHA256(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return oci.Blob{Descriptor: oci.Descriptor{Digest: digest, Size: size}, Open: func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}}
	}
	other := layer(gzipped.Bytes())
	other.Digest = layer(plain).Digest
	for name, test := range map[string]struct {
		blob    oci.Blob
		problem string
	}{
		"gzip":           {layer(gzipped.Bytes()), ""},
		"plain":          {layer(plain), ""},
		"bzip2":          {layer([]byte("BZh91AY&SY")), "container runtimes do not unpack"},
		"xz":             {layer([]byte("\xfd7zXZ\x00\x00\x04")), "compressed with xz"},
		"another digest": {other, "its bytes have the digest"},
		"cut":            {layer(gzipped.Bytes()[:gzipped.Len()/2]), "cannot be unpacked"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			r, err := test.blob.OpenUncompressed(t.Context())
			if err == nil {
				got, err = io.ReadAll(r)
				err = errors.Join(err, r.Close())
			}
			if test.problem == "" && (err != nil || !bytes.Equal(got, plain)) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if test.problem != "" && (report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := layer(gzipped.Bytes()).OpenUncompressed(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	cancel()
	if _, err = io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}
