package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/oci/ocitest"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// server is a registry in memory that counts the bytes of blobs, and that a test may answer for.
type server struct {
	reference artifact.Reference
	spoil     func(w http.ResponseWriter, r *http.Request) (answered bool)
	plain     http.Handler
	calls     atomic.Int64
	served    atomic.Int64 // bytes of blobs
	taken     atomic.Int64
}

func newServer(t *testing.T, referrers bool) *server {
	t.Helper()
	s := &server{plain: registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	reference, err := artifact.ParseReference("oci://" + strings.TrimPrefix(web.URL, "http://") + "/site/demo:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	s.reference = reference
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	if s.spoil != nil && s.spoil(w, r) {
		return
	}
	if r.Body != nil {
		r.Body = &counted{r.Body, &s.taken}
	}
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
		w = countedAnswer{w, &s.served}
	}
	s.plain.ServeHTTP(w, r)
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

type countedAnswer struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c countedAnswer) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func source(data []byte) layout.Source {
	return layout.Source{Name: "demo.iso", ReaderAt: bytes.NewReader(data), Size: int64(len(data))}
}

// push uploads an archive and returns the digest of the artifact.
func (s *server) push(t *testing.T, data []byte, tag string, bundles ...layout.Bundle) string {
	t.Helper()
	a, err := artifact.New(t.Context(), source(data), bundles, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: s.reference.Repository, Image: a.Image, Tags: []string{tag}}}, nil, oci.PushOptions{})
	if err == nil {
		err = p.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Image.Root.Digest.String()
}

func (s *server) pull(ctx context.Context, name string, have ...[]byte) (*artifact.Pulled, error) {
	resolver := oci.NewResolver(oci.Options{})
	defer resolver.Close() //nolint:errcheck // it has no files
	remote, err := artifact.Open(ctx, resolver, s.reference)
	if err != nil {
		return nil, err
	}
	o := artifact.PullOptions{Sink: report.Discard, Jobs: 1}
	for _, data := range have {
		o.Have = append(o.Have, source(data))
	}
	return remote.WriteFile(ctx, name, o)
}

// versions are two releases that share most of their bytes.
func versions(t *testing.T) (first, second []byte, changed int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	a, b, c, d := layouttest.Noise(r, 900_000), layouttest.Noise(r, 300_000), layouttest.Noise(r, 70_000), layouttest.Noise(r, 200_000)
	return layouttest.Archive(t, "1.0.0", a, b, c), layouttest.Archive(t, "1.1.0", a, c, d), int64(len(d))
}

// overhead is how many bytes a release may cost beside its changed blobs.
const overhead = 64 << 10

// TestPushPull brings two releases with signatures there and back, the second at the price of what changed.
func TestPushPull(t *testing.T) {
	for name, referrers := range map[string]bool{"referrers API": true, "tags": false} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, referrers)
			first, second, changed := versions(t)
			bundles := []layout.Bundle{{Data: []byte(`{"a":1}`)}, {Signer: "site", Data: []byte(`{"b":2}`)}}
			digest := s.push(t, first, "1.0.0", bundles...)
			before := s.taken.Load()
			if again := s.push(t, first, "1.0.0", bundles...); again != digest || s.taken.Load()-before > overhead {
				t.Errorf("pushed again: %s, want %s; %d bytes were sent", again, digest, s.taken.Load()-before)
			}
			before = s.taken.Load()
			s.push(t, second, "1.1.0", bundles...)
			if sent := s.taken.Load() - before; sent > changed+overhead {
				t.Errorf("the second release sent %d bytes, %d changed", sent, changed)
			}
			file := filepath.Join(t.TempDir(), "demo.iso")
			if _, err := s.pull(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			checkFile(t, file, first)
			s.reference.Tag = "1.1.0"
			before = s.served.Load()
			pulled, err := s.pull(t.Context(), file, first)
			if err != nil {
				t.Fatal(err)
			}
			checkFile(t, file, second)
			if got := s.served.Load() - before; got > changed+overhead || pulled.Fetched > changed+overhead || pulled.Had == 0 {
				t.Errorf("the second release got %d bytes (%+v), %d changed", got, pulled, changed)
			}
			checkBundles(t, s.reference, bundles)
			s.reference.Tag, s.reference.Digest = "", digest
			if _, err = s.pull(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			checkFile(t, file, first)
			checkBundles(t, s.reference, bundles)
		})
	}
}

// TestRealServer brings releases to real registries and back.
func TestRealServer(t *testing.T) {
	for name, start := range ocitest.Servers() {
		t.Run(name, func(t *testing.T) { checkRealServer(t, start(t)) })
	}
}

