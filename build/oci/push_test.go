package oci_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// target is a registry that images are pushed to: that of the library, in memory, with repositories that have blobs of
// their own, mounts, and uploads that continue. It counts what it receives, and a test may answer in its place.
type target struct {
	host  string
	plain http.Handler
	mu    sync.Mutex
	spoil func(w http.ResponseWriter, r *http.Request) bool // has answered
	parts map[string][]byte                                 // uploads on their way
	has   map[string]bool                                   // REPOSITORY@DIGEST
	calls atomic.Int64
	bytes atomic.Int64 // of bodies of uploads
	blobs atomic.Int64 // uploads that were completed
	tags  atomic.Int64
}

func newTarget(t *testing.T) *target {
	t.Helper()
	g := &target{
		plain: registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(false)),
		parts: map[string][]byte{}, has: map[string]bool{},
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.host = strings.TrimPrefix(server.URL, "http://")
	return g
}

func (g *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	g.mu.Lock()
	spoil := g.spoil
	g.mu.Unlock()
	if spoil != nil && spoil(w, r) {
		return
	}
	repo, what, isBlob := strings.Cut(r.URL.Path, "/blobs/")
	switch {
	case isBlob && strings.HasPrefix(what, "uploads/"):
		g.upload(w, r, repo)
		return
	case isBlob:
		g.mu.Lock()
		there := g.has[repo+"@"+what]
		g.mu.Unlock()
		if !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
	case r.Method == http.MethodPut && !strings.Contains(r.URL.Path, "sha256"):
		g.tags.Add(1)
	}
	g.plain.ServeHTTP(w, r)
}

func (g *target) upload(w http.ResponseWriter, r *http.Request, repo string) {
	var data []byte
	if r.Method == http.MethodPatch {
		data, _ = io.ReadAll(r.Body) // what arrives counts
		g.bytes.Add(int64(len(data)))
	}
	query := r.URL.Query()
	g.mu.Lock()
	defer g.mu.Unlock()
	part, known := g.parts[r.URL.Path]
	switch {
	case r.Method == http.MethodPost && g.has["/v2/"+query.Get("from")+"@"+query.Get("mount")]:
		g.has[repo+"@"+query.Get("mount")] = true
		w.WriteHeader(http.StatusCreated)
		return
	case r.Method == http.MethodPost:
		location := fmt.Sprintf("%s/blobs/uploads/%d", repo, len(g.parts))
		g.parts[location] = nil
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusAccepted)
		return
	case !known:
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodPut:
		r.Body = io.NopCloser(bytes.NewReader(part))
		r.ContentLength = int64(len(part))
		answer := httptest.NewRecorder()
		g.plain.ServeHTTP(answer, r)
		if answer.Code == http.StatusCreated {
			g.has[repo+"@"+query.Get("digest")] = true
			g.blobs.Add(1)
		}
		w.WriteHeader(answer.Code)
		return
	case r.Method == http.MethodPatch:
		if begin := r.Header.Get("Content-Range"); begin != "" && !strings.HasPrefix(begin, fmt.Sprintf("%d-", len(part))) || begin == "" && len(part) > 0 {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		part = append(part, data...)
		g.parts[r.URL.Path] = part
	}
	w.Header().Set("Location", r.URL.Path)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, len(part)-1)))
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (g *target) answer(spoil func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spoil = spoil
}

// uploads are two images with one layer in common, and an index of two platforms that has a signature.
func uploads(t *testing.T, host string) []oci.Upload {
	t.Helper()
	l := newLayout()
	noise := rand.New(rand.NewPCG(1, 2))
	layer := func(size int) string {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(noise.Uint32())
		}
		return string(data)
	}
	base := layer(120 << 10)
	l.tag("operator:1.0.0", l.image("linux/amd64", base, layer(40<<10)))
	index := l.multi(l.image("linux/amd64", base), l.image("linux/arm64", layer(20<<10)))
	l.tag("ui:1.0.0", index)
	l.artifact("application/vnd.example.signature", index)
	store, err := oci.Open(l.fs())
	if err != nil {
		t.Fatal(err)
	}
	var list []oci.Upload
	for _, image := range store.Images() {
		list = append(list, oci.Upload{Repository: host + "/site/demo-1.0.0/" + image.Ref.Name, Image: image, Tags: []string{image.Ref.Tag}})
	}
	return list
}

