package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// acceptManifests is the Accept header of requests for manifests. Schema 1 is not in it: a registry would convert to it.
var acceptManifests = strings.Join([]string{
	string(types.OCIImageIndex), string(types.DockerManifestList),
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2), mediaTypeOCIArtifact,
}, ", ")

// fromRegistry takes an image from its registry or from a mirror of it.
func (r *Resolver) fromRegistry(ctx context.Context, s string) (*Image, error) {
	ref, err := name.ParseReference(s)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "%q is not an image reference", Redact("//" + s)[2:]).
			WithHint("write docker://REGISTRY/NAME:TAG or docker://REGISTRY/NAME@sha256:…")
	}
	content, err := r.content(ref.Context())
	if err != nil {
		return nil, err
	}
	root, err := content.root(ctx, ref)
	if err != nil {
		return nil, err
	}
	image, err := collect(ctx, content, root, r.o.Platforms, r.o.Jobs)
	if err != nil {
		return nil, err
	}
	image.Origin = originOfReference(s, ref)
	if passed := content.passedOver(); passed != "" {
		image.Note = strings.TrimPrefix(image.Note+"; "+passed, "; ")
	}
	return image, nil
}

// FullReference is the full form of a reference, without a digest when it has a tag; "" when it is none.
func FullReference(s string) string {
	ref, err := name.ParseReference(s)
	if err != nil {
		return ""
	}
	return originOfReference(s, ref)
}

// originOfReference is the full reference without a digest when it has a tag: the digest is that of the root anyway.
func originOfReference(s string, ref name.Reference) string {
	before, _, ok := strings.Cut(s, "@")
	if hasTag := strings.LastIndex(before, ":") > strings.LastIndex(before, "/"); ok && hasTag {
		if tag, err := name.NewTag(before); err == nil {
			ref = tag
		}
	}
	return strings.Replace(ref.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// remoteContent is a repository that one or several endpoints serve, the preferred first.
type remoteContent struct {
	r         *Resolver
	endpoints []*endpoint
	preferred atomic.Int32 // position of the endpoint that answered last

	mu     sync.Mutex
	passed []string // mirrors that failed, and why, in the order of their first failure
}

// passOver records that a mirror failed.
func (c *remoteContent) passOver(e *endpoint, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := "mirror " + e.repo.RegistryStr()
	if !slices.ContainsFunc(c.passed, func(known string) bool { return strings.HasPrefix(known, name+" ") }) {
		c.passed = append(c.passed, fmt.Sprintf("%s was passed over: %v", name, err))
	}
}

// passedOver lists the mirrors that failed, "" when none did.
func (c *remoteContent) passedOver() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.passed, "; ")
}

// root fetches the manifest that the reference names.
func (c *remoteContent) root(ctx context.Context, ref name.Reference) (Manifest, error) {
	var m Manifest
	err := c.each(ctx, func(e *endpoint) (err error) {
		m, err = e.fetchManifest(ctx, ref.Identifier())
		return err
	})
	if err != nil {
		return m, err
	}
	if digest, ok := ref.(name.Digest); ok && m.Digest.String() != digest.DigestStr() {
		return m, report.Errorf(report.Corrupt, "the registry answered with the manifest %s", m.Digest)
	}
	return m, nil
}

func (c *remoteContent) manifest(ctx context.Context, d Descriptor) (data []byte, err error) {
	err = c.each(ctx, func(e *endpoint) error {
		m, failed := e.fetchManifest(ctx, d.Digest.String())
		if failed == nil && m.Digest != d.Digest {
			return report.Errorf(report.Corrupt, "%s: answered with the manifest %s instead of %s", e, m.Digest, d.Digest)
		}
		data = m.Data
		return failed
	})
	return data, err
}

func (c *remoteContent) blob(ctx context.Context, d Descriptor) (Blob, error) {
	b := Blob{Descriptor: d, Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		return c.openBlob(ctx, d, offset, d.Size)
	}, openPart: func(ctx context.Context, from, to int64) (io.ReadCloser, error) {
		return c.openBlob(ctx, d, from, to)
	}}
	if !isForeign(d) {
		return b, nil
	}
	err := c.each(ctx, func(e *endpoint) error {
		resp, err := e.request(ctx, http.MethodHead, "blobs/"+d.Digest.String(), nil)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	})
	if err != nil {
		return b, report.Errorf(report.Invalid, "layer %s is not distributed with the image: %w", d.Digest, err).
			WithHint("the layer comes from its vendor only; use another base image or push the layer to a registry of your own")
	}
	return b, nil
}

