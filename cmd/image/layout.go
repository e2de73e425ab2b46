package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// The media types of the OCI image specification. Every runtime takes layers with gzip; zstd would save a fifth.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

const (
	name = schema.ProgramImage // of the program in the image, too
	user = "65532:65532"
)

// program is an executable that was compiled for a platform.
type program struct{ os, architecture, file string }

type object = map[string]any

// layout is an OCI image layout that is being written.
type layout struct {
	dir     string
	created time.Time
}

// write makes a layout of an image with one manifest for each program. The directory must not exist.
func write(dir string, created time.Time, programs []program) error {
	l := layout{dir, created}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	var manifests []object
	for _, p := range programs {
		manifest, err := l.image(p)
		if err != nil {
			return fmt.Errorf("image of %s: %w", p.file, err)
		}
		manifest["platform"] = object{"os": p.os, "architecture": p.architecture}
		manifests = append(manifests, manifest)
	}
	image, err := l.document(indexType, object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	if err != nil {
		return err
	}
	image["annotations"] = object{"org.opencontainers.image.ref.name": name}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": indexType, "manifests": []object{image}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "index.json"), index, 0o644),
		os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644))
}

// image writes the image of one program, and returns the descriptor of its manifest.
func (l layout) image(p program) (object, error) {
	layer, diffID, err := l.layer(p)
	if err != nil {
		return nil, err
	}
	config, err := l.document(configType, object{
		"os": p.os, "architecture": p.architecture, "created": l.created,
		"config": object{"User": user, "Entrypoint": []string{"/" + name}, "Env": []string{"PATH=/"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{diffID}},
	})
	if err != nil {
		return nil, err
	}
	return l.document(manifestType, object{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []object{layer}})
}

// layer writes the layer with the program, and returns its descriptor and the digest of what is in it.
func (l layout) layer(p program) (descriptor object, diffID string, err error) {
	data, err := os.ReadFile(p.file)
	if err != nil {
		return nil, "", err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	plain := sha256.New()
	w := tar.NewWriter(io.MultiWriter(z, plain))
	if err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(data)), ModTime: l.created}); err != nil {
		return nil, "", err
	}
	if _, err = w.Write(data); err != nil {
		return nil, "", err
	}
	if err = errors.Join(w.Close(), z.Close()); err != nil {
		return nil, "", err
	}
	descriptor, err = l.blob(layerType, packed.Bytes())
	return descriptor, "sha256:" + hex.EncodeToString(plain.Sum(nil)), err
}

// document writes a document, and returns its descriptor.
func (l layout) document(mediaType string, value any) (object, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return l.blob(mediaType, data)
}

func (l layout) blob(mediaType string, data []byte) (object, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	err := os.WriteFile(filepath.Join(l.dir, "blobs", "sha256", digest), data, 0o644)
	return object{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}, err
}