func checkRealServer(t *testing.T, address string) {
	t.Helper()
	reference, err := artifact.ParseReference("oci://" + address + "/site/demo:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{reference: reference}
	first, second, _ := versions(t)
	bundles := []layout.Bundle{{Data: []byte(`{"a":1}`)}, {Signer: "site", Data: []byte(`{"b":2}`)}}
	s.push(t, first, "1.0.0", bundles...)
	s.push(t, second, "1.1.0")
	described, bills, statements := about(t)
	digest := s.push(t, described, "1.2.0", bundles...)
	checkReferrers(t, s.reference, digest, "application/spdx+json", bills)
	checkReferrers(t, s.reference, digest, "application/vnd.openvex+json", statements)
	file := filepath.Join(t.TempDir(), "demo.iso")
	if _, err := s.pull(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	checkFile(t, file, first)
	checkBundles(t, s.reference, bundles)
	s.reference.Tag = "1.1.0"
	if _, err := s.pull(t.Context(), file, first); err != nil {
		t.Fatal(err)
	}
	checkFile(t, file, second)
	checkBundles(t, s.reference, nil)
}

// checkFile compares a file, which is alone in its directory.
func checkFile(t *testing.T, name string, want []byte) {
	t.Helper()
	if data, err := os.ReadFile(name); !bytes.Equal(data, want) || err != nil {
		t.Errorf("%d bytes, want the %d that were pushed: %v", len(data), len(want), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func checkBundles(t *testing.T, reference artifact.Reference, want []layout.Bundle) {
	t.Helper()
	remote, err := artifact.Open(t.Context(), oci.NewResolver(oci.Options{}), reference)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Bundles(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d signatures, want %d: %v", len(got), len(want), err)
	}
	for _, b := range want {
		found := false
		for _, other := range got {
			found = found || other.Signer == b.Signer && bytes.Equal(other.Data, b.Data)
		}
		if !found {
			t.Errorf("signature of %q is not in %+v", b.Signer, got)
		}
	}
}

// TestFaults pulls from a registry that fails at every n-th request.
func TestFaults(t *testing.T) {
	first, _, _ := versions(t)
	faults := map[string]func(s *server, w http.ResponseWriter, r *http.Request){
		"500": func(_ *server, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"429": func(_ *server, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"connections that end": func(*server, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"answers that break off": func(s *server, w http.ResponseWriter, r *http.Request) {
			s.plain.ServeHTTP(&breaking{w, 1000}, r)
		},
	}
	for name, fault := range faults {
		for _, every := range []int64{2, 3, 5} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, false)
				s.push(t, first, "1.0.0")
				s.calls.Store(0)
				s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
					if s.calls.Load()%every != 0 || r.URL.Path == "/v2/" {
						return false
					}
					fault(s, w, r)
					return true
				}
				file := filepath.Join(t.TempDir(), "demo.iso")
				if _, err := s.pull(t.Context(), file); err != nil {
					t.Fatal(err)
				}
				checkFile(t, file, first)
			})
		}
	}
}

// breaking is an answer whose connection ends after some bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p[:min(len(p), b.left)])
	if b.left -= n; b.left == 0 {
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// TestInterrupted stops a pull at many of its requests. The last one gets the rest.
func TestInterrupted(t *testing.T) {
	s := newServer(t, true)
	first, _, _ := versions(t)
	s.push(t, first, "1.0.0")
	file := filepath.Join(t.TempDir(), "demo.iso")
	for at := int64(1); at <= 12; at++ {
		ctx, stop := context.WithCancel(t.Context())
		s.calls.Store(0)
		s.spoil = func(http.ResponseWriter, *http.Request) bool {
			if s.calls.Load() == at {
				stop()
			}
			return false
		}
		_, err := s.pull(ctx, file)
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at request %d: %v", at, err)
		}
	}
	s.spoil = nil
	if _, err := s.pull(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	checkFile(t, file, first)
}

// TestContinued ends in the middle of the largest blob. The next pull asks for the rest of the archive, whether the bytes that arrived are
// good or not.
func TestContinued(t *testing.T) {
	for name, damage := range map[string]bool{"good": false, "damaged on the medium": true} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, true)
			first, _, _ := versions(t)
			s.push(t, first, "1.0.0")
			file := filepath.Join(t.TempDir(), "demo.iso")
			const arrived = 600_000
			largest := layouttest.Hex(layouttest.Noise(rand.New(rand.NewPCG(1, 2)), 900_000))
			asked := false
			s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, largest) {
					return false
				}
				if asked {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				asked = true
				s.plain.ServeHTTP(&breaking{w, arrived}, r)
				return true
			}
			if _, err := s.pull(t.Context(), file); report.CodeOf(err) != report.Unavailable {
				t.Fatalf("%v, want that the registry forbids it", err)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the file is there: %v", err)
			}
			if partial := durable.Partial(file); damage {
				data, err := os.ReadFile(partial)
				if err != nil {
					t.Fatal(err)
				}
				for at := 4096; at < len(data); at += 4096 {
					data[at] ^= 1
				}
				if err = os.WriteFile(partial, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.spoil = nil
			pulled, err := s.pull(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			checkFile(t, file, first)
			if (pulled.Kept >= arrived/2) == damage {
				t.Errorf("%+v", pulled)
			}
		})
	}
}
