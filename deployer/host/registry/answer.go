package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// failure is an error for a client, in the format of the distribution specification.
type failure struct {
	status  int
	code    string
	message string
}

// serve answers a request, counts it and logs it.
func (g *Registry) serve(w http.ResponseWriter, r *http.Request) {
	started := g.options.Now()
	recorder := &recorder{ResponseWriter: w}
	g.counters.active.Add(1)
	x := &exchange{registry: g, w: recorder, r: r, namespace: r.URL.Query().Get("ns")}
	defer func() { // also when the connection is to be ended
		g.counters.active.Add(-1)
		g.finish(x, started)
	}()
	g.transfers.pace(recorder, smallBlob)
	x.answer()
	if x.aborted {
		panic(http.ErrAbortHandler) // too little was sent: the client must not take it for the whole
	}
}

// exchange is one request and its answer.
type exchange struct {
	registry  *Registry
	w         *recorder
	r         *http.Request
	route     route
	namespace string // the registry that the client would have asked; "" without parameter ns
	digest    string // of the sent bytes
	waited    time.Duration
	aborted   bool // less was sent than was promised
	damaged   bool // the archive cannot be read any more
}

func (x *exchange) answer() {
	header := x.w.Header()
	header.Set("Docker-Distribution-Api-Version", "registry/2.0")
	header.Set("X-Content-Type-Options", "nosniff")
	if x.r.ContentLength != 0 {
		header.Set("Connection", "close") // requests have no body; it is not read
	}
	var fail *failure
	x.route, fail = parseRoute(x.r.URL.Path)
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		x.fail(&failure{http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry serves archives and cannot be written to"})
		return
	}
	if fail != nil {
		x.fail(fail)
		return
	}
	x.awaitRescan()
	switch x.route.operation {
	case ping:
		x.json("application/json", struct{}{})
	case catalog:
		x.sendCatalog()
	case blobOf:
		x.sendBlob()
	default:
		x.ofRepository()
	}
}

// awaitRescan waits until the store is read again, for an import of a moment ago: a node that gets "not found" retries
// only after half a minute, and a host that copies what is listed later still.
func (x *exchange) awaitRescan() {
	missed := x.registry.options.Missed
	if missed == nil || x.route.operation == ping || x.registry.has(x.route, x.namespace) {
		return
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), rescanTimeout)
	defer cancel()
	missed(ctx)
}

// rescanTimeout bounds the wait of a request for an unknown image, well within the time for an answer.
const rescanTimeout = 10 * time.Second

// ofRepository answers requests from memory alone.
func (x *exchange) ofRepository() {
	repository := x.registry.find(x.route.repository, x.namespace)
	if repository == nil {
		x.fail(unknownName(x.route.repository))
		return
	}
	if x.route.operation != tagList && !x.prepare(repository) {
		return
	}
	repository = repository.current()
	x.confirmNamespace()
	switch x.route.operation {
	case tagList:
		x.sendTags(repository)
	case referrersOf:
		x.sendReferrers(repository)
	default:
		x.sendManifest(repository)
	}
}

// confirmNamespace sets the header that confirms the namespace to the client.
func (x *exchange) confirmNamespace() {
	if x.namespace != "" {
		x.w.Header().Set("OCI-Namespace", x.namespace)
	}
}

func unknownName(name string) *failure {
	return &failure{http.StatusNotFound, "NAME_UNKNOWN", fmt.Sprintf("no archive that is served has a repository %s", name)}
}

func (x *exchange) sendManifest(repository *repository) {
	m := repository.manifest(x.route.reference)
	if m == nil {
		message := fmt.Sprintf("repository %s has no manifest %s", x.route.repository, x.route.reference)
		if len(repository.tagNames) > 0 {
			message += "; it has " + strings.Join(repository.tagNames[:min(5, len(repository.tagNames))], ", ")
		}
		x.fail(&failure{http.StatusNotFound, "MANIFEST_UNKNOWN", message})
		return
	}
	x.describe(m.mediaType, m.digest)
	http.ServeContent(x.w, x.r, "", time.Time{}, bytes.NewReader(m.data))
}

// describe sets the headers of content with a digest.
func (x *exchange) describe(mediaType, digest string) {
	x.digest = digest
	header := x.w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Docker-Content-Digest", digest)
	header.Set("Etag", `"`+digest+`"`)
}

// prepare describes the archives that a repository has, if it is one of these.
func (x *exchange) prepare(repository *repository) bool {
	if !repository.isShared() {
		return true
	}
	err := repository.prepare(x.r.Context())
	if err != nil {
		x.unreadable(err)
	}
	return err == nil
}