func pushTo(ctx context.Context, list []oci.Upload, o oci.PushOptions) (*oci.Push, error) {
	o.SetWait(func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
	p, err := oci.NewPush(ctx, list, nil, o)
	if err == nil {
		err = p.Run(ctx)
	}
	return p, err
}

// checkPushed reads every image back, with all its digests.
func checkPushed(t *testing.T, list []oci.Upload) {
	t.Helper()
	for _, u := range list {
		tag, err := name.NewTag(u.Repository + ":" + u.Tags[0])
		if err != nil {
			t.Fatal(err)
		}
		d, err := remote.Get(tag)
		if err != nil {
			t.Fatal(err)
		}
		if d.Digest != u.Image.Root.Digest {
			t.Errorf("%s has the digest %s, want %s", tag, d.Digest, u.Image.Root.Digest)
		}
		if index, notIndex := d.ImageIndex(); notIndex == nil {
			if err = validate.Index(index); err != nil {
				t.Error(err)
			}
			continue
		}
		image, err := d.Image()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Error(err)
		}
	}
}

func TestPush(t *testing.T) {
	g := newTarget(t)
	list := uploads(t, g.host)
	p, err := pushTo(t.Context(), list, oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkPushed(t, list)
	if got := g.bytes.Load(); got > p.Bytes*11/10 || p.NewBytes != p.Bytes {
		t.Errorf("sent %d bytes for %d, %d of them new", got, p.Bytes, p.NewBytes)
	}
	sent, blobs, tags := g.bytes.Load(), g.blobs.Load(), g.tags.Load()
	again, err := pushTo(t.Context(), list, oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.NewBytes != 0 || again.NewBlobs != 0 || g.bytes.Load() != sent || g.blobs.Load() != blobs || g.tags.Load() != tags {
		t.Errorf("the second push sends %d bytes, %d blobs and %d tags", g.bytes.Load()-sent, g.blobs.Load()-blobs, g.tags.Load()-tags)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	g := newTarget(t)
	g.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		return false
	})
	p, err := oci.NewPush(t.Context(), uploads(t, g.host), nil, oci.PushOptions{})
	if err != nil || p.NewBytes == 0 || p.NewBytes != p.Bytes || p.NewBlobs != p.Blobs {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPushSurvivesFaults gives each n-th request an answer that a registry under load gives.
func TestPushSurvivesFaults(t *testing.T) {
	for _, status := range []int{500, 503, 429, 401, 416} {
		for _, n := range []int64{3, 4, 5, 7, 11} {
			t.Run(fmt.Sprintf("%d/%d", status, n), func(t *testing.T) {
				g := newTarget(t)
				var asked atomic.Int64
				g.answer(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/v2/" || asked.Add(1)%n != 0 {
						return false
					}
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(status)
					return true
				})
				list := uploads(t, g.host)
				jobs := 1
				if n >= 7 {
					jobs = 4
				}
				if _, err := pushTo(t.Context(), list, oci.PushOptions{Jobs: jobs}); err != nil {
					t.Fatal(err)
				}
				g.answer(nil)
				checkPushed(t, list)
			})
		}
	}
}

// TestPushEndsWithoutHope has a registry that never works: the number of requests is bounded.
func TestPushEndsWithoutHope(t *testing.T) {
	for _, status := range []int{500, 429, 401, 416} {
		g := newTarget(t)
		g.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/v2/" || r.Method == http.MethodHead {
				return false
			}
			w.WriteHeader(status)
			return true
		})
		_, err := pushTo(t.Context(), uploads(t, g.host), oci.PushOptions{})
		if report.CodeOf(err) != report.Unavailable || len(report.Hints(err)) == 0 {
			t.Errorf("%d: %v", status, err)
		}
		if calls := g.calls.Load(); calls > 200 {
			t.Errorf("%d: %d requests", status, calls)
		}
	}
}

