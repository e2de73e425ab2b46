package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Artifact is something in a registry that does not run: files by their digests, and what is known about them.
type Artifact struct {
	Type        string            // of the artifact
	Config      *Blob             // nil: the empty one of the OCI image specification
	Layers      []Blob            // in their order
	Annotations map[string]string // of the manifest
}

// manifest returns the manifest of the artifact, about another one unless subject is nil, and all blobs.
func (a *Artifact) manifest(subject *Descriptor) (Manifest, []Blob, error) {
	config := a.Config
	if config == nil {
		empty := emptyConfig()
		config = &empty
	}
	m := v1.Manifest{ArtifactType: a.Type, Config: config.Descriptor, Layers: []Descriptor{}, Subject: subject, Annotations: a.Annotations}
	for _, layer := range a.Layers {
		m.Layers = append(m.Layers, layer.Descriptor)
	}
	encoded, err := encodeManifest(m, a.Type)
	return encoded, append([]Blob{*config}, a.Layers...), err
}

// emptyConfig is the empty descriptor of the OCI image specification.
func emptyConfig() Blob { return BytesBlob(types.OCIEmptyJSON, []byte("{}")) }

// encodeManifest writes the manifest of an artifact of a type.
func encodeManifest(m v1.Manifest, artifactType string) (Manifest, error) {
	m.SchemaVersion, m.MediaType = 2, types.OCIManifestSchema1
	data, err := encodeJSON(m)
	d := blobDescriptor(types.OCIManifestSchema1, data)
	d.ArtifactType = artifactType
	return Manifest{Descriptor: d, Data: data}, err
}

// ArtifactImage returns an artifact, and others that are about it, as an image that can be pushed: the same manifests for the same content.
func ArtifactImage(a Artifact, about ...Artifact) (*Image, error) {
	root, blobs, err := a.manifest(nil)
	if err != nil {
		return nil, err
	}
	image := &Image{Root: root.Descriptor, Manifests: []Manifest{root}}
	subject := Descriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}
	for _, other := range about {
		m, more, err := other.manifest(&subject)
		if err != nil {
			return nil, err
		}
		image.Manifests, blobs = append(image.Manifests, m), append(blobs, more...)
	}
	seen := map[Digest]bool{}
	for _, b := range blobs {
		if err := checkDescriptor(b.Descriptor); err != nil {
			return nil, err
		}
		if !seen[b.Digest] {
			seen[b.Digest] = true
			image.Blobs = append(image.Blobs, b)
		}
	}
	return image, nil
}

// Attach returns the image with an artifact in addition that refers to it.
func Attach(image *Image, a Artifact) (*Image, error) {
	subject := Descriptor{MediaType: image.Root.MediaType, Digest: image.Root.Digest, Size: image.Root.Size}
	m, blobs, err := a.manifest(&subject)
	if err != nil {
		return nil, err
	}
	with := *image
	with.Manifests = slices.Clone(image.Manifests)
	with.Blobs = slices.Clone(image.Blobs)
	if !slices.ContainsFunc(with.Manifests, func(have Manifest) bool { return have.Digest == m.Digest }) {
		with.Manifests = append(with.Manifests, m)
	}
	for _, b := range blobs {
		if !slices.ContainsFunc(with.Blobs, func(have Blob) bool { return have.Digest == b.Digest }) {
			with.Blobs = append(with.Blobs, b)
		}
	}
	return &with, nil
}

// BytesBlob is a blob that is held in memory.
func BytesBlob(mediaType types.MediaType, data []byte) Blob {
	return bytesBlob(blobDescriptor(mediaType, data), data)
}

// ReadBlob reads a blob of at most a number of bytes, and compares its digest.
func ReadBlob(ctx context.Context, b Blob, most int64) ([]byte, error) {
	if b.Size > most {
		return nil, report.Errorf(report.Invalid, "blob %s has %d bytes, the limit is %d", b.Digest, b.Size, most)
	}
	return readBlob(ctx, b)
}

// FoundArtifact is an artifact of a registry.
type FoundArtifact struct {
	Artifact
	Digest Digest // of its manifest
}

