package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// dockerArchive is a file written by `docker save`. Docker 25 and later put an OCI layout beside their own manifest.json;
// with the containerd store it holds the blobs as they were pulled, with the older graph drivers plain tars.
type dockerArchive struct {
	layout *layout
	cache  *layerCache
}

// dockerImage is one entry of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string

	tags []string // RepoTags as full references
}

// image returns the image named ref, or the only one when ref is empty.
func (a *dockerArchive) image(ctx context.Context, ref string, platforms []schema.Platform) (*Image, error) {
	if _, err := fs.Stat(a.layout.fsys, indexFile); err == nil {
		image, err := a.layout.named(ctx, ref, platforms)
		if isIncomplete(err) {
			image, err = a.saved(ctx, ref, platforms, err)
		}
		if err != nil || !slices.ContainsFunc(image.Blobs, func(b Blob) bool { return isUncompressed(b.Descriptor) }) {
			return image, err
		}
	}
	image, err := a.legacyImage(ctx, ref)
	if err != nil {
		return nil, err
	}
	if image.Root.Platform != nil && len(platforms) > 0 {
		err = checkPlatform(platformOf(image.Root), platforms)
	}
	return image, err
}

// saved returns the image of manifest.json out of an index that names more than the file holds: with the containerd image
// store, Docker saves the index as it was pulled, and the blobs of the platform that was. A platform that is wanted and not
// there remains an error.
func (a *dockerArchive) saved(ctx context.Context, ref string, platforms []schema.Platform, missing error) (*Image, error) {
	d, origin, err := a.layout.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	entries, err := a.entries()
	if err != nil {
		return nil, missing
	}
	var configs []Digest
	for _, entry := range entries {
		if config, ok := digestInPath(entry.Config); ok {
			configs = append(configs, config)
		}
	}
	sparse := a.layout.sparse(ctx, d)
	v := sparse.withConfig(configs)
	if v == nil || slices.ContainsFunc(platforms, func(wish schema.Platform) bool { return !wish.Matches(v.platform) }) {
		return nil, missing
	}
	image, err := sparse.only(ctx, v.position, "it is the image of manifest.json, and the file lacks others of its index")
	if err == nil {
		image.Origin = origin
	}
	return image, err
}

// legacyImage makes the Docker manifest that a push of the image would have made: its configuration byte for byte, so
// that the image ID stays, and its layers, compressed when they are not.
func (a *dockerArchive) legacyImage(ctx context.Context, ref string) (*Image, error) {
	entry, err := a.find(ref)
	if err != nil {
		return nil, err
	}
	configData, err := readFile(a.layout.fsys, entry.Config)
	if err != nil {
		return nil, err
	}
	config, err := parseConfig(configData)
	if err != nil {
		return nil, err
	}
	if len(config.RootFS.DiffIDs) != len(entry.Layers) {
		return nil, report.Errorf(report.Corrupt, "manifest.json lists %d layers, the configuration of the image %d", len(entry.Layers), len(config.RootFS.DiffIDs))
	}
	layers, compressed, err := a.layers(ctx, entry.Layers, config.RootFS.DiffIDs)
	if err != nil {
		return nil, err
	}
	image, err := dockerManifest(bytesBlob(blobDescriptor(types.DockerConfigJSON, configData), configData), layers)
	if err != nil {
		return nil, err
	}
	image.Root.Platform = config.platform()
	image.Manifests[0].Platform = image.Root.Platform
	if compressed {
		image.Note = "layers were compressed: docker saved them as plain tar files"
	}
	if len(entry.RepoTags) > 0 {
		image.Origin = normalReference(entry.RepoTags[0])
	}
	return image, nil
}

// entries returns those of manifest.json. They are parsed once: a project can take each of its images from the same file.
func (a *dockerArchive) entries() ([]dockerImage, error) { return a.layout.saved.get(a.parseEntries) }

func (a *dockerArchive) parseEntries() ([]dockerImage, error) {
	data, err := readFile(a.layout.fsys, manifestFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = report.Errorf(report.Invalid, "there is neither index.json nor manifest.json in the tar file").
				WithHint("is it a file system rather than an image? write images with `docker save` or `podman save`")
		}
		return nil, err
	}
	var entries []dockerImage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, report.Errorf(report.Invalid, "manifest.json is not valid: %w", err)
	}
	for i := range entries {
		for _, tag := range entries[i].RepoTags {
			entries[i].tags = append(entries[i].tags, normalReference(tag))
		}
	}
	return entries, nil
}

