package oci_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// testRegistry is a registry whose answers a test can spoil.
type testRegistry struct {
	host     string
	image    v1.Image
	index    v1.ImageIndex
	mu       sync.Mutex
	spoil    func(w http.ResponseWriter, r *http.Request, next http.Handler)
	requests []string
}

func newRegistry(t *testing.T) *testRegistry {
	t.Helper()
	reg := &testRegistry{}
	backend := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reg.mu.Lock()
		spoil := reg.spoil
		reg.requests = append(reg.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
		reg.mu.Unlock()
		next := ranges(backend)
		if spoil != nil {
			spoil(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	reg.host = strings.TrimPrefix(server.URL, "http://")

	image, err := random.Image(100_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: rootFS(t, image)}); err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(emptyIndex(t), "application/vnd.oci.image.index.v1+json"),
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platformOf("linux/amd64")}})
	reg.image, reg.index = image, index
	if err := remote.Write(reg.tag(t, "1.0.0"), image); err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reg.tag(t, "multi"), index); err != nil {
		t.Fatal(err)
	}
	return reg
}

func rootFS(t *testing.T, image v1.Image) v1.RootFS {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS
}

func emptyIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	index, err := random.Index(10, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func (reg *testRegistry) tag(t *testing.T, tag string) name.Tag {
	t.Helper()
	ref, err := name.NewTag(reg.host + "/acme/operator:" + tag)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (reg *testRegistry) set(spoil func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.spoil, reg.requests = spoil, nil
}

func (reg *testRegistry) count(prefix string) int {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	n := 0
	for _, r := range reg.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// ranges teaches the registry of go-containerregistry the open ranges "bytes=N-" that every real one knows.
func ranges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, ok := openRange(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Range")
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, r)
		body := whole.Body.Bytes()
		if whole.Code != http.StatusOK {
			w.WriteHeader(whole.Code)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(body[from:])
	})
}

func openRange(r *http.Request) (int, bool) {
	text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	start, _, _ := strings.Cut(text, "-")
	from, err := strconv.Atoi(start)
	return from, ok && err == nil
}

func isBlob(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") }

// cutting answers requests for blobs with at most n bytes of the body and then breaks the connection.
func cutting(n int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !isBlob(r) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&cutWriter{ResponseWriter: w, left: n}, r)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// patient returns a resolver that does not wait between attempts, but counts.
func patient(t *testing.T, o oci.Options) (*oci.Resolver, *atomic.Int64) {
	t.Helper()
	if o.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		o.Transport = transport
	}
	r := newResolver(t, o)
	var waits atomic.Int64
	r.SetWait(func(ctx context.Context, _ time.Duration) error {
		waits.Add(1)
		return ctx.Err()
	})
	return r, &waits
}

func TestRegistry(t *testing.T) {
	reg := newRegistry(t)
	digest, err := reg.image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := reg.index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source, root, origin string
		manifests            int
	}{
		{"acme/operator:1.0.0", digest.String(), "/acme/operator:1.0.0", 1},
		{"acme/operator@" + digest.String(), digest.String(), "/acme/operator@" + digest.String(), 1},
		{"acme/operator:1.0.0@" + digest.String(), digest.String(), "/acme/operator:1.0.0", 1},
		{"acme/operator:multi", index.String(), "/acme/operator:multi", 3},
	} {
		t.Run(test.source, func(t *testing.T) {
			image := resolve(t, oci.Options{}, "docker://"+reg.host+"/"+test.source)
			if image.Root.Digest.String() != test.root || image.Origin != reg.host+test.origin || len(image.Manifests) != test.manifests {
				t.Errorf("%s from %q with %d manifests", image.Root.Digest, image.Origin, len(image.Manifests))
			}
		})
	}
}

func TestRegistryFaults(t *testing.T) {
	reg := newRegistry(t)
	digest, err := reg.image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ignoreRange := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Range")
		next.ServeHTTP(w, r)
	}
	var calls atomic.Int64
	status := func(code int, times int64) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if calls.Add(1) <= times {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(code)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	growing := func(w http.ResponseWriter, r *http.Request, next http.Handler) { // ignores Range, but gets further each time
		r.Header.Del("Range")
		if isBlob(r) {
			calls.Add(1)
		}
		cutting(int(calls.Load())*30_000)(w, r, next)
	}
	halves := func(w http.ResponseWriter, r *http.Request, next http.Handler) { // of the first two manifests
		if isBlob(r) || calls.Add(1) > 2 {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&cutWriter{ResponseWriter: w, left: 100}, r)
	}
	for _, test := range []struct {
		name  string
		spoil func(http.ResponseWriter, *http.Request, http.Handler)
		waits bool
	}{
		{"manifest broken off twice", halves, true},
		{"connection broken every 30000 bytes", cutting(30_000), true},
		{"range ignored", ignoreRange, false},
		{"range ignored and connection broken", growing, true},
		{"429 twice", status(http.StatusTooManyRequests, 2), true},
		{"503 twice", status(http.StatusServiceUnavailable, 2), true},
		{"none", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls.Store(0)
			reg.set(test.spoil)
			r, waits := patient(t, oci.Options{})
			image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			checkContent(t, image)
			if image.Root.Digest != digest {
				t.Errorf("root is %s, want %s", image.Root.Digest, digest)
			}
			if (waits.Load() > 0) != test.waits {
				t.Errorf("waited %d times", waits.Load())
			}
		})
	}
}