// Artifact finds the artifact that a reference names in a registry, HOST[:PORT]/PATH with a tag or a digest. Its blobs are streamed later.
func (r *Resolver) Artifact(ctx context.Context, reference string) (*FoundArtifact, error) {
	content, ref, err := r.repository(reference)
	if err != nil {
		return nil, err
	}
	root, err := content.root(ctx, ref)
	if err != nil {
		return nil, err
	}
	return content.artifact(ctx, root)
}

// maxReferrer bounds the manifest of an artifact with a few annotations.
const maxReferrer = 64 << 10

// Referrers finds the artifacts of a type that are about another one: those that the registry lists by its API, else those under the tag
// that the specification has for this. Their number and size are bounded. Anyone who can write there can add some: one that is damaged or not
// valid is left out, and hides no other one. A list beyond the bounds is an error, since its rest could have the one that is needed: an owner
// of the repository has to remove what others have added.
func (r *Resolver) Referrers(ctx context.Context, reference string, subject Digest, artifactType string) ([]FoundArtifact, error) {
	content, _, err := r.repository(reference)
	if err != nil {
		return nil, err
	}
	list, err := content.referrers(ctx, subject, artifactType)
	if err != nil {
		return nil, err
	}
	var found []FoundArtifact
	for _, d := range list {
		if d.Size > maxReferrer {
			continue
		}
		a, err := content.referrer(ctx, d)
		switch code := report.CodeOf(err); {
		case code == report.Invalid || code == report.Corrupt:
		case err != nil:
			return nil, inManifest(d.Digest, err)
		case a.Type == artifactType:
			found = append(found, *a)
		}
	}
	return found, nil
}

func (c *remoteContent) referrer(ctx context.Context, d Descriptor) (*FoundArtifact, error) {
	data, err := readManifest(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return c.artifact(ctx, Manifest{Descriptor: d, Data: data})
}

func (r *Resolver) repository(reference string) (*remoteContent, name.Reference, error) {
	ref, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return nil, nil, report.Errorf(report.Usage, "%q is not a reference to a registry", Redact("//" + reference)[2:]).
			WithHint("write HOST[:PORT]/PATH:TAG or HOST[:PORT]/PATH@sha256:…")
	}
	content, err := r.content(ref.Context())
	return content, ref, err
}

func (r *Resolver) content(repo name.Repository) (*remoteContent, error) {
	endpoints, err := r.endpoints(repo)
	return &remoteContent{r: r, endpoints: endpoints}, err
}

// artifact reads a manifest that was verified.
func (c *remoteContent) artifact(ctx context.Context, m Manifest) (*FoundArtifact, error) {
	doc, err := parseManifest(m.Data, m.MediaType)
	if err == nil && (doc.MediaType != types.OCIManifestSchema1 || doc.Config == nil) {
		err = report.Errorf(report.Invalid, "it is not an artifact")
	}
	if err != nil {
		return nil, inManifest(m.Digest, err)
	}
	found := &FoundArtifact{Artifact: Artifact{Type: doc.artifactType(), Annotations: doc.Annotations}, Digest: m.Digest}
	for i, d := range doc.blobs() {
		b, err := c.blob(ctx, d)
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		if i == 0 {
			found.Config = &b
		} else {
			found.Layers = append(found.Layers, b)
		}
	}
	return found, nil
}

// referrers lists the manifests that are about a subject and can be artifacts of some types. A registry without such lists has none.
func (c *remoteContent) referrers(ctx context.Context, subject Digest, artifactTypes ...string) ([]Descriptor, error) {
	query := ""
	if len(artifactTypes) == 1 { // the registry need not list the others
		query = "artifactType=" + url.QueryEscape(artifactTypes[0])
	}
	list, err := c.readReferrers(ctx, "referrers/"+subject.String(), query)
	if hasNoReferrers(err) {
		list, err = c.readReferrers(ctx, "manifests/"+referrersTag(subject), "")
	}
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return slices.DeleteFunc(list, func(d Descriptor) bool {
		isOpen := d.ArtifactType == "" || d.ArtifactType == string(types.OCIEmptyJSON) // its manifest may have more
		return !isOpen && !slices.Contains(artifactTypes, d.ArtifactType)
	}), nil
}

