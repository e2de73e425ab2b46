// Package layouttest makes small archives for tests.
package layouttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
)

// Archive is an archive of a version of the Solution demo with these blobs, and with small files beside every second one.
func Archive(tb testing.TB, version string, blobs ...[]byte) []byte {
	tb.Helper()
	data, err := Make(version, blobs...)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Make is [Archive] without a test.
func Make(version string, blobs ...[]byte) ([]byte, error) { return MakeWith(nil, version, blobs...) }

// MakeWith is [Make] with more files, by their names.
func MakeWith(more map[string][]byte, version string, blobs ...[]byte) ([]byte, error) {
	content := map[string][]byte{}
	var files []iso.File
	add := func(name, key string, data []byte) {
		if _, twice := content[name]; twice {
			return
		}
		content[name] = data
		files = append(files, iso.File{Path: name, Size: int64(len(data)), Mode: 0o444, Key: key, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}})
	}
	add("manifest.yaml", "", fmt.Appendf(nil, "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: demo}\nspec: {version: %s}\n", version))
	for i, blob := range blobs {
		add("blobs/sha256/"+Hex(blob), Hex(blob), blob)
		if i%2 == 0 {
			add(fmt.Sprintf("ui/%d.yaml", i), "", blob[:min(len(blob), 3000)])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		add(name, "", more[name])
	}
	image, err := iso.Layout(files, iso.Options{VolumeID: "demo " + version, ModTime: time.Unix(1e9, 0)})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = image.WriteTo(&b)
	return b.Bytes(), err
}

// Hex is the digest of data, in hexadecimal.
func Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Noise is a blob that cannot be compressed.
func Noise(r *rand.Rand, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
