package records

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// host is a host with an authority of its own.
type host struct {
	*authority.Authority
	dir string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{dir: t.TempDir()}
	h.reopen(t, time.Now())
	return h
}

func (h *host) reopen(t *testing.T, now time.Time) {
	t.Helper()
	own, err := authority.Open(h.dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	h.Authority = own
}

func (h *host) ca() string { return string(h.CA()) }

// serve answers as a registry that has nothing, and returns the URL.
func (h *host) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			http.NotFound(w, r)
		}
	}))
	server.Listener = tls.NewListener(server.Listener, h.Server())
	server.Start()
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "https://", 1)
}

func own(ca string, endpoints ...string) schema.ClusterRegistry {
	return schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: endpoints, CA: ca}
}

const (
	one = "https://10.0.0.1:5000"
	two = "https://10.0.0.2:5000"
)

// TestEndpointsOfSeveralHosts adds hosts one after the other, as their imports do.
func TestEndpointsOfSeveralHosts(t *testing.T) {
	a, b, c := newHost(t), newHost(t), newHost(t)
	recordedBefore := own(a.ca(), one) // by a release that knew one authority only
	for _, test := range []struct {
		name    string
		known   *schema.ClusterRegistry
		more    schema.ClusterRegistry
		replace bool
		want    []string          // endpoints
		trusts  map[string]string // the signer of each
		refused string
	}{
		{name: "first", more: own(a.ca(), one+"/"), want: []string{one}, trusts: map[string]string{one: a.ca()}},
		{name: "first import without one", more: own(""), want: []string{}},
		{name: "second host", known: &recordedBefore, more: own(b.ca(), two), want: []string{one, two}, trusts: map[string]string{one: a.ca(), two: b.ca()}},
		{name: "again", known: &recordedBefore, more: own(a.ca(), one), want: []string{one}, trusts: map[string]string{one: a.ca()}},
		{name: "none", known: &recordedBefore, more: own(""), want: []string{one}, trusts: map[string]string{one: a.ca()}},
		{name: "another address of the host", known: &recordedBefore, more: own(a.ca(), two), want: []string{one, two}, trusts: map[string]string{one: a.ca(), two: a.ca()}},
		{name: "without encryption", known: &recordedBefore, more: own(a.ca(), "http://10.0.0.2:5000"), want: []string{one, "http://10.0.0.2:5000"}, trusts: map[string]string{one: a.ca()}},
		{name: "an address of another registry", known: &recordedBefore, more: own(b.ca(), two, one), refused: "endpoint " + one + " is recorded with another authority"},
		{name: "the address in other letters", known: new(own(a.ca(), "https://host:5000")), more: own(b.ca(), "https://HOST:5000"), refused: "another authority"},
		{name: "an authority beside the known one", known: &recordedBefore, more: own(a.ca()+b.ca(), one), refused: "another authority"},
		{name: "an address of another registry, to replace", known: &recordedBefore, more: own(b.ca(), one), replace: true, want: []string{one}, trusts: map[string]string{one: b.ca()}},
		{name: "no longer encrypted", known: &recordedBefore, more: own("", "http://10.0.0.1:5000"), refused: "is recorded as " + one},
		{name: "no longer encrypted, meant", known: &recordedBefore, more: own("", "http://10.0.0.1:5000"), replace: true, want: []string{"http://10.0.0.1:5000"}},
		{name: "of a known bundle", known: new(own(a.ca()+c.ca(), one)), more: own(c.ca(), one), want: []string{one}, trusts: map[string]string{one: a.ca() + c.ca()}},
		{name: "no certificate", more: own("hello", one), refused: "no certificate in PEM"},
		{name: "not a URL", more: own(a.ca(), "10.0.0.1:5000"), refused: "is not a URL"},
		{name: "path", more: own(a.ca(), one+"/v2/"), refused: "is not a URL"},
		{name: "other mode", known: &schema.ClusterRegistry{Mode: schema.RegistryMetalK8s, Host: schema.RegistryHostMetalK8s}, more: own("", one), refused: "registry mode metalk8s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := WithEndpoints(test.known, test.more, test.replace)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got %v, want %s", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantRegistry(t, got, test.want, test.trusts)
		})
	}
}

