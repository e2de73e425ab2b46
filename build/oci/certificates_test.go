package oci_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// secureRegistry serves the registry of a test with TLS, at a port of this machine that is called example.com, and asks for client certificates when it knows an authority of them.
func secureRegistry(t *testing.T, reg *testRegistry, clients *x509.CertPool) (host string, authority []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: reg.host}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if clients != nil {
		server.TLS = &tls.Config{ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return "example.com:" + port, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// clientCertificate makes a certificate that vouches for itself.
func clientCertificate(t *testing.T) (certificate, key []byte, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), pool
}

// TestCertsDirs: a registry is trusted by the certs.d directory of its host and port, and gets the client certificate
// there.
func TestCertsDirs(t *testing.T) {
	reg := newRegistry(t)
	certificate, key, clients := clientCertificate(t)
	open, authority := secureRegistry(t, reg, nil)
	closed, closedAuthority := secureRegistry(t, reg, clients)
	type files map[string][]byte
	for _, test := range []struct {
		name, host string
		dirs       []files // paths below each directory of certificates
		message    string  // "" for success
		hint       string
	}{
		{"authority", open, []files{{open + "/ca.crt": authority}}, "", ""},
		{"authority of any name, beside others", open, []files{{open + "/a.crt": certificate, open + "/corp.crt": authority, open + "/README": []byte("x")}}, "", ""},
		{"second directory", open, []files{{"registry.invalid/ca.crt": certificate}, {open + "/ca.crt": authority}}, "", ""},
		{"first directory counts", open, []files{{open + "/ca.crt": certificate}, {open + "/ca.crt": authority}}, "certificate", "ca.crt"},
		{"other host", open, []files{{"example.com/ca.crt": authority}}, "certificate", filepath.Join(open, "ca.crt")},
		{"not PEM", open, []files{{open + "/ca.crt": []byte("x")}}, "there is no certificate in it", "PEM"},
		{"client certificate", closed, []files{{closed + "/ca.crt": closedAuthority, closed + "/client.cert": certificate, closed + "/client.key": key}}, "", ""},
		{"no client certificate", closed, []files{{closed + "/ca.crt": closedAuthority}}, "certificate required", ""},
		{"no key", closed, []files{{closed + "/ca.crt": closedAuthority, closed + "/client.cert": certificate}}, "client.key is missing", "NAME.key"},
		{"wrong key", closed, []files{{closed + "/ca.crt": closedAuthority, closed + "/client.cert": certificate, closed + "/client.key": []byte("x")}}, "client.cert: ", "NAME.key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var dirs []string
			for _, content := range test.dirs {
				dir := t.TempDir()
				dirs = append(dirs, dir)
				for name, data := range content {
					file := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, port, _ := net.SplitHostPort(test.host)
			transport := toHost("127.0.0.1:" + port)
			t.Cleanup(transport.CloseIdleConnections)
			r, _ := patient(t, oci.Options{Transport: transport, CertsDirs: dirs})
			image, err := r.Resolve(t.Context(), testRef, "docker://"+test.host+"/acme/operator:1.0.0")
			if test.message != "" {
				checkError(t, err, report.CodeOf(err), test.message, test.hint)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkContent(t, image)
		})
	}
}

// Another host that a registry names, here by a redirect, is trusted by its own directory only.
func TestCertsDirsAreOfOneHost(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	t.Cleanup(other.Close)
	first := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		}
	}))
	t.Cleanup(first.Close)
	host, dir := first.Listener.Addr().String(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, host), 0o755); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Certificate().Raw}) // the other's as well
	if err := os.WriteFile(filepath.Join(dir, host, "ca.crt"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := patient(t, oci.Options{CertsDirs: []string{dir}})
	_, err := r.Resolve(t.Context(), testRef, "docker://"+host+"/acme/operator:1.0.0")
	checkError(t, err, report.Unavailable, "certificate", "add the authority")
	if asked.Load() > 0 {
		t.Error("the other host was asked")
	}
}