// TestPushContinues ends the push at each of its requests that write. The next run sends the missing bytes only.
func TestPushContinues(t *testing.T) {
	for stop := int64(1); stop <= 24; stop++ {
		g := newTarget(t)
		list := uploads(t, g.host)
		ctx, kill := context.WithCancel(t.Context())
		var writes atomic.Int64
		g.answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet || r.Method == http.MethodHead || writes.Add(1) < stop {
				return false
			}
			kill()
			panic(http.ErrAbortHandler)
		})
		_, err := pushTo(ctx, list, oci.PushOptions{Jobs: 1})
		kill()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		g.answer(nil)
		before := g.bytes.Load()
		p, err := pushTo(t.Context(), list, oci.PushOptions{})
		if err != nil {
			t.Fatalf("after a stop at %d: %v", stop, err)
		}
		checkPushed(t, list)
		if sent := g.bytes.Load() - before; sent != p.NewBytes || before+sent > p.Bytes+(130<<10) {
			t.Errorf("after a stop at %d: sent %d and then %d of %d bytes", stop, before, sent, p.Bytes)
		}
	}
}

// TestPushRefusals has registries without what a push needs, and hostile ones.
func TestPushRefusals(t *testing.T) {
	isWrite := func(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }
	deny := func(status int, code, message string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !isWrite(r) {
				return false
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
			return true
		}
	}
	for _, test := range []struct {
		name       string
		spoil      func(w http.ResponseWriter, r *http.Request) bool
		code       report.Code
		text, hint string
	}{
		{"no project", deny(404, "NAME_UNKNOWN", "project site not found"), report.Unavailable, "project site not found", "create the project site"},
		{"no right", deny(403, "DENIED", "requested access to the resource is denied"), report.Unavailable, "403 Forbidden", "log in as a user who may push to site/"},
		{"quota", deny(412, "DENIED", "adding 1 MiB of storage resource, which when updated to current usage will exceed the configured upper limit"), report.Unavailable, "storage resource", "make room in"},
		{"full disk", deny(500, "UNKNOWN", "write /var/lib/registry/x: no space left on device"), report.Unavailable, "no space left", "make room in"},
		{"read only", deny(405, "UNSUPPORTED", "the operation is unsupported"), report.Unavailable, "405", "is read-only"},
		{"immutable tag", deny(412, "PRECONDITION", "tag is immutable"), report.Unavailable, "tag is immutable", "a rule of its own"},
		{"large request", deny(413, "", ""), report.Unavailable, "413", "client_max_body_size"},
		{"uploads sent elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Location", "http://127.0.0.1:1/v2/site/blobs/uploads/1")
			w.WriteHeader(http.StatusAccepted)
			return true
		}, report.Unavailable, "another host", "by the address that it gives itself"},
		{"redirected elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		}, report.Unavailable, "another host", "by the address that it gives itself"},
		{"no address of uploads", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
			}
			return r.Method == http.MethodPost
		}, report.Unavailable, "does not say where to upload", ""},
		{"lies about sizes", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead && isBlobPath(r) {
				w.Header().Set("Content-Length", "7")
				w.WriteHeader(http.StatusOK)
			}
			return r.Method == http.MethodHead && isBlobPath(r)
		}, report.Corrupt, "with 7 bytes", "remove it there"},
		{"lies about digests", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead && !isBlobPath(r) {
				w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
				w.WriteHeader(http.StatusOK)
			}
			return r.Method == http.MethodHead && !isBlobPath(r)
		}, report.Corrupt, "the digest", "remove it there"},
		{"takes and forgets", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusNotFound)
			}
			return r.Method == http.MethodHead
		}, report.Unavailable, "does not have it", "run the same command again"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newTarget(t)
			g.answer(test.spoil)
			_, err := pushTo(t.Context(), uploads(t, g.host), oci.PushOptions{})
			if report.CodeOf(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) || !strings.Contains(strings.Join(report.Hints(err), "\n"), test.hint) {
				t.Errorf("%s: %v\nhints: %q", report.CodeOf(err), err, report.Hints(err))
			}
			if g.tags.Load() != 0 && test.name != "takes and forgets" && test.name != "lies about digests" {
				t.Error("a tag was pushed")
			}
		})
	}
}