// wantRegistry compares a registry, also after it was stored and read.
func wantRegistry(t *testing.T, got *schema.ClusterRegistry, endpoints []string, trusts map[string]string) {
	t.Helper()
	got.Stamp = schema.NewStamp("registry", "1.0.0")
	data, err := schema.MarshalStored(*got)
	if err != nil {
		t.Fatal(err)
	}
	read, err := schema.ParseStored[schema.ClusterRegistry]("registry", "here", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(endpoints, read.Endpoints); diff != "" {
		t.Error(diff)
	}
	union := ""
	for _, endpoint := range endpoints {
		if diff := cmp.Diff(trusts[endpoint], read.Authority(endpoint)); diff != "" {
			t.Errorf("%s: %s", endpoint, diff)
		}
		if !strings.Contains(union, trusts[endpoint]) {
			union += trusts[endpoint]
		}
	}
	if diff := cmp.Diff(union, read.CA); diff != "" {
		t.Errorf("bundle: %s", diff)
	}
	if len(slices.Compact(slices.Sorted(maps.Values(trusts)))) < 2 && read.Authorities != nil && len(trusts) == len(endpoints) {
		t.Errorf("one authority is written as %v", read.Authorities)
	}
}

// TestRenewedAuthority: a certificate with the same key takes the place of the old one, everywhere.
func TestRenewedAuthority(t *testing.T) {
	a := newHost(t)
	old := a.ca()
	a.reopen(t, time.Now().AddDate(9, 0, 0))
	if a.ca() == old {
		t.Fatal("the authority was not renewed")
	}
	got, err := WithEndpoints(new(own(old, one, two)), own(a.ca(), two), false)
	if err != nil {
		t.Fatal(err)
	}
	wantRegistry(t, got, []string{one, two}, map[string]string{one: a.ca(), two: a.ca()})
	if got, err = WithEndpoints(got, own(old, two), false); err != nil {
		t.Fatal(err)
	}
	wantRegistry(t, got, []string{one, two}, map[string]string{one: a.ca(), two: a.ca()})
}

func TestRemoveEndpoints(t *testing.T) {
	a, b := newHost(t), newHost(t)
	known, err := WithEndpoints(new(own(a.ca(), one)), own(b.ca(), two), false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := WithoutEndpoints(known, []string{one + "/"})
	if err != nil {
		t.Fatal(err)
	}
	wantRegistry(t, got, []string{two}, map[string]string{two: b.ca()})
	if _, err = WithoutEndpoints(got, []string{one}); report.CodeOf(err) != report.NotFound {
		t.Error(err)
	}
	if got, err = WithoutEndpoints(got, []string{two}); err != nil {
		t.Fatal(err)
	}
	wantRegistry(t, got, []string{}, nil)
	if _, err = WithoutEndpoints(nil, []string{two}); report.CodeOf(err) != report.NotFound {
		t.Error(err)
	}
}

// TestAskRegistry asks two hosts with different authorities, as nodes do.
func TestAskRegistry(t *testing.T) {
	a, b := newHost(t), newHost(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first, second, nobody := a.serve(t), b.serve(t), "https://"+closed.Addr().String()
	if err = closed.Close(); err != nil {
		t.Fatal(err)
	}
	imports := []schema.Import{{Name: "db", Version: "1.0.0", Images: map[string]string{"operator:1.0.0": "sha256:" + strings.Repeat("0", 64)}}}
	for _, test := range []struct {
		ca        string
		untrusted []bool
	}{{a.ca(), []bool{false, true, false}}, {a.ca() + b.ca(), []bool{false, false, false}}} {
		registry := own(test.ca, first, second, nobody)
		for i, answer := range AskRegistry(t.Context(), &registry, imports, time.Minute) {
			missing := len(answer.Missing) == 1 && answer.Missing[0] == "db-1.0.0"
			if answer.IsUntrusted() != test.untrusted[i] || i == 2 && answer.Err == nil || missing != (answer.Err == nil) {
				t.Errorf("%+v", answer)
			}
		}
	}
	// An authority is refused when the endpoint has a certificate of another one.
	err = CheckAuthority(t.Context(), own(a.ca(), first, second))
	if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), second) {
		t.Error(err)
	}
	if err := CheckAuthority(t.Context(), own(a.ca(), first, nobody)); err != nil {
		t.Error(err)
	}
}

func TestFingerprint(t *testing.T) {
	a := newHost(t)
	list := Endpoints(new(own(a.ca(), one)))
	block, _ := pem.Decode(a.CA())
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Endpoints) != 1 || list.Endpoints[0].Authorities[0].Fingerprint != fingerprint(c) || len(fingerprint(c)) != 71 {
		t.Errorf("%+v", list)
	}
}
