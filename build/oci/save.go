package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Find returns the image called "name:tag", or "name" when it has one tag, with the given platforms of its index; with
// all when there are none.
func (s *Store) Find(ctx context.Context, name string, platforms []schema.Platform) (*Image, error) {
	found := s.named(name)
	if len(found) != 1 {
		return nil, report.Errorf(report.NotFound, "%w", notOne(len(found), name, s.names()))
	}
	image, err := s.choose(ctx, found[0], platforms)
	if err != nil {
		return nil, inContext("image "+found[0].Ref.String(), err)
	}
	image.Ref = found[0].Ref
	return image, nil
}

// Save writes an image, byte for byte, where others can read it: "oci:DIR[:REF]" makes an OCI image layout,
// "docker-archive:FILE[:REF]" what `docker load` reads. Without REF the image keeps its name. Every digest is verified.
// The directory or file appears when it is complete; one that is there is not replaced.
func Save(ctx context.Context, image *Image, target string) error {
	to, err := parseSource(target)
	if err != nil || to.kind != kindLayout && to.kind != kindDockerArchive {
		return report.Errorf(report.Usage, "images cannot be written to %q", target).
			WithHint("write oci:DIR or docker-archive:FILE")
	}
	path, ref := filepath.Clean(to.path), cmp.Or(to.ref, image.Ref.String())
	if err = isNew(path); err != nil {
		return err
	}
	if _, err = os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return report.Errorf(report.NotFound, "write %s: %w", path, err).WithHint("make the directory first")
	}
	if to.kind == kindLayout {
		err = saveLayout(ctx, image, ref, path)
	} else {
		err = saveDockerArchive(ctx, image, ref, path)
	}
	return inContext("image "+image.Ref.String(), err)
}

func isNew(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(report.Errorf(report.Usage, "%s exists", path).WithHint("name a new file or directory")))
	}
	return nil
}

// saveLayout writes the image as an OCI image layout into a new directory.
func saveLayout(ctx context.Context, image *Image, ref, path string) (err error) {
	lock, err := durable.TryCreate(path) // another one that writes the same directory has it until it is finished
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Discard()) }()
	if err = isNew(path); err != nil {
		return err
	}
	partial := lock.Name() + ".d"
	if err = os.RemoveAll(partial); err != nil { // of a killed process
		return err
	}
	if err = writeLayout(ctx, image, ref, partial); err == nil {
		err = durable.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

func writeLayout(ctx context.Context, image *Image, ref, dir string) error {
	l := &arrangement{known: map[string]bool{}, blobs: map[Digest]int{}}
	l.addData(layoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := l.addIndex([]*Image{image}, func(*Image) (string, string) { return refName, ref }); err != nil {
		return err
	}
	for _, m := range image.Manifests {
		l.addData(blobPath(m.Digest), m.Data)
	}
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.Mkdir(dir, 0o755); err != nil { // not those above it
		return err
	}
	if err := durable.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	for _, entry := range l.entries {
		if err := writeContent(ctx, filepath.Join(dir, filepath.FromSlash(entry.Path)), bytes.NewReader(entry.Data)); err != nil {
			return err
		}
	}
	for _, blob := range image.Blobs {
		if err := copyBlob(ctx, blob, func(r io.Reader) error { return writeContent(ctx, filepath.Join(blobs, blob.Digest.Hex), r) }); err != nil {
			return err
		}
	}
	return errors.Join(durable.SyncDirectory(blobs), durable.SyncDirectory(dir))
}

func writeContent(ctx context.Context, name string, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, contextReader{ctx, r})
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copyBlob gives the content of a blob to write, verified.
func copyBlob(ctx context.Context, blob Blob, write func(io.Reader) error) error {
	r, err := blob.Open(ctx, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(VerifyReader(r, blob.Descriptor)), r.Close())
}

// saveDockerArchive writes the image as `docker save` does, its layers compressed as they are.
func saveDockerArchive(ctx context.Context, image *Image, ref, path string) error {
	doc, err := image.forDocker()
	if err != nil {
		return err
	}
	f, err := durable.TryCreate(path)
	if err != nil {
		return err
	}
	if err := writeDockerArchive(ctx, f, image, doc, ref); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.PublishNew(0o644)
}

func writeDockerArchive(ctx context.Context, f io.Writer, image *Image, doc *document, ref string) error {
	entry := dockerImage{Config: doc.Config.Digest.Hex + ".json", RepoTags: []string{ref}, Layers: []string{}}
	names := map[Digest]string{doc.Config.Digest: entry.Config}
	for _, layer := range doc.Layers {
		names[layer.Digest] = layer.Digest.Hex + ".tar.gz"
		entry.Layers = append(entry.Layers, names[layer.Digest])
	}
	list, err := encodeJSON([]dockerImage{entry})
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	w := tar.NewWriter(buffered)
	for _, blob := range image.Blobs {
		if names[blob.Digest] == "" {
			continue // of another platform, or of a manifest that refers to the image
		}
		if err := copyBlob(ctx, blob, func(r io.Reader) error { return addMember(w, names[blob.Digest], blob.Size, contextReader{ctx, r}) }); err != nil {
			return err
		}
	}
	if err := addMember(w, manifestFile, int64(len(list)), bytes.NewReader(list)); err != nil {
		return err
	}
	return errors.Join(w.Close(), buffered.Flush())
}

func addMember(w *tar.Writer, name string, size int64, r io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

// forDocker returns the one manifest of the image that Docker can run: its archives hold no index.
func (i *Image) forDocker() (*document, error) {
	var runnable []*document
	var platforms []string
	for _, m := range i.Manifests {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		if p := platformOf(m.Descriptor); doc.MediaType.IsImage() && doc.Config.MediaType.IsConfig() && doc.Subject == nil && p != (schema.Platform{}) {
			runnable, platforms = append(runnable, doc), append(platforms, p.String())
		}
	}
	switch len(runnable) {
	case 1:
		return runnable[0], nil
	case 0:
		return nil, report.Errorf(report.Usage, "it is not an image that Docker runs").WithHint("write it to oci:DIR")
	}
	failure := report.Errorf(report.Usage, "it is for %s; an archive of Docker holds one platform", strings.Join(platforms, ", "))
	if slices.Sort(platforms); len(slices.Compact(slices.Clone(platforms))) < len(platforms) {
		return nil, failure.WithHint("a platform occurs twice, so that none can be chosen: write it to oci:DIR")
	}
	return nil, failure.WithHint("choose one: --platform %s", platforms[0])
}
