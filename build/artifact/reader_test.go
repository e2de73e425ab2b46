package artifact_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// read opens an archive in a registry for reading.
func (s *server) read(t *testing.T, ctx context.Context) *artifact.Reader {
	t.Helper()
	resolver := oci.NewResolver(oci.Options{})
	t.Cleanup(func() { _ = resolver.Close() })
	remote, err := artifact.Open(ctx, resolver, s.reference)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := remote.Reader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return reader
}

// large returns an archive with blobs of more and of less than 1 MiB.
func large(t *testing.T) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	return layouttest.Archive(t, "1.0.0", layouttest.Noise(r, 3<<20), layouttest.Noise(r, 100_000), layouttest.Noise(r, 5<<20+7))
}

// TestReaderReadsOnce reads an archive from its beginning to its end: every byte is that of the archive, and is fetched once.
func TestReaderReadsOnce(t *testing.T) {
	data, s := large(t), newServer(t, true)
	s.push(t, data, s.reference.Tag)
	s.served.Store(0)
	reader := s.read(t, t.Context())
	document := s.served.Load() // the layout
	got := bytes.Buffer{}
	if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, io.NewSectionReader(reader, 0, reader.Size()), make([]byte, 256<<10)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), data) {
		t.Fatal("the archive that was read differs from the one that was pushed")
	}
	if served := s.served.Load() - document; served != reader.Fetched() || served > int64(len(data)) {
		t.Errorf("the registry sent %d bytes, the reader counts %d, the archive has %d", served, reader.Fetched(), len(data))
	}
}

// TestReaderAnywhere reads at random places, by several goroutines at once.
func TestReaderAnywhere(t *testing.T) {
	data, s := large(t), newServer(t, true)
	s.push(t, data, s.reference.Tag)
	reader := s.read(t, t.Context())
	var readers sync.WaitGroup
	for seed := range uint64(6) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 9))
			for range 40 {
				at := r.IntN(len(data))
				piece := make([]byte, 1+r.IntN(min(200_000, len(data)-at)))
				if n, err := reader.ReadAt(piece, int64(at)); n != len(piece) || !bytes.Equal(piece, data[at:at+n]) {
					t.Errorf("%d bytes at %d: %d bytes, error %v", len(piece), at, n, err)
				}
			}
		})
	}
	readers.Wait()
	if n, err := reader.ReadAt(make([]byte, 10), int64(len(data))-4); n != 4 || err != io.EOF { //nolint:errorlint // ReaderAt returns EOF bare
		t.Errorf("at the end: %d bytes, error %v", n, err)
	}
}

// TestReaderFailures reads from registries that lie or fail: the small blob is compared with its digest, the large one is not, and the
// signature of the archive decides about it.
func TestReaderFailures(t *testing.T) {
	data := large(t)
	for _, test := range []struct {
		name  string
		spoil func(w http.ResponseWriter, r *http.Request) bool
		code  report.Code
	}{
		{"blobs are gone", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
				http.NotFound(w, r)
				return true
			}
			return false
		}, report.Invalid},
		{"blobs of other bytes", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
				return false
			}
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(make([]byte, 100_000))
			return true
		}, report.Corrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, true)
			s.push(t, data, s.reference.Tag)
			reader := s.read(t, t.Context())
			s.spoil = test.spoil
			at := int64(bytes.Index(data, layouttest.Noise(rand.New(rand.NewPCG(3, 4)), 3<<20)[:64])) // of the first blob
			_, err := reader.ReadAt(make([]byte, 100), at+3<<20)
			if err == nil {
				_, err = io.Copy(io.Discard, io.NewSectionReader(reader, 0, reader.Size()))
			}
			if err == nil || test.code != report.Invalid && report.CodeOf(err) != test.code {
				t.Errorf("error %v of code %q, want %q", err, report.CodeOf(err), test.code)
			}
		})
	}
}

// TestReaderEnds ends the context of a reader: it fails, and leaves no stream.
func TestReaderEnds(t *testing.T) {
	data, s := large(t), newServer(t, true)
	s.push(t, data, s.reference.Tag)
	ctx, stop := context.WithCancel(t.Context())
	reader := s.read(t, ctx)
	stop()
	if _, err := reader.ReadAt(make([]byte, 1000), 2<<20); err == nil {
		t.Error("an ended reader reads")
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// TestReaderFaults reads from a registry that fails at every third request.
func TestReaderFaults(t *testing.T) {
	data := large(t)
	for name, fault := range map[string]func(w http.ResponseWriter){
		"500": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"429": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"connections that end": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, true)
			s.push(t, data, s.reference.Tag)
			s.calls.Store(0)
			s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if s.calls.Load()%3 != 0 || r.URL.Path == "/v2/" {
					return false
				}
				fault(w)
				return true
			}
			reader := s.read(t, t.Context())
			for _, at := range []int64{6 << 20, 0} { // from the end to the beginning: with requests for ranges
				part := make([]byte, min(reader.Size()-at, 6<<20))
				if n, err := reader.ReadAt(part, at); n < len(part) || !bytes.Equal(part, data[at:at+int64(n)]) {
					t.Errorf("%d of %d bytes at %d are right: %v", n, len(part), at, err)
				}
			}
		})
	}
}