func TestRegistryErrors(t *testing.T) {
	reg := newRegistry(t)
	always := func(code int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path == "/v2/" {
				next.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	other := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.URL.Path = strings.Replace(r.URL.Path, "manifests/sha256:"+strings.Repeat("0", 64), "manifests/1.0.0", 1)
		next.ServeHTTP(w, r)
	}
	for _, test := range []struct {
		name, source  string
		spoil         func(http.ResponseWriter, *http.Request, http.Handler)
		code          report.Code
		message, hint string
	}{
		{"typo", "acme/operator:1.0.1", nil, report.Invalid, "404", "the repository has the tags 1.0.0, multi"},
		{"no such repository", "acme/nothing:1", nil, report.Invalid, "404", "check the name"},
		{"not logged in", "acme/operator:1.0.0", always(401, ""), report.Unavailable, "401 Unauthorized", "docker login " + reg.host},
		{"denied", "acme/operator:1.0.0", always(403, `{"errors":[{"code":"DENIED","message":"no pull\nfor you"}]}`), report.Unavailable, "(no pull for you)", "docker login"},
		{"limit", "acme/operator:1.0.0", always(429, ""), report.Unavailable, "429", "--mirror"},
		{"down", "acme/operator:1.0.0", always(502, ""), report.Unavailable, "502", "--mirror " + reg.host + "="},
		{"wrong manifest", "acme/operator@sha256:" + strings.Repeat("0", 64), other, report.Corrupt, "answered with the manifest", ""},
		{"too large", "acme/operator:1.0.0", always(200, strings.Repeat(" ", 9<<20)), report.Invalid, "more than 8388608 bytes", ""},
		{"not a manifest", "acme/operator:1.0.0", always(200, `{"schemaVersion":2}`), report.Invalid, "not an image manifest", ""},
		{"bad reference", "Acme:1", nil, report.Invalid, "not an image reference", "docker://REGISTRY"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg.set(test.spoil)
			r, _ := patient(t, oci.Options{})
			source := "docker://" + reg.host + "/" + test.source
			if test.name == "bad reference" {
				source = "docker://" + test.source
			}
			_, err := r.Resolve(t.Context(), testRef, source)
			checkError(t, err, test.code, test.message, test.hint)
		})
	}
}

func TestBlobErrors(t *testing.T) {
	reg := newRegistry(t)
	silent := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !isBlob(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	shorter := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !isBlob(r) {
			next.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, "short")
	}
	wrongRange := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if from, ok := openRange(r); ok && isBlob(r) {
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from+1))
		}
		cutting(1000)(w, r, next)
	}
	flipped := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !isBlob(r) {
			next.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, r)
		body := whole.Body.Bytes()
		body[len(body)/2] ^= 1
		_, _ = w.Write(body)
	}
	for _, test := range []struct {
		name    string
		spoil   func(http.ResponseWriter, *http.Request, http.Handler)
		code    report.Code
		message string
	}{
		{"nothing comes", silent, report.Unavailable, "stopped after 0 of"},
		{"broken before the first byte", cutting(0), report.Unavailable, "stopped after 0 of"},
		{"shorter", shorter, report.Corrupt, "it has 5 bytes, in its manifest"},
		{"wrong range", wrongRange, report.Corrupt, "answered with the range"},
		{"wrong bytes", flipped, report.Corrupt, "its bytes have the digest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg.set(nil)
			r, _ := patient(t, oci.Options{})
			if test.name == "nothing comes" {
				r.SetIdle(time.Millisecond)
			}
			image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			reg.set(test.spoil)
			err = readAll(t.Context(), image.Blobs[1])
			checkError(t, err, test.code, test.message, "")
		})
	}
}

func readAll(ctx context.Context, b oci.Blob) error {
	r, err := b.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(io.Discard, oci.VerifyReader(r, b.Descriptor))
	return err
}

func TestBlobReadEndsWithItsContext(t *testing.T) {
	reg := newRegistry(t)
	r, _ := patient(t, oci.Options{})
	image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	reg.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(make([]byte, 100))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	body, err := image.Blobs[1].Open(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if _, err := io.ReadFull(body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := body.Read(make([]byte, 1)); err != context.Canceled { //nolint:errorlint // exactly the context's error
		t.Errorf("Read = %v, want %v", err, context.Canceled)
	}
}

// A layer is fetched once, from its first byte to its last, and a manifest once for all images with one source.
func TestRegistryIsReadOnce(t *testing.T) {
	reg := newRegistry(t)
	reg.set(nil)
	r, _ := patient(t, oci.Options{})
	again := schema.ImageRef{Name: testRef.Name, Tag: "again"}
	if _, err := r.Resolve(t.Context(), again, "docker://"+reg.host+"/acme/operator:1.0.0"); err != nil {
		t.Fatal(err)
	}
	image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	if err != nil || image.Ref != testRef {
		t.Fatalf("%v: %v", image.Ref, err)
	}
	for _, b := range image.Blobs {
		if err := readAll(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if n := reg.count("GET /v2/acme/operator/blobs/"); n != len(image.Blobs) {
		t.Errorf("%d requests for %d blobs", n, len(image.Blobs))
	}
	if n := reg.count("GET /v2/acme/operator/manifests/"); n != 1 {
		t.Errorf("%d requests for one manifest", n)
	}
}
