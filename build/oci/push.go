package oci

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Upload is an image and its place in a registry.
type Upload struct {
	Repository string // HOST[:PORT]/PATH; all uploads of a push have the same registry
	Image      *Image
	Tags       []string // of its root
}

// Push is a plan to upload images to a registry.
type Push struct {
	Blobs, NewBlobs    int
	Bytes, NewBytes    int64 // of the blobs, each counted once
	Mounts             int   // blobs that the registry links from one repository into another
	Manifests, NewTags int   // that are missing

	client  *registryClient
	uploads []Upload
	blobs   []*pushedBlob

	mu    sync.Mutex
	moved int64 // bytes on their way, for the progress
}

// pushedBlob is a blob and the repositories that need it.
type pushedBlob struct {
	Blob
	missing []*repository // in the order of the uploads
	source  *repository   // has it; nil: none
}

// NewPush asks the registry what it has, and plans the upload of the rest. It changes nothing. The images of earlier are
// not uploaded: their repositories may have blobs that are mounted from there.
func NewPush(ctx context.Context, uploads, earlier []Upload, o PushOptions) (*Push, error) {
	c, err := newRegistryClient(o)
	if err != nil {
		return nil, err
	}
	p := &Push{client: c, uploads: uploads}
	if err = p.open(earlier); err != nil {
		return nil, err
	}
	if err = p.ask(ctx, earlier); err != nil {
		return nil, err
	}
	for _, b := range p.blobs {
		p.Blobs++
		p.Bytes += b.Size
		switch {
		case b.source != nil:
			p.Mounts += len(b.missing)
		case len(b.missing) > 0:
			p.NewBlobs++
			p.NewBytes += b.Size
			p.Mounts += len(b.missing) - 1
		}
	}
	return p, nil
}

// open makes the repositories, which may mount from each other.
func (p *Push) open(earlier []Upload) error {
	for _, u := range slices.Concat(p.uploads, earlier) {
		t, err := p.client.repository(u.Repository)
		if err != nil {
			return err
		}
		if first, _ := p.client.repository(p.uploads[0].Repository); first.repo.RegistryStr() != t.repo.RegistryStr() {
			return report.Errorf(report.Usage, "%s and %s are repositories of two registries", first, t)
		}
	}
	return nil
}

