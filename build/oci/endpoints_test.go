package oci_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMirrors(t *testing.T) {
	reg := newRegistry(t)
	origin := newRegistry(t)
	for _, test := range []struct {
		name, source string
		mirrors      map[string][]string
		fromMirror   bool
	}{
		{"registry", "registry.invalid/acme/operator:1.0.0", map[string][]string{"registry.invalid": {reg.host}}, true},
		{"longest prefix", "registry.invalid/x/operator:1.0.0", map[string][]string{"registry.invalid": {"nowhere.invalid"}, "registry.invalid/x": {"http://" + reg.host + "/acme"}}, true},
		{"docker hub", "operator:1.0.0", map[string][]string{"docker.io/library": {reg.host + "/acme/"}}, true},
		{"docker hub by its other name", "operator:1.0.0", map[string][]string{"index.docker.io/library": {reg.host + "/acme/"}}, true},
		{"second", "registry.invalid/acme/operator:1.0.0", map[string][]string{"registry.invalid": {reg.host + "/wrong", reg.host}}, true},
		{"fallback", origin.host + "/acme/operator:1.0.0", map[string][]string{origin.host: {reg.host + "/wrong"}}, false},
		{"other prefix", origin.host + "/acme/operator:1.0.0", map[string][]string{origin.host + "/acm": {reg.host}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, _ := patient(t, oci.Options{Mirrors: test.mirrors})
			image, err := r.Resolve(t.Context(), testRef, "docker://"+test.source)
			if err != nil {
				t.Fatal(err)
			}
			want, err := reg.image.Digest()
			if !test.fromMirror {
				want, err = origin.image.Digest()
			}
			if err != nil || image.Root.Digest != want {
				t.Errorf("root is %s, want %s", image.Root.Digest, want)
			}
			checkContent(t, image)
			if full := strings.TrimPrefix(test.source, "docker://"); !strings.HasSuffix(image.Origin, full) {
				t.Errorf("origin is %q, want that of the registry, %q", image.Origin, full)
			}
		})
	}
	for _, mirror := range []string{"ftp://x", "http://user:secret@" + reg.host, "", "https://"} {
		r, _ := patient(t, oci.Options{Mirrors: map[string][]string{"a.invalid": {mirror}}})
		_, err := r.Resolve(t.Context(), testRef, "docker://a.invalid/b:1")
		checkError(t, err, report.Invalid, "mirror", "[http://]HOST")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q tells a password", err)
		}
	}
}

// A mirror that fails is named, whether or not the registry has the image.
func TestFailingMirror(t *testing.T) {
	reg := newRegistry(t)
	mirrors := map[string][]string{reg.host: {"http://127.0.0.1:1"}}
	r, _ := patient(t, oci.Options{Mirrors: mirrors})
	image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	if err != nil || !strings.Contains(image.Note, "mirror 127.0.0.1:1 was passed over: ") {
		t.Errorf("%v, note %q", err, image.Note)
	}
	_, err = r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/gone:1")
	checkError(t, err, report.Invalid, "mirror 127.0.0.1:1 was passed over: ", "check the name of the image")
}

// A registry that accepts connections and never answers is given up soon, with an error about that.
func TestMuteRegistry(t *testing.T) {
	var requests atomic.Int64
	release := make(chan struct{})
	host := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1); <-release })
	t.Cleanup(func() { close(release) })
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.TLSHandshakeTimeout = 20*time.Millisecond, 20*time.Millisecond
	r, waits := patient(t, oci.Options{Transport: transport, PlainHTTP: []string{host}})
	_, err := r.Resolve(t.Context(), testRef, "docker://"+host+"/acme/operator:1.0.0")
	checkError(t, err, report.Unavailable, "it takes connections and does not answer", "check that "+host+" is a registry")
	if waits.Load() != 1 {
		t.Errorf("waited %d times", waits.Load())
	}

	reg := newRegistry(t) // and a mute mirror does not stand in the way of the registry
	r, _ = patient(t, oci.Options{
		Transport: byHost{host: transport, reg.host: http.DefaultTransport},
		Mirrors:   map[string][]string{reg.host: {"http://" + host}},
	})
	image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	if err != nil || !strings.Contains(image.Note, "does not answer") {
		t.Errorf("%v, image %v", err, image)
	}
}

