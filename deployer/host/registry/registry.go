// Package registry serves the images of archives as a read-only OCI registry, straight from the ISO files: nothing is
// unpacked, and layers go from the file to the socket inside the kernel.
//
// [NewArchive] indexes an opened archive, [Registry.Set] replaces the served archives at once, and the [Registry]
// itself is the [http.Handler]. [NewServer] wraps it with the timeouts that it needs.
//
// # Names
//
// The image ui:1.0.0 of the Solution acme 1.0.0, known elsewhere as ghcr.io/acme/ui:1.0.0, is
//
//	/v2/acme-1.0.0/ui/manifests/1.0.0              the name in all objects that solutionctl deploys
//	/v2/acme/ui/manifests/1.0.0?ns=ghcr.io         how containerd asks a mirror of ghcr.io
//	/v2/ghcr.io/acme/ui/manifests/1.0.0            how CRI-O asks one
//
// The last two are served with [Options.MirrorOrigins] only; see [OriginRepository] for registries with a port.
//
// An archive that is shared (see [Archive.Share]) is a repository of its own kind, an artifact that another host pulls:
//
//	/v2/archives/acme/manifests/1.0.0
//
// # What is trusted
//
// Manifests come from the memory of the archive, which has verified their digests. Blobs below 64 KiB, among them every
// configuration, are read through the archive's own reader, verified and kept. Larger blobs are sent unread from the
// file; the client checks their digest. A truncated file is never padded: it is an error, or ends the connection.
// /readyz then names the archive. The package writes nothing and verifies no signature.
package registry

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// Options say how a Registry works. Only Now is needed.
type Options struct {
	// MirrorOrigins serves images under their original names as well.
	MirrorOrigins bool
	// MaxTransfers is how many large blobs are sent at the same time, a quarter of them to one client; more wait for their
	// turn. 0: 256.
	MaxTransfers int
	// MinRate is the lowest transfer rate of a client, in bytes per second; slower ones are disconnected. 0: 64 KiB.
	MinRate int64

	// Missed is called before a client gets "not found", so that the store is read again. It returns when new archives
	// are served, or ctx ends. It must be safe for concurrent use. nil: the client gets the answer at once.
	Missed func(ctx context.Context)

	Now func() time.Time
	// Log receives every request to /v2/ when it is complete. It must be safe for concurrent use. nil: no log.
	Log func(schema.RegistryAccess)
}

const (
	defaultTransfers = 256
	defaultRate      = 64 << 10
)

// Registry is an OCI registry. It is safe for concurrent use.
type Registry struct {
	options   Options
	transfers *transfers
	counters  counters
	ready     atomic.Bool

	mu      sync.RWMutex // held while a request finds its blob, so that Set returns only when the old content is unused
	content *content
	missing []string // archives that should be served and are not
}

// New returns a registry that serves nothing yet.
func New(o Options) *Registry {
	return &Registry{
		options:   o,
		transfers: newTransfers(cmp.Or(o.MaxTransfers, defaultTransfers), cmp.Or(o.MinRate, defaultRate), o.Now),
		content:   new(content),
	}
}

// Set replaces the archives that are served. Requests see the old ones or the new ones, never a mixture. On an error
// nothing changes: report.Conflict means that two archives have the same id, or one original name for different images.
//
// Archives that are not served any more can be closed as soon as Set has returned; transfers from them are completed.
func (g *Registry) Set(archives []*Archive) error {
	next, err := merge(archives, g.options.MirrorOrigins)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.content = next
	g.mu.Unlock()
	g.ready.Store(true)
	return nil
}

// SetMissing names archives that should be served and are not; /readyz fails until they are.
func (g *Registry) SetMissing(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missing = ids
}

// problems names the archives that are not served as they should be.
func (g *Registry) problems() []string {
	g.mu.RLock()
	archives, missing := g.content.archives, g.missing
	g.mu.RUnlock()
	var problems []string
	for _, a := range archives {
		if err := a.Check(); err != nil {
			problems = append(problems, a.ID()+": "+err.Error())
		}
	}
	for _, id := range missing {
		problems = append(problems, id+": it is not served")
	}
	return problems
}

// Drain makes /readyz answer that no new requests should come. Requests are answered nevertheless.
func (g *Registry) Drain() { g.ready.Store(false) }

// find returns the repository that a request names.
func (g *Registry) find(name, namespace string) *repository {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.content.find(name, namespace)
}

// has reports whether the requested object is served.
func (g *Registry) has(wanted route, namespace string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	repository := g.content.find(wanted.repository, namespace)
	switch {
	case repository == nil:
		return false
	case repository.isShared() && wanted.operation == tagList:
		return false // another host copies the archives that are listed
	case repository.isShared():
		_, tagged := repository.tags[wanted.reference]
		return tagged || wanted.operation != manifestOf || strings.Contains(wanted.reference, ":")
	case wanted.operation == manifestOf:
		return repository.manifest(wanted.reference) != nil
	case wanted.operation == blobOf:
		return repository.blobs[wanted.reference] != nil
	}
	return true
}

// use returns a blob of a repository with its archive kept open until done is called. It reports false for a repository in whose place
// there is another one, or none, since it was found.
func (g *Registry) use(repository *repository, wanted route, namespace string) (b *blob, done func(), current bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.content.find(wanted.repository, namespace) != repository {
		return nil, nil, false
	}
	b = repository.current().blobs[wanted.reference]
	if b == nil || !b.archive.file.acquire() {
		return nil, nil, true
	}
	return b, b.archive.file.release, true
}

// ServeHTTP answers /v2/, /healthz and /readyz.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		writeText(w, http.StatusOK, "ok\n")
	case "/readyz":
		if !g.ready.Load() {
			writeText(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
		if problems := g.problems(); len(problems) > 0 {
			writeText(w, http.StatusServiceUnavailable, "not ready\n"+strings.Join(problems, "\n")+"\n")
			return
		}
		writeText(w, http.StatusOK, "ok\n")
	default:
		g.serve(w, r)
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may be gone
}

// NewServer returns a server for a registry or a handler around it. It speaks HTTP/1.1 only, because HTTP/2 costs nearly
// twice the processor time for large blobs, and it has no timeout for writing: the registry sets one for every piece it
// sends.
func NewServer(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}
