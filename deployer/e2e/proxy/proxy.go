// Package proxy stands between a client and the API server of a test cluster, and sometimes in the way.
//
// A [Proxy] speaks HTTP/2 over TLS, as an API server does, and passes everything on as the administrator of the cluster.
// Each [Fault] sees each request first: it answers it instead of the server, loses it or its answer, or lets it pass. A
// [Journal] keeps what the clients of several proxies asked for, in one order.
package proxy

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// Proxy passes requests on to an API server, unless one of its faults has other plans.
type Proxy struct {
	// Kubeconfig is a file for clients.
	Kubeconfig string

	server  *httptest.Server
	forward http.Handler

	mu     sync.Mutex
	faults []Fault
}

// New starts a proxy that ends with the test.
func New(tb testing.TB, c *testcluster.Cluster, faults ...Fault) *Proxy {
	tb.Helper()
	p, err := Start(c, faults...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Start starts a proxy, which the caller closes. Its kubeconfig is in the directory of the cluster.
func Start(c *testcluster.Cluster, faults ...Fault) (*Proxy, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	upstream, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval, forward.ErrorLog = upstream, -1, log.New(io.Discard, "", 0)
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	p := &Proxy{forward: forward, faults: faults}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	file, err := os.CreateTemp(c.Dir, "proxy-*.kubeconfig")
	if err == nil {
		p.Kubeconfig = file.Name()
		_, err = file.Write(p.kubeconfig())
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close ends the connections of clients, and the proxy.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

func (p *Proxy) kubeconfig() []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: %s
    certificate-authority-data: %s
users: [{name: u}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, p.server.URL, base64.StdEncoding.EncodeToString(authority))
}

// Set replaces the faults.
func (p *Proxy) Set(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// Reset ends all connections of clients at once.
func (p *Proxy) Reset() { p.server.CloseClientConnections() }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	faults := p.faults
	p.mu.Unlock()
	if !IsWatch(r) {
		// What the server has begun it finishes, also when its client has gone.
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	for _, fault := range faults {
		if fault(w, r, p.forward) {
			return
		}
	}
	p.forward.ServeHTTP(w, r)
}

// IsWatch reports whether a request is a watch.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// IsWrite reports whether a request changes deployed objects: it is not a dry run, a review, or a lock.
func IsWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && !strings.Contains(r.URL.Path, "/leases") &&
		!strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") && !strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
}