// byHost has a transport for each host.
type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Host].RoundTrip(req)
}

// recorder keeps the events of a test that asks for one thing at a time.
type recorder []report.Event

func (r *recorder) Emit(e report.Event) { *r = append(*r, e) }

// A pause that people notice is reported, and is no longer than half a minute whatever the registry asks for.
func TestLongPauseIsReported(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	var events recorder
	r, waits := patient(t, oci.Options{Sink: &events})
	_, err := r.Resolve(t.Context(), testRef, "docker://"+host+"/acme/operator:1.0.0")
	checkError(t, err, report.Unavailable, "429 Too Many Requests, to be asked again after 1h0m0s", "--mirror")
	if int64(len(events)) != waits.Load() || len(events) == 0 || events[0].State != report.Warning || !strings.Contains(events[0].Note, "the next attempt is in 30s") {
		t.Errorf("waited %d times, reported %v", waits.Load(), events)
	}
}

// A mirror that answers with another manifest than the one asked for is passed over.
func TestWrongMirror(t *testing.T) {
	reg := newRegistry(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: reg.host})
	mirror := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/sha256:") {
			r.URL.Path = "/v2/acme/operator/manifests/multi"
		}
		proxy.ServeHTTP(w, r)
	})
	image := resolve(t, oci.Options{Mirrors: map[string][]string{reg.host: {mirror}}}, "docker://"+reg.host+"/acme/operator:multi")
	if want, err := reg.index.Digest(); err != nil || image.Root.Digest != want || len(image.Manifests) != 3 {
		t.Errorf("root is %s with %d manifests, want %s with 3: %v", image.Root.Digest, len(image.Manifests), want, err)
	}
}

// keychain is a docker configuration with one login.
type keychain struct{ user, password string }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig{Username: k.user, Password: k.password}), nil
}

func TestTokens(t *testing.T) {
	reg := newRegistry(t)
	var tokens atomic.Int64
	reg.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		want := fmt.Sprintf("Bearer token-%d", tokens.Load())
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))
		switch {
		case r.URL.Path == "/token" && r.Header.Get("Authorization") == basic:
			_, _ = fmt.Fprintf(w, `{"token":"token-%d"}`, tokens.Add(1))
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") == want && tokens.Load() > 0:
			if isBlob(r) && strings.HasPrefix(r.Header.Get("Range"), "bytes=5000-") {
				tokens.Add(1) // earlier tokens are void from now on
				cutting(2000)(w, r, next)
				return
			}
			cutting(5000)(w, r, next)
		default:
			if tokens.Load() > 0 && isBlob(r) {
				tokens.Store(tokens.Load() + 10)
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+reg.host+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	r, _ := patient(t, oci.Options{Keychain: keychain{"me", "secret"}})
	image, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if err = readAll(t.Context(), image.Blobs[1]); err != nil {
		t.Errorf("a token that ends between two connections ends the blob: %v", err)
	}
	if tokens.Load() < 2 {
		t.Error("the token did not end")
	}

	wrong, _ := patient(t, oci.Options{Keychain: keychain{"me", "hunter2"}})
	_, err = wrong.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
	checkError(t, err, report.Unavailable, "401", "docker login "+reg.host)
	if strings.Contains(fmt.Sprint(err, report.Hints(err)), "hunter2") {
		t.Errorf("%v tells the password", err)
	}
}

// A registry with an untrusted certificate is not asked again and again.
func TestUntrustedCertificate(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	r, waits := patient(t, oci.Options{Transport: toHost(server.Listener.Addr().String())})
	_, err := r.Resolve(t.Context(), testRef, "docker://registry.example.com/x:1")
	checkError(t, err, report.Unavailable, "certificate", "add the authority")
	if waits.Load() != 0 || requests.Load() != 0 {
		t.Errorf("waited %d times, %d requests", waits.Load(), requests.Load())
	}
}

// TestCertificateHints: each reason for which a certificate is refused has its own remedy.
func TestCertificateHints(t *testing.T) {
	for _, test := range []struct {
		name, certifiedHost string
		expires             time.Time
		hint                string
	}{
		{"expired", "registry.example.com", time.Now().Add(-time.Hour), "the certificate of registry.example.com has to be renewed there; check the clock of this host as well"},
		{"for another host", "other.example.com", time.Now().Add(time.Hour), "ask for the registry by a name that its certificate has, or have one made for registry.example.com"},
	} {
		t.Run(test.name, func(t *testing.T) {
			certificate, pool := selfSigned(t, test.certifiedHost, test.expires)
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			t.Cleanup(server.Close)
			transport := toHost(server.Listener.Addr().String())
			transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
			r, waits := patient(t, oci.Options{Transport: transport})
			_, err := r.Resolve(t.Context(), testRef, "docker://registry.example.com/x:1")
			checkError(t, err, report.Unavailable, "certificate", test.hint)
			if waits.Load() != 0 {
				t.Errorf("waited %d times", waits.Load())
			}
		})
	}
}

// selfSigned returns a certificate for a host, and a pool that trusts it.
func selfSigned(t *testing.T, host string, expires time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: expires.Add(-24 * time.Hour), NotAfter: expires,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// toHost connects to one address whatever the host.
func toHost(address string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}}
}

