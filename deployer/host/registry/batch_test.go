package registry_test

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/host/registry"
)

// socket counts its writes, and fails from one call on.
type socket struct {
	net.Conn
	calls, closed *atomic.Int64
	failing       int64 // the first call that fails; 0: none does
}

func (s *socket) Write(p []byte) (int, error) {
	if n := s.calls.Add(1); s.failing > 0 && n >= s.failing {
		return 0, errors.New("no buffer space available")
	}
	return s.Conn.Write(p)
}

func (s *socket) Close() error {
	s.closed.Add(1)
	return s.Conn.Close()
}

// sockets is a listener whose connections are counted together.
type sockets struct {
	net.Listener
	calls, closed atomic.Int64
	failing       int64
}

func (l *sockets) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &socket{c, &l.calls, &l.closed, l.failing}, err
}

// serveTLS serves an archive with one layer, as 'deploy serve' does with a certificate.
func serveTLS(t *testing.T, l *sockets, size int64) (client *http.Client, layer, blob string, r *served) {
	t.Helper()
	p := newProject(t, "big", "1.0.0")
	large := image(t, 12, size)
	p.add("data:1", large)
	layer = must(must(large.Layers())(t)[0].Digest())(t).String()
	r = serve(t, registry.Options{}, open(t, p.write()))
	certified := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate, and a client that trusts it
	t.Cleanup(certified.Close)
	server := registry.NewServer(r.Config.Handler)
	server.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates} //nolint:gosec // TLS 1.2 is Go's default
	l.Listener = must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.ServeTLS(registry.Batched(l), "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	client = certified.Client()
	return client, layer, "https://" + l.Addr().String() + "/v2/big-1.0.0/data/blobs/" + layer, r
}

// TestBatches: a blob goes through TLS as it is, whole and in ranges, with a call for many records.
func TestBatches(t *testing.T) {
	const size = 4<<20 + 12345
	var l sockets
	client, layer, blob, _ := serveTLS(t, &l, size)
	get := func(ranges string) string {
		request := must(http.NewRequestWithContext(t.Context(), http.MethodGet, blob, http.NoBody))(t)
		if ranges != "" {
			request.Header.Set("Range", ranges)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it is read to its end
		return string(must(io.ReadAll(answer.Body))(t))
	}
	whole := get("")
	if fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(whole))) != layer {
		t.Fatalf("%d bytes, not those of the layer", len(whole))
	}
	if calls, most := l.calls.Load(), int64(size/(128<<10)+10); calls > most {
		t.Errorf("%d calls for %d bytes, want at most %d", calls, size, most)
	}
	for _, test := range []struct{ ranges, want string }{
		{"bytes=0-0", whole[:1]},
		{"bytes=131071-131072", whole[131071:131073]},
		{"bytes=1000-1000000", whole[1000:1000001]},
		{"bytes=-5", whole[len(whole)-5:]},
	} {
		if got := get(test.ranges); got != test.want {
			t.Errorf("%s: %d bytes, want %d", test.ranges, len(got), len(test.want))
		}
	}
	if got := get("bytes=0-9,100-109"); !strings.Contains(got, whole[:10]) || !strings.Contains(got, whole[100:110]) {
		t.Errorf("two ranges are not both in\n%q", got)
	}
	if l.closed.Load() != 0 {
		t.Error("the connection was not used again")
	}
}

// TestLostBatch: a connection on which a batch was not sent is not used again, because records are missing.
func TestLostBatch(t *testing.T) {
	l := sockets{failing: 8} // in the middle of the blob
	client, _, blob, r := serveTLS(t, &l, 4<<20)
	request := must(http.NewRequestWithContext(t.Context(), http.MethodGet, blob, http.NoBody))(t)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is read to its end
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("%d bytes arrived as if they were all", n)
	}
	if l.closed.Load() == 0 {
		t.Error("the connection is still open")
	}
	if got := r.metric(t, "solutionctl_registry_damaged_total"); got != 0 {
		t.Errorf("damaged: %v", got)
	}
}