// ask finds out which blobs are missing where.
func (p *Push) ask(ctx context.Context, earlier []Upload) error {
	byDigest := map[Digest]*pushedBlob{}
	type question struct {
		blob   *pushedBlob
		in     *repository
		needed bool
		there  bool
	}
	var questions []*question
	asked := map[string]bool{}
	add := func(u Upload, needed bool) error {
		t, err := p.client.repository(u.Repository)
		if err != nil {
			return err
		}
		for _, b := range u.Image.Blobs {
			known := byDigest[b.Digest]
			if known == nil && !needed {
				continue
			}
			if known == nil {
				known = &pushedBlob{Blob: b}
				byDigest[b.Digest] = known
				p.blobs = append(p.blobs, known)
			}
			if key := t.String() + "@" + b.Digest.String(); !asked[key] {
				asked[key] = true
				questions = append(questions, &question{blob: known, in: t, needed: needed})
			}
		}
		return nil
	}
	for _, u := range p.uploads {
		if err := add(u, true); err != nil {
			return err
		}
	}
	for _, u := range earlier {
		if err := add(u, false); err != nil {
			return err
		}
	}
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(p.client.o.Jobs)
	for _, q := range questions {
		group.Go(func() (err error) {
			q.there, err = q.in.hasBlob(bounded, q.blob.Descriptor)
			if err != nil && !q.needed && bounded.Err() == nil {
				q.there, err = false, nil // a repository that may be read by others only
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, q := range questions {
		switch {
		case !q.there && q.needed:
			q.blob.missing = append(q.blob.missing, q.in)
		case q.there && q.blob.source == nil:
			q.blob.source = q.in
		}
	}
	return nil
}

// hasBlob asks for a blob, and refuses one that has another size or digest than it must have.
func (t *repository) hasBlob(ctx context.Context, d Descriptor) (bool, error) {
	there, size, digest, err := t.exists(ctx, "blobs/"+d.Digest.String(), "")
	if err != nil || !there {
		return false, err
	}
	if size >= 0 && size != d.Size || digest != "" && digest != d.Digest.String() {
		return false, t.lies(d, "blob", size, digest)
	}
	return true, nil
}

// lies is the error for content that does not have its digest or size in the registry.
func (t *repository) lies(d Descriptor, kind string, size int64, digest string) error {
	return report.Errorf(report.Corrupt, "%s answers for %s %s with %d bytes and the digest %q; in the archive it has %d bytes", t, kind, d.Digest, size, digest, d.Size).
		WithHint("remove it there, or push to another repository: nodes would refuse it")
}

// Run uploads the missing content: each blob once, then manifests, tags last. Afterwards every digest is compared with what the
// registry has. Run may be repeated after any failure: bytes that have arrived are not sent again.
func (p *Push) Run(ctx context.Context) error {
	err := p.run(ctx)
	event := report.Event{Step: "push", Name: p.name(), State: report.Done, Done: p.NewBytes, Total: p.NewBytes}
	if err != nil {
		event.State, event.Done = report.Failed, p.moved
	}
	p.client.o.Sink.Emit(event)
	return err
}

func (p *Push) run(ctx context.Context) error {
	if err := p.pushBlobs(ctx); err != nil {
		return err
	}
	for _, u := range p.uploads {
		if err := p.pushManifests(ctx, u); err != nil {
			return err
		}
	}
	return p.check(ctx)
}

// pushBlobs uploads the blobs, the largest first.
func (p *Push) pushBlobs(ctx context.Context) error {
	list := slices.SortedStableFunc(slices.Values(p.blobs), func(a, b *pushedBlob) int { return cmp.Compare(b.Size, a.Size) })
	group, bounded := errgroup.WithContext(ctx)
	for _, b := range list {
		if len(b.missing) == 0 {
			continue
		}
		if err := p.client.gate.enter(bounded); err != nil {
			break // the group has the error
		}
		group.Go(func() error {
			err := p.pushBlob(bounded, b)
			p.client.gate.leave(err == nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (p *Push) pushBlob(ctx context.Context, b *pushedBlob) error {
	for _, t := range b.missing {
		u := &upload{to: t, blob: b.Blob, sent: p.progress}
		if b.source != nil {
			mounted, err := u.mount(ctx, b.source)
			if err != nil {
				return err
			}
			if mounted {
				continue
			}
		}
		if err := u.run(ctx); err != nil {
			return inContext("blob "+shorten(b.Digest), err)
		}
		if b.source == nil {
			b.source = t
		}
	}
	return nil
}

// mayReadFrom makes the token of the repository good for reading another one.
func (t *repository) mayReadFrom(other string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other != t.repo.RepositoryStr() && !slices.Contains(t.from, other) {
		t.from, t.client = append(t.from, other), nil
	}
}

// progressStep is after how many bytes progress is reported.
const progressStep = 1 << 20

func (p *Push) progress(n int64) {
	p.mu.Lock()
	before := p.moved
	p.moved += n
	moved := p.moved
	p.mu.Unlock()
	if before/progressStep == moved/progressStep {
		return
	}
	p.client.o.Sink.Emit(report.Event{Step: "push", Name: p.name(), State: report.Running, Done: moved, Total: p.NewBytes})
}

// name is the registry, for the progress.
func (p *Push) name() string {
	host, _, _ := strings.Cut(p.uploads[0].Repository, "/")
	return host
}

// pushManifests uploads the manifests of an image, children before those that name them, and then its tags.
func (p *Push) pushManifests(ctx context.Context, u Upload) error {
	t, err := p.client.repository(u.Repository)
	if err != nil {
		return err
	}
	var about []Manifest // manifests that are about others
	for _, m := range slices.Backward(u.Image.Manifests) {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			return err
		}
		if doc.Subject != nil {
			about = append(about, m)
			continue
		}
		if err := t.putManifest(ctx, m); err != nil {
			return err
		}
	}
	for _, m := range slices.Backward(about) {
		if err := t.putReferrer(ctx, m); err != nil {
			return err
		}
	}
	for _, tag := range u.Tags {
		if err := t.putTag(ctx, u.Image, tag); err != nil {
			return err
		}
	}
	return nil
}

// putTag makes a tag name the image unless it does.
func (t *repository) putTag(ctx context.Context, image *Image, tag string) error {
	_, _, digest, err := t.exists(ctx, "manifests/"+tag, acceptManifests)
	if err != nil || digest == image.Root.Digest.String() {
		return err
	}
	_, err = t.do(ctx, putOf(image.Manifests[0], tag))
	return err
}

func putOf(m Manifest, reference string) exchange {
	return exchange{
		method: http.MethodPut, what: "manifests/" + reference, body: m.Data, header: http.Header{"Content-Type": {string(m.MediaType)}},
		want: []int{http.StatusCreated, http.StatusAccepted, http.StatusOK},
	}
}

// putManifest uploads a manifest under its digest unless it is there.
func (t *repository) putManifest(ctx context.Context, m Manifest) error {
	there, _, digest, err := t.exists(ctx, "manifests/"+m.Digest.String(), acceptManifests)
	if err != nil || there && digest == m.Digest.String() {
		return err
	}
	_, err = t.do(ctx, putOf(m, m.Digest.String()))
	return err
}

// putReferrer uploads a manifest that is about another one. In a registry without the referrers API, it is listed under
// the tag that the specification has for this.
func (t *repository) putReferrer(ctx context.Context, m Manifest) error {
	doc, err := parseManifest(m.Data, m.MediaType)
	if err != nil {
		return err
	}
	a, err := t.do(ctx, putOf(m, m.Digest.String()))
	if err != nil || a.header.Get("OCI-Subject") != "" {
		return err
	}
	tag := referrersTag(doc.Subject.Digest)
	list, err := t.readReferrers(ctx, tag)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list.Manifests, func(d Descriptor) bool { return d.Digest == m.Digest }) {
		return nil
	}
	d := Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Data)), ArtifactType: doc.artifactType(), Annotations: doc.Annotations}
	list.Manifests = append(list.Manifests, d)
	data, err := encodeJSON(list)
	if err != nil {
		return err
	}
	_, err = t.do(ctx, putOf(Manifest{Descriptor: blobDescriptor(types.OCIImageIndex, data), Data: data}, tag))
	return err
}

// referrersTag is the tag that lists the referrers of a manifest where the registry has no API for it.
func referrersTag(d Digest) string { return d.Algorithm + "-" + d.Hex }

// referrers is an index of manifests that are about another one.
type referrers struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Manifests     []Descriptor    `json:"manifests"`
}

func newReferrers() *referrers {
	return &referrers{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []Descriptor{}}
}

// readReferrers reads a list of referrers; an empty one when there is none.
func (t *repository) readReferrers(ctx context.Context, tag string) (*referrers, error) {
	x := exchange{method: http.MethodGet, what: "manifests/" + tag, header: http.Header{"Accept": {string(types.OCIImageIndex)}}, want: []int{http.StatusOK, http.StatusNotFound}}
	resp, err := t.get(ctx, x)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as needed
	if resp.StatusCode == http.StatusNotFound {
		return newReferrers(), nil
	}
	list, err := parseReferrers(resp.Body)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "%s: the list of referrers under the tag %s cannot be read: %w", t, tag, err).
			WithHint("remove the tag in the registry, then run the same command again")
	}
	return list, nil
}

// check compares every tag, manifest and blob with what the registry has now.
func (p *Push) check(ctx context.Context) error {
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(p.client.o.Jobs)
	for _, u := range p.uploads {
		t, err := p.client.repository(u.Repository)
		if err != nil {
			return err
		}
		for _, tag := range u.Tags {
			group.Go(func() error { return t.checkManifest(bounded, tag, u.Image.Root) })
		}
		for _, m := range u.Image.Manifests {
			group.Go(func() error { return t.checkManifest(bounded, m.Digest.String(), m.Descriptor) })
		}
		for _, b := range u.Image.Blobs {
			group.Go(func() error {
				there, err := t.hasBlob(bounded, b.Descriptor)
				if err == nil && !there {
					err = t.lost("blob " + b.Digest.String())
				}
				return err
			})
		}
	}
	return group.Wait()
}

// lost is the error for content that was uploaded and is not there.
func (t *repository) lost(what string) error {
	return report.Errorf(report.Unavailable, "%s took %s and does not have it", t, what).
		WithHint("run the same command again, and look into the log of %s if it fails again", t.repo.RegistryStr())
}

// checkManifest compares a manifest with what the registry answers for it: the digest in a header, else that of its bytes.
func (t *repository) checkManifest(ctx context.Context, reference string, d Descriptor) error {
	there, size, digest, err := t.exists(ctx, "manifests/"+reference, acceptManifests)
	switch {
	case err != nil:
		return err
	case !there:
		return t.lost("manifest " + reference)
	case digest == d.Digest.String() && (size < 0 || size == d.Size):
		return nil
	case digest != "":
		return t.lies(d, "manifest "+reference+", which is", size, digest)
	}
	resp, err := t.get(ctx, exchange{method: http.MethodGet, what: "manifests/" + reference, header: http.Header{"Accept": {acceptManifests}}, want: []int{http.StatusOK}})
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as needed
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return t.failure(exchange{what: "manifests/" + reference}, err, nil)
	}
	if digestOf(data) != d.Digest {
		return t.lies(d, "manifest "+reference+", which is", int64(len(data)), digestOf(data).String())
	}
	return nil
}