// each tries the endpoints until one succeeds, beginning with the one that did so last. The error is that of the
// registry itself, with the errors of the mirrors.
func (c *remoteContent) each(ctx context.Context, try func(*endpoint) error) error {
	first := int(c.preferred.Load())
	var failed error
	for i := range c.endpoints {
		switch { // the preferred one is moved to the front
		case i == 0:
			i = first
		case i <= first:
			i--
		}
		err := try(c.endpoints[i])
		if err == nil {
			c.preferred.Store(int32(i))
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if c.endpoints[i].mirror {
			c.passOver(c.endpoints[i], err)
		} else {
			failed = err
		}
	}
	if passed := c.passedOver(); passed != "" && failed != nil {
		return report.Errorf(report.CodeOf(failed), "%w (%s)", failed, passed)
	}
	return failed
}

// endpoint is one repository on one host.
type endpoint struct {
	r      *Resolver
	repo   name.Repository
	mirror bool
	plain  bool // it may be asked without TLS
	client once[*http.Client]
}

// tlsOnly refuses requests without TLS unless the user allows them: the library makes them to private addresses by
// itself, and the network could then read and change credentials and the manifests of tags.
type tlsOnly struct {
	http.RoundTripper
	plain []string // hosts
}

func (t tlsOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !isLoopback(req.URL.Hostname()) && !slices.Contains(t.plain, req.URL.Host) {
		return nil, errPlainHTTP
	}
	return t.RoundTripper.RoundTrip(req)
}

var errPlainHTTP = errors.New("plain HTTP was not asked for")

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// registry is the name under which people know the registry.
func (e *endpoint) registry() string {
	return strings.Replace(e.repo.RegistryStr(), name.DefaultRegistry, "docker.io", 1)
}

func (e *endpoint) String() string {
	return strings.Replace(e.repo.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// fetchManifest fetches and bounds a manifest. Its digest is computed from its bytes; the registry's header is not
// trusted.
func (e *endpoint) fetchManifest(ctx context.Context, identifier string) (Manifest, error) {
	what := "manifests/" + identifier
	var data []byte
	var mediaType string
	err := e.repeat(ctx, func() error {
		resp, err := e.try(ctx, http.MethodGet, what, http.Header{"Accept": {acceptManifests}})
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		mediaType, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
		if data, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1)); err != nil {
			return e.failure(what, err, nil)
		}
		return nil
	})
	if err != nil {
		return Manifest{}, e.withTags(ctx, identifier, err)
	}
	if len(data) > maxDocument {
		return Manifest{}, report.Errorf(report.Invalid, "%s: manifest %s has more than %d bytes", e, identifier, maxDocument)
	}
	return Manifest{Descriptor: blobDescriptor(types.MediaType(strings.TrimSpace(mediaType)), data), Data: data}, nil
}

// withTags adds the tags that are most like the missing one to the hint.
func (e *endpoint) withTags(ctx context.Context, identifier string, err error) error {
	var failure *report.Error
	if !errors.As(err, &failure) || failure.Code != report.Invalid || strings.Contains(identifier, ":") || e.mirror {
		return err
	}
	resp, listErr := e.request(ctx, http.MethodGet, "tags/list?n=1000", nil)
	if listErr != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Tags []string `json:"tags"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer) == nil && len(answer.Tags) > 0 {
		tags := closest(identifier, answer.Tags)
		return failure.WithHint("the repository has the tags %s", list(tags))
	}
	return err
}

// connect authenticates with the registry, once per repository.
func (e *endpoint) connect(ctx context.Context) (*http.Client, error) {
	return e.client.get(func() (*http.Client, error) {
		auth := authn.Anonymous
		if e.r.o.Keychain != nil {
			var err error
			if auth, err = authn.Resolve(ctx, e.r.o.Keychain, e.repo); err != nil {
				return nil, report.Errorf(report.Unavailable, "%s: credentials: %w", e, err).
					WithHint("check the docker or podman configuration, or log in again: `docker login %s`", e.repo.RegistryStr())
			}
		}
		var below http.RoundTripper = tlsOnly{e.r.o.Transport, e.r.o.PlainHTTP}
		if e.plain {
			below = e.r.o.Transport
		}
		t, err := transport.NewWithContext(ctx, e.repo.Registry, auth, bearerFirst{watching{below, e.r.idle}}, []string{e.repo.Scope(transport.PullScope)})
		if err != nil {
			return nil, err
		}
		return &http.Client{Transport: t}, nil
	})
}

// request asks for something below the repository, several times when the failure may be temporary. The caller closes
// the body of the answer, whose status is 200 or 206.
func (e *endpoint) request(ctx context.Context, method, what string, header http.Header) (resp *http.Response, err error) {
	err = e.repeat(ctx, func() error {
		resp, err = e.try(ctx, method, what, header) //nolint:bodyclose // the caller closes it
		return err
	})
	return resp, err
}

// repeat tries something again while its failure may be temporary.
func (e *endpoint) repeat(ctx context.Context, try func() error) error {
	for attempt := 0; ; attempt++ {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var failure *requestError
		if !errors.As(err, &failure) || !failure.temporary() || attempt+1 >= failure.attempts() {
			return err
		}
		if err := e.pause(ctx, backoff(attempt, failure.retryAfter), failure); err != nil {
			return err
		}
	}
}

// pause waits before the next attempt, and reports a wait that people notice.
func (e *endpoint) pause(ctx context.Context, wait time.Duration, failure *requestError) error {
	if wait >= noticeable {
		e.r.o.Sink.Emit(report.Event{Step: "pull", Name: e.String(), State: report.Warning, Note: fmt.Sprintf("%v; the next attempt is in %v", failure, wait)})
	}
	return e.r.wait(ctx, wait)
}

func (e *endpoint) try(ctx context.Context, method, what string, header http.Header) (*http.Response, error) {
	client, err := e.connect(ctx)
	if err != nil {
		return nil, e.failure(what, err, nil)
	}
	address := fmt.Sprintf("%s://%s/v2/%s/%s", e.repo.Scheme(), e.repo.RegistryStr(), e.repo.RepositoryStr(), what)
	if list, ok := strings.CutPrefix(what, ofRegistry); ok {
		address = fmt.Sprintf("%s://%s/v2/%s", e.repo.Scheme(), e.repo.RegistryStr(), list)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	resp, err := client.Do(req)
	if err != nil {
		return nil, e.failure(what, err, nil)
	}
	if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		_ = resp.Body.Close()
		return nil, e.failure(what, err, resp)
	}
	return resp, nil
}

// endpoints returns the mirrors of a repository and then the repository itself.
func (r *Resolver) endpoints(repo name.Repository) ([]*endpoint, error) {
	full := strings.Replace(repo.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
	prefix, mirrors := r.mirrorsOf(full)
	var endpoints []*endpoint
	for _, mirror := range mirrors {
		m, err := mirrorRepository(mirror, strings.TrimPrefix(full, prefix))
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, r.endpoint(m, true, strings.HasPrefix(mirror, "http://")))
	}
	plain := slices.Contains(r.o.PlainHTTP, repo.RegistryStr())
	if plain {
		registry, err := name.NewRegistry(repo.RegistryStr(), name.Insecure)
		if err != nil {
			return nil, err
		}
		repo = registry.Repo(repo.RepositoryStr())
	}
	return append(endpoints, r.endpoint(repo, false, plain)), nil
}

// mirrorsOf returns the mirrors with the longest prefix of a repository. Docker Hub may be called by either of its names.
func (r *Resolver) mirrorsOf(repo string) (prefix string, mirrors []string) {
	for _, key := range slices.Sorted(maps.Keys(r.o.Mirrors)) {
		called := key
		if rest, ok := strings.CutPrefix(key, name.DefaultRegistry); ok && (rest == "" || rest[0] == '/') {
			called = "docker.io" + rest
		}
		if repo != called && !strings.HasPrefix(repo, called+"/") || len(called) < len(prefix) {
			continue
		}
		if len(called) > len(prefix) {
			prefix, mirrors = called, nil
		}
		mirrors = append(mirrors, r.o.Mirrors[key]...)
	}
	return prefix, mirrors
}

// mirrorRepository returns the repository on a mirror, "[http://]HOST[:PORT][/PREFIX]".
func mirrorRepository(mirror, rest string) (name.Repository, error) {
	scheme, place := trimScheme(mirror)
	host, path, _ := strings.Cut(strings.TrimSuffix(place, "/")+rest, "/")
	var options []name.Option
	if scheme == "http" {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(host, options...)
	if err != nil || host == "" || path == "" || scheme != "" && scheme != "http" && scheme != "https" || strings.Contains(host, "@") {
		return name.Repository{}, report.Errorf(report.Invalid, "mirror %q is not valid", Redact(mirror)).
			WithHint("write [http://]HOST[:PORT][/PREFIX]; credentials come from the docker or podman configuration")
	}
	return registry.Repo(path), nil
}

// endpoint returns the one endpoint of a repository, so that images of one repository share a token.
func (r *Resolver) endpoint(repo name.Repository, mirror, plain bool) *endpoint {
	key := fmt.Sprintf("%s %s %t %t", repo.Scheme(), repo.Name(), mirror, plain)
	e, _ := r.repos.get(key, func() (*endpoint, error) {
		return &endpoint{r: r, repo: repo, mirror: mirror, plain: plain}, nil
	})
	return e
}
