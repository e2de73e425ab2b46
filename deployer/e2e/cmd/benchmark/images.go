//go:build linux

package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// imageSet is a number of images in an OCI layout. Layers are gzip streams of random bytes, which are as large as what
// they hold.
type imageSet struct {
	dir     string // of the project; the layout is in images
	options layerOptions
	payload int64 // bytes of distinct layers
	names   []string
	layers  map[string]int64  // of the first image, by digest
	digests map[string]string // of the manifest, by name
}

// layerOptions say how layers are made.
type layerOptions struct {
	largest int64 // bytes
	holes   bool  // a layer takes no place on a disk
}

type object = map[string]any

// makeImages writes a project with images of four layers each, one of which all share.
func makeImages(dir string, payload int64, options layerOptions) (*imageSet, error) {
	set := &imageSet{dir: dir, options: options, layers: map[string]int64{}, digests: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(dir, "images", "blobs", "sha256"), 0o755); err != nil {
		return nil, err
	}
	random := rand.NewChaCha8([32]byte{1})
	layer := func(size int64) (object, error) { return set.addLayer(random, size) }
	shared, err := layer(min(payload/8, options.largest))
	if err != nil {
		return nil, err
	}
	var index []object
	for set.payload < payload {
		layers := []object{shared}
		for range 3 {
			size := min(options.largest, payload-set.payload)
			if size <= 0 {
				break
			}
			l, err := layer(size)
			if err != nil {
				return nil, err
			}
			layers = append(layers, l)
		}
		entry, err := set.addImage(fmt.Sprintf("image-%d", len(set.names)), layers)
		if err != nil {
			return nil, err
		}
		index = append(index, entry)
	}
	return set, set.finish(index)
}

func (s *imageSet) blob(name string) string {
	return filepath.Join(s.dir, "images", "blobs", "sha256", name)
}

func (s *imageSet) addLayer(random io.Reader, size int64) (object, error) {
	f, err := os.Create(s.blob("layer"))
	if err != nil {
		return nil, err
	}
	mediaType := "application/vnd.oci.image.layer.v1.tar+gzip"
	if s.options.holes {
		mediaType, err = "application/vnd.oci.image.layer.v1.tar+zstd", writeHoles(f, s.payload, size)
	} else {
		err = writeRandom(f, random, size)
	}
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	size, err = io.Copy(h, io.NewSectionReader(f, 0, math.MaxInt64))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	digest := hex.EncodeToString(h.Sum(nil))
	s.payload += size
	if len(s.names) == 0 {
		s.layers[digest] = size
	}
	return object{"mediaType": mediaType, "digest": "sha256:" + digest, "size": size}, os.Rename(f.Name(), s.blob(digest))
}

func writeRandom(w io.Writer, random io.Reader, size int64) error {
	packed, err := gzip.NewWriterLevel(w, gzip.NoCompression)
	if err == nil {
		_, err = io.CopyN(packed, random, size)
	}
	if err != nil {
		return err
	}
	return packed.Close()
}

// writeHoles writes a layer in zstandard: an empty tar archive, and frames that readers skip. These are holes, except their headers and a
// number, which makes the layer differ from others.
func writeHoles(f *os.File, number, size int64) error {
	const (
		empty  = "\x28\xb5\x2f\xfd\x60\x00\x03\x03\x20\x00\x00" // 1024 zeros
		header = "\x50\x2a\x4d\x18"                             // and the number of bytes that follow
	)
	if _, err := f.WriteString(empty); err != nil {
		return err
	}
	at := int64(len(empty))
	for at < size {
		length := max(16, min(1<<31, size-at))
		frame := binary.LittleEndian.AppendUint32([]byte(header), uint32(length)-8)
		if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(frame, uint64(number)), at); err != nil {
			return err
		}
		at += length
	}
	return f.Truncate(at)
}

func (s *imageSet) addDocument(mediaType string, value any) (object, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	return object{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}, os.WriteFile(s.blob(digest), data, 0o644)
}

func (s *imageSet) addImage(name string, layers []object) (object, error) {
	var ids []string
	for _, l := range layers {
		ids = append(ids, l["digest"].(string))
	}
	config, err := s.addDocument("application/vnd.oci.image.config.v1+json", object{
		"os": "linux", "architecture": "amd64", "created": "2026-01-01T00:00:00Z", "rootfs": object{"type": "layers", "diff_ids": ids},
	})
	if err != nil {
		return nil, err
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	entry, err := s.addDocument(manifestType, object{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": layers})
	if err != nil {
		return nil, err
	}
	s.names = append(s.names, name)
	s.digests[name] = entry["digest"].(string)
	entry["annotations"] = object{"org.opencontainers.image.ref.name": name}
	return entry, nil
}

func (s *imageSet) finish(index []object) error {
	data, err := json.Marshal(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": index})
	if err != nil {
		return err
	}
	images := filepath.Join(s.dir, "images")
	if err := os.WriteFile(filepath.Join(images, "index.json"), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(images, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

// writeProject writes a solution.yaml that takes every image from a source.
func (s *imageSet) writeProject(dir string, source func(name string) string) error {
	var b strings.Builder
	b.WriteString("apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: benchmark}\nspec:\n  version: 1.0.0\n  images:\n")
	for _, name := range s.names {
		fmt.Fprintf(&b, "    - {name: %s, source: %q}\n", name, source(name))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "solution.yaml"), []byte(b.String()), 0o644)
}

// serve is a registry of the images on the loopback interface, with sendfile and Range.
func (s *imageSet) serve() (host string, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(s.answer)}
	go server.Serve(listener) //nolint:errcheck // ends with Close
	return listener.Addr().String(), server.Close, nil
}

func (s *imageSet) answer(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 4 {
		return // the ping
	}
	name, kind, reference := parts[1], parts[2], parts[3]
	if kind == "manifests" {
		if !strings.HasPrefix(reference, "sha256:") {
			reference = s.digests[name]
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", reference)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	http.ServeFile(w, r, s.blob(strings.TrimPrefix(reference, "sha256:")))
}