func (x *exchange) sendBlob() {
	var b *blob
	var done func()
	for current := false; !current; {
		repository := x.registry.find(x.route.repository, x.namespace)
		if repository == nil {
			x.fail(unknownName(x.route.repository))
			return
		}
		if !x.prepare(repository) {
			return
		}
		b, done, current = x.registry.use(repository, x.route, x.namespace)
	}
	if b == nil {
		x.fail(&failure{
			http.StatusNotFound, "BLOB_UNKNOWN", fmt.Sprintf("repository %s has no blob %s", x.route.repository, x.route.reference),
		})
		return
	}
	defer done()
	x.confirmNamespace()
	if b.isSmall() {
		x.sendSmall(b)
		return
	}
	if x.r.Method == http.MethodGet {
		started, client := x.registry.options.Now(), clientOf(x.r.RemoteAddr)
		if !x.registry.transfers.enter(x.r.Context(), client) {
			x.aborted, x.w.reason = true, fmt.Errorf("the client left while it waited for its turn: %w", x.r.Context().Err())
			return
		}
		defer x.registry.transfers.leave(client)
		x.waited = x.registry.options.Now().Sub(started)
	}
	x.sendLarge(b)
}

func (x *exchange) sendSmall(b *blob) {
	data, err := b.load(x.r.Context())
	if err != nil {
		if x.unreadable(err); x.damaged {
			b.archive.markUnreadable()
		}
		return
	}
	x.describe("application/octet-stream", b.Digest.String())
	http.ServeContent(x.w, x.r, "", time.Time{}, bytes.NewReader(data))
}

func (x *exchange) sendLarge(b *blob) {
	err := b.archive.file.holds(b.end())
	var content io.ReadSeekCloser
	if err == nil {
		content, err = b.reader(x.r.Context())
	}
	if err != nil {
		if x.unreadable(fmt.Errorf("%s: %w", b.path, err)); x.damaged {
			b.archive.markUnreadable()
		}
		return
	}
	defer content.Close() //nolint:errcheck // read only
	x.describe("application/octet-stream", b.Digest.String())
	sender := &sender{recorder: x.w, transfers: x.registry.transfers, blob: b, content: content}
	http.ServeContent(sender, x.r, "", time.Time{}, content)
	x.aborted, x.damaged = x.w.reason != nil, sender.damaged
	if x.damaged {
		b.archive.markUnreadable()
	}
}

// unreadable reports an archive that is not the one that was indexed any more. An error after the client has left is only the end of the
// request.
func (x *exchange) unreadable(err error) {
	if x.r.Context().Err() != nil {
		x.aborted, x.w.reason = true, fmt.Errorf("the client left: %w", err)
		return
	}
	x.fail(&failure{http.StatusInternalServerError, "UNKNOWN", "the archive cannot be read: the administrator finds out more in the log"})
	x.damaged, x.w.reason = true, err
}

func (x *exchange) sendCatalog() {
	x.registry.mu.RLock()
	names := x.registry.content.names
	x.registry.mu.RUnlock()
	if page, ok := x.page(names); ok {
		x.json("application/json", struct {
			Repositories []string `json:"repositories"`
		}{page})
	}
}

func (x *exchange) sendTags(repository *repository) {
	if page, ok := x.page(repository.tagNames); ok {
		x.json("application/json", struct {
			Name string   `json:"name"`
			Tags []string `json:"tags"`
		}{x.route.repository, page})
	}
}

// page returns the part of a sorted list that the parameters n and last ask for, and links to the next one.
func (x *exchange) page(all []string) ([]string, bool) {
	query := x.r.URL.Query()
	if last := query.Get("last"); last != "" {
		i, found := slices.BinarySearch(all, last)
		if found {
			i++
		}
		all = all[i:]
	}
	if !query.Has("n") {
		return append([]string{}, all...), true
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 0 {
		x.fail(&failure{http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", "n is not a number of entries"})
		return nil, false
	}
	if n > 0 && n < len(all) {
		query.Set("last", all[n-1])
		x.w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, (&url.URL{Path: x.r.URL.Path, RawQuery: query.Encode()}).String()))
	}
	return append([]string{}, all[:min(n, len(all))]...), true
}

func (x *exchange) sendReferrers(repository *repository) {
	list := []descriptor{}
	wanted := x.r.URL.Query().Get("artifactType")
	for _, d := range repository.referrers[x.route.reference] {
		if wanted == "" || d.ArtifactType == wanted {
			list = append(list, d)
		}
	}
	if wanted != "" {
		x.w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	const index = "application/vnd.oci.image.index.v1+json"
	x.json(index, struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, index, list})
}

func (x *exchange) json(mediaType string, value any) {
	x.send(http.StatusOK, mediaType, value)
}

// fail answers with an error as the distribution specification wants it.
func (x *exchange) fail(f *failure) {
	type entry struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	x.send(f.status, "application/json", struct {
		Errors []entry `json:"errors"`
	}{[]entry{{f.code, f.message}}})
}

func (x *exchange) send(status int, mediaType string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("registry: an answer does not encode as JSON: %v", err))
	}
	header := x.w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(data)))
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(data) // the client may be gone
	}
}