// find returns the entry of manifest.json that ref names by a tag or by the image ID.
func (a *dockerArchive) find(ref string) (dockerImage, error) {
	entries, err := a.entries()
	if err != nil {
		return dockerImage{}, err
	}
	var names []string
	var found []dockerImage
	reference := normalReference(ref)
	for _, entry := range entries {
		names = append(names, entry.RepoTags...)
		if id := imageID(entry.Config); len(entry.RepoTags) == 0 && id != "" {
			names = append(names, id)
		}
		if ref == "" || slices.Contains(entry.RepoTags, ref) || reference != "" && slices.Contains(entry.tags, reference) || imageID(entry.Config) == ref {
			found = append(found, entry)
		}
	}
	if len(found) != 1 {
		return dockerImage{}, notOne(len(found), ref, names)
	}
	return found[0], nil
}

// imageID is the image ID, "sha256:…", that the path of a configuration stands for.
func imageID(config string) string {
	d, ok := digestInPath(config)
	if !ok {
		return ""
	}
	return d.String()
}

// layers returns one blob per layer, in order. It reads layers in parallel, as many as the cache allows, and each only
// once: one whose compressed form is in the cache not at all.
func (a *dockerArchive) layers(ctx context.Context, names []string, diffIDs []Digest) (blobs []Blob, compressed bool, err error) {
	blobs = make([]Blob, len(names))
	first := map[Digest]int{} // one layer may occur several times
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		if _, ok := first[diffIDs[i]]; ok {
			continue
		}
		first[diffIDs[i]] = i
		kind, err := a.compressionOf(name)
		if err != nil {
			return nil, false, errors.Join(err, group.Wait())
		}
		compressed = compressed || kind == uncompressed
		group.Go(func() (err error) {
			blobs[i], err = a.layer(ctx, name, kind, diffIDs[i])
			return inContext("layer "+name, err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	for i, diffID := range diffIDs {
		blobs[i] = blobs[first[diffID]]
	}
	return blobs, compressed, nil
}

func (a *dockerArchive) compressionOf(name string) (compression, error) {
	f, err := a.layout.fsys.Open(name)
	if err != nil {
		return uncompressed, missing(name, err)
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return uncompressed, err
	}
	return compressionOf(head[:n]), nil
}

func (a *dockerArchive) layer(ctx context.Context, name string, kind compression, diffID Digest) (Blob, error) {
	if err := checkDescriptor(Descriptor{Digest: diffID}); err != nil {
		return Blob{}, err
	}
	switch kind {
	case uncompressed:
		return a.cache.compress(ctx, diffID, name, func() (io.ReadCloser, error) { return a.layout.fsys.Open(name) })
	case gzipped:
		return a.compressedLayer(ctx, name)
	default:
		return Blob{}, report.Errorf(report.Invalid, "compressed with %s, which a Docker manifest cannot say", kind).
			WithHint("save the image as an OCI archive: `skopeo copy … oci-archive:FILE`")
	}
}

// compressedLayer is a layer that some tools put into docker archives compressed; its digest must be computed.
func (a *dockerArchive) compressedLayer(ctx context.Context, name string) (Blob, error) {
	f, err := a.layout.fsys.Open(name)
	if err != nil {
		return Blob{}, err
	}
	defer func() { _ = f.Close() }()
	digest, size, err := v1.SHA256(contextReader{ctx, f})
	if err != nil {
		return Blob{}, err
	}
	return fileBlob(a.layout.fsys, name, Descriptor{MediaType: types.DockerLayer, Digest: digest, Size: size})
}

// dockerManifest returns the image of a configuration and its layers as one Docker schema 2 manifest.
func dockerManifest(config Blob, layers []Blob) (*Image, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.DockerManifestSchema2, Config: config.Descriptor, Layers: []Descriptor{}}
	image := &Image{Blobs: []Blob{config}}
	seen := map[Digest]bool{config.Digest: true}
	for _, layer := range layers {
		d := Descriptor{MediaType: types.DockerLayer, Size: layer.Size, Digest: layer.Digest}
		m.Layers = append(m.Layers, d)
		if !seen[d.Digest] {
			seen[d.Digest] = true
			image.Blobs = append(image.Blobs, layer)
		}
	}
	data, err := encodeJSON(m)
	if err != nil {
		return nil, err
	}
	image.Root = blobDescriptor(types.DockerManifestSchema2, data)
	image.Manifests = []Manifest{{Descriptor: image.Root, Data: data}}
	return image, nil
}
