//go:build linux

package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	payload int64  // bytes of distinct layers
	names   []string
	digests map[string]string // of the manifest, by name
}

type object = map[string]any

// makeImages writes a project with images of four layers each, of 32 MiB at most, one of which all share.
func makeImages(dir string, payload int64) (*imageSet, error) {
	set := &imageSet{dir: dir, digests: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(dir, "images", "blobs", "sha256"), 0o755); err != nil {
		return nil, err
	}
	random := rand.NewChaCha8([32]byte{1})
	layer := func(size int64) (object, error) { return set.addLayer(random, size) }
	shared, err := layer(min(payload/8, 32<<20))
	if err != nil {
		return nil, err
	}
	var index []object
	for set.payload < payload {
		layers := []object{shared}
		for range 3 {
			size := min(32<<20, payload-set.payload)
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
	h := sha256.New()
	packed, err := gzip.NewWriterLevel(io.MultiWriter(f, h), gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	if _, err = io.CopyN(packed, random, size); err != nil {
		return nil, err
	}
	if err = errors.Join(packed.Close(), f.Sync()); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	digest := hex.EncodeToString(h.Sum(nil))
	s.payload += info.Size()
	return object{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + digest, "size": info.Size()},
		os.Rename(f.Name(), s.blob(digest))
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