func isBlobPath(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/sha256:") }

// TestPushKeepsCredentials has a login, and a registry that sends readers to another host: the other one sees no login.
func TestPushKeepsCredentials(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the other host gets %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	g := newTarget(t)
	g.answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch user, _, _ := r.BasicAuth(); {
		case user != "pusher":
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodHead && isBlobPath(r) && g.blobs.Load() == 0:
			http.Redirect(w, r, other.URL+"/storage", http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	})
	list := uploads(t, g.host)
	if _, err := pushTo(t.Context(), list, oci.PushOptions{Keychain: login{}}); err != nil {
		t.Fatal(err)
	}
	_, err := pushTo(t.Context(), list, oci.PushOptions{})
	if report.CodeOf(err) != report.Unavailable || !strings.Contains(strings.Join(report.Hints(err), ""), "docker login") {
		t.Errorf("without a login: %v", err)
	}
}

type login struct{}

func (login) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "pusher", Password: "secret"}, nil
}

// TestPushRenewsToken has tokens that are good for five requests.
func TestPushRenewsToken(t *testing.T) {
	g := newTarget(t)
	var left, tokens atomic.Int64
	g.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			left.Store(5)
			fmt.Fprintf(w, `{"token":"t%d"}`, tokens.Add(1))
			return true
		}
		if r.URL.Path != "/v2/" && r.Header.Get("Authorization") != "" && left.Add(-1) >= 0 {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+g.host+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	list := uploads(t, g.host)
	if _, err := pushTo(t.Context(), list, oci.PushOptions{Jobs: 1}); err != nil {
		t.Fatal(err)
	}
	if tokens.Load() < 3 {
		t.Errorf("%d tokens", tokens.Load())
	}
	g.answer(nil)
	checkPushed(t, list)
}

// TestPushMountsFromEarlier pushes a further version: what an earlier one has is not sent.
func TestPushMountsFromEarlier(t *testing.T) {
	g := newTarget(t)
	earlier := uploads(t, g.host)
	if _, err := pushTo(t.Context(), earlier, oci.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	later := uploads(t, g.host)
	for i := range later {
		later[i].Repository = strings.Replace(later[i].Repository, "1.0.0", "1.0.1", 1)
	}
	sent := g.bytes.Load()
	var o oci.PushOptions
	p, err := oci.NewPush(t.Context(), later, earlier, o)
	if err == nil {
		err = p.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.NewBytes != 0 || g.bytes.Load() != sent {
		t.Errorf("%d new bytes, sent %d", p.NewBytes, g.bytes.Load()-sent)
	}
	checkPushed(t, later)
}

// TestPushReportsAttempts has a registry that breaks off an upload, forgets another and then refuses everything.
func TestPushReportsAttempts(t *testing.T) {
	g := newTarget(t)
	var events report.Recorder
	var patches atomic.Int64
	g.answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/"):
			w.WriteHeader(http.StatusForbidden)
		case r.Method != http.MethodPatch:
			return false
		case patches.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case patches.Load() == 3:
			w.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	})
	_, err := pushTo(t.Context(), uploads(t, g.host), oci.PushOptions{Jobs: 1, Sink: &events})
	if report.CodeOf(err) != report.Unavailable {
		t.Error(err)
	}
	var notes []string
	for _, e := range events.Events() {
		if e.State == report.Warning {
			notes = append(notes, e.Note)
		}
	}
	text := strings.Join(notes, "\n")
	if len(notes) != 2 || !strings.Contains(text, "EOF; the next attempt is in 250ms") || !strings.Contains(text, "404 Not Found; it is sent again from its start") {
		t.Errorf("warnings:\n%s", text)
	}
	if all := events.Events(); all[len(all)-1].State != report.Failed || all[len(all)-1].Name != g.host {
		t.Errorf("the last event is %+v", all[len(all)-1])
	}
}