// hasNoReferrers reports that a registry does not have the API for referrers. Only 404 is in the specification; registries and proxies from
// before it give other answers, also to users who can read the repository.
func hasNoReferrers(err error) bool {
	failure, ok := errors.AsType[*requestError](err)
	return errors.Is(err, errNotReferrers) || ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
		http.StatusNotImplemented,
	}, failure.status)
}

// isMissing reports that a registry does not have something.
func isMissing(err error) bool {
	failure, ok := errors.AsType[*requestError](err)
	return ok && failure.status == http.StatusNotFound
}

// errNotReferrers is the failure of a registry that answers the request for referrers with something else, such as a page for browsers.
var errNotReferrers = errors.New("the answer is not a list of referrers")

// readReferrers reads all pages of a list of referrers.
func (c *remoteContent) readReferrers(ctx context.Context, what, query string) (list []Descriptor, err error) {
	err = c.each(ctx, func(e *endpoint) error {
		list = nil
		next, failure := query, error(nil)
		left := int64(8 * maxDocument)
		for pages := 1; pages == 1 || next != ""; pages++ {
			if list, next, failure = e.readReferrers(ctx, list, what, next, &left); failure != nil {
				return failure
			}
			if left < 0 {
				return report.Errorf(report.Invalid, "%s: %s has more than %d MiB", e, what, 8*maxDocument>>20)
			}
			if len(list) > maxManifests || pages > maxManifests {
				return report.Errorf(report.Invalid, "%s: %s has more than %d entries, or pages", e, what, maxManifests)
			}
		}
		return nil
	})
	return list, err
}

// readReferrers appends a page of a list of referrers, and returns the query of the next page; empty after the last one. Its bytes are taken from
// those that are left.
func (e *endpoint) readReferrers(ctx context.Context, list []Descriptor, what, query string, left *int64) (longer []Descriptor, next string, err error) {
	address := strings.TrimSuffix(what+"?"+query, "?")
	resp, err := e.request(ctx, http.MethodGet, address, http.Header{"Accept": {string(types.OCIImageIndex)}})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as needed
	if mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); mediaType != string(types.OCIImageIndex) {
		return nil, "", e.failure(what, errNotReferrers, resp)
	}
	var page struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err == nil {
		err = json.Unmarshal(data, &page)
	}
	if err == nil {
		next, err = nextPage(resp, what)
	}
	if err != nil {
		return nil, "", report.Errorf(report.Invalid, "%s: %s cannot be read: %w", e, what, err)
	}
	*left -= int64(len(data))
	for _, entry := range page.Manifests {
		var d Descriptor
		if json.Unmarshal(entry, &d) == nil && checkDescriptor(d) == nil { // others have a digest that is not supported
			list = append(list, Descriptor{MediaType: d.MediaType, ArtifactType: d.ArtifactType, Digest: d.Digest, Size: d.Size})
		}
	}
	return list, next, nil
}

// nextPage returns the query of the page that follows an answer; empty without one. The page is of the same list: where else the registry sends
// its clients does not matter.
func nextPage(resp *http.Response, what string) (query string, err error) {
	for _, link := range resp.Header.Values("Link") {
		target, parameters, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if !ok || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		address, err := url.Parse(target)
		if err != nil || !strings.HasSuffix(address.Path, "/"+what) || address.RawQuery == "" {
			return "", fmt.Errorf("the address of its next page, %.100q, is another one", target)
		}
		return address.RawQuery, nil
	}
	return "", nil
}

// parseReferrers reads a list of referrers.
func parseReferrers(r io.Reader) (*referrers, error) {
	list := newReferrers()
	data, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err == nil {
		err = json.Unmarshal(data, list)
	}
	if err == nil && len(list.Manifests) > maxManifests {
		err = fmt.Errorf("it has more than %d entries", maxManifests)
	}
	for _, d := range list.Manifests {
		err = cmp.Or(err, checkDescriptor(d))
	}
	return list, err
}