// wires sends requests for any host to one server, as a private network would; it notes those without TLS.
type wires struct {
	host  string
	plain []string
}

func (w *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "https" { // the error of a server without TLS
		return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: http.ErrSchemeMismatch}
	}
	w.plain = append(w.plain, req.URL.Host)
	there := req.Clone(req.Context())
	there.URL.Host = w.host
	return http.DefaultTransport.RoundTrip(there)
}

// TestPlainHTTP: a registry at a private address, or of any other name, is asked without TLS only on request.
func TestPlainHTTP(t *testing.T) {
	reg := newRegistry(t)
	for _, test := range []struct {
		name, host string
		plain      []string
		mirror     string
		good       bool
	}{
		{name: "private address", host: "10.1.2.3:5000"},
		{name: "private address without port", host: "192.168.1.1"},
		{name: "name", host: "registry.corp.example:5000"},
		{name: "local name", host: "registry.local:5000"},
		{name: "another was named", host: "10.1.2.3:5000", plain: []string{"10.1.2.4:5000"}},
		{name: "mirror at a private address", host: "registry.invalid", mirror: "10.1.2.3:5000"},
		{name: "named address", host: "10.1.2.3:5000", plain: []string{"10.1.2.3:5000"}, good: true},
		{name: "named name", host: "registry.corp.example:5000", plain: []string{"registry.corp.example:5000"}, good: true},
		{name: "mirror that says so", host: "registry.invalid", mirror: "http://10.1.2.3:5000", good: true},
		{name: "this machine", host: "127.0.0.1:5000", good: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &wires{host: reg.host}
			o := oci.Options{Transport: w, PlainHTTP: test.plain}
			if test.mirror != "" {
				o.Mirrors = map[string][]string{test.host: {test.mirror}}
			}
			r, _ := patient(t, o)
			_, err := r.Resolve(t.Context(), testRef, "docker://"+test.host+"/acme/operator:1.0.0")
			if test.good {
				if err != nil {
					t.Error(err)
				}
				return
			}
			checkError(t, err, report.Unavailable, test.host, "--plain-http "+test.host)
			if len(w.plain) > 0 {
				t.Errorf("%q were asked without TLS", w.plain)
			}
		})
	}
}