// TestPushOfDamagedArchive uploads a layer that does not have its digest.
func TestPushOfDamagedArchive(t *testing.T) {
	g := newTarget(t)
	list := uploads(t, g.host)
	for i := range list[0].Image.Blobs {
		b := &list[0].Image.Blobs[i]
		b.Open = func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(make([]byte, b.Size))), nil
		}
	}
	_, err := pushTo(t.Context(), list, oci.PushOptions{})
	if report.CodeOf(err) != report.Corrupt || g.tags.Load() != 0 {
		t.Errorf("%v, %d tags", err, g.tags.Load())
	}
}

// TestPushOfChangingArchive changes a layer after the registry has taken a part of it and lost the connection. The upload is not completed,
// although this registry would take anything.
func TestPushOfChangingArchive(t *testing.T) {
	for name, change := range map[string]int{"in the part that was sent": 0, "in the rest": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			g := newTarget(t)
			list := uploads(t, g.host)[:1]
			blob := &list[0].Image.Blobs[1]
			genuine, err := blob.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(genuine)
			if err != nil {
				t.Fatal(err)
			}
			blob.Open = func(_ context.Context, offset int64) (io.ReadCloser, error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				return io.NopCloser(bytes.NewReader(bytes.Clone(data[offset:]))), nil
			}
			var sent atomic.Int64
			g.answer(func(_ http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodPut && strings.Contains(r.URL.RawQuery, blob.Digest.Hex):
					t.Error("the upload is completed")
				case r.Method != http.MethodPatch || r.ContentLength < blob.Size:
				case sent.Add(1) == 1:
					part, _ := io.ReadAll(io.LimitReader(r.Body, blob.Size/2))
					g.mu.Lock()
					g.parts[r.URL.Path] = part
					data[change] ^= 1
					g.mu.Unlock()
					panic(http.ErrAbortHandler)
				}
				return false
			})
			_, err = pushTo(t.Context(), list, oci.PushOptions{Jobs: 1})
			if report.CodeOf(err) != report.Corrupt || sent.Load() != 1 || g.tags.Load() != 0 {
				t.Errorf("%v, broken off %d times, %d tags", err, sent.Load(), g.tags.Load())
			}
		})
	}
}

// TestPushOfUnreadableArchive has a medium that fails: the error is that of the medium, and the registry is not asked again.
func TestPushOfUnreadableArchive(t *testing.T) {
	g := newTarget(t)
	list := uploads(t, g.host)
	broken := errors.New("input/output error")
	var opened atomic.Int64
	blob := &list[0].Image.Blobs[1]
	blob.Open = func(context.Context, int64) (io.ReadCloser, error) {
		opened.Add(1)
		return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 10)), iotest.ErrReader(broken))), nil
	}
	_, err := pushTo(t.Context(), list, oci.PushOptions{})
	if !errors.Is(err, broken) || report.CodeOf(err) == report.Unavailable || opened.Load() != 1 || g.tags.Load() != 0 {
		t.Errorf("%v, read %d times, %d tags", err, opened.Load(), g.tags.Load())
	}
}

// TestPushToClosedPort names the registry, and no flag that a push does not have.
func TestPushToClosedPort(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	_, err := pushTo(t.Context(), uploads(t, host), oci.PushOptions{})
	if hints := report.Hints(err); report.CodeOf(err) != report.Unavailable || !slices.Equal(hints, []string{"check that " + host + " can be reached from here"}) {
		t.Errorf("%v, hints %q", err, hints)
	}
}

// TestPushOverPlainHTTP refuses to send logins and images without TLS to a registry that was not named for it.
func TestPushOverPlainHTTP(t *testing.T) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	g := newTarget(t)
	transport.Proxy = nil
	transport.DialContext = toHost(g.host).DialContext
	list := uploads(t, "10.1.2.3:5000")
	_, err := pushTo(t.Context(), list, oci.PushOptions{Transport: transport})
	if report.CodeOf(err) != report.Unavailable || !strings.Contains(strings.Join(report.Hints(err), ""), "--plain-http 10.1.2.3:5000") {
		t.Errorf("%v, hints %q", err, report.Hints(err))
	}
	if _, err = pushTo(t.Context(), list, oci.PushOptions{Transport: transport, PlainHTTP: []string{"10.1.2.3:5000"}}); err != nil {
		t.Error(err)
	}
}
