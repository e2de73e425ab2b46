package authority_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/schema/report"
)

const day = 24 * time.Hour

// clock is a time that tests move.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func open(t *testing.T, dir string, c *clock) *authority.Authority {
	t.Helper()
	a, err := authority.Open(dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// connect shakes hands with a listener on the loopback interface and returns its certificate.
func connect(t *testing.T, config *tls.Config, ca []byte, name string, at time.Time) (*x509.Certificate, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing is lost
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		server, failed := listener.Accept()
		if failed != nil {
			return
		}
		_ = tls.Server(server, config).HandshakeContext(t.Context()) // the client returns the error
		_ = server.Close()
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name, Time: func() time.Time { return at }}}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // nothing is lost
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func TestNames(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	a := open(t, filepath.Join(t.TempDir(), "tls"), c)
	config := a.Server("registry.solutionctl.invalid", "192.0.2.7", "0.0.0.0")
	for _, test := range []struct {
		name string
		good bool
	}{
		{"registry.solutionctl.invalid", true},
		{"localhost", true},
		{"127.0.0.1", true},
		{"192.0.2.7", true},
		{"192.0.2.8", false},
		{"0.0.0.0", false},
		{"example.com", false},
	} {
		if _, err := connect(t, config, a.CA(), test.name, c.Time); (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestRenewal(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	dir := filepath.Join(t.TempDir(), "tls")
	a := open(t, dir, c)
	config, first := a.Server("a.example"), a.CA()
	serial := func() string {
		certificate, err := connect(t, config, first, "a.example", c.Time)
		if err != nil {
			t.Fatalf("%s: %v", c.Time, err)
		}
		return certificate.SerialNumber.String()
	}
	one := serial()
	c.Time = c.Add(50 * day)
	if serial() != one {
		t.Error("renewed without need")
	}
	c.Time = c.Add(20 * day)
	if serial() == one {
		t.Error("not renewed")
	}
	c.Time = c.Add(8*365*day + 10*day) // the authority's own turn, while the listener runs
	if serial() == one {
		t.Error("not renewed")
	}
	second := a.CA()
	if bytes.Equal(first, second) {
		t.Error("the authority was not renewed")
	}
	if _, err := connect(t, config, second, "a.example", c.Time); err != nil {
		t.Errorf("who knows the new one: %v", err)
	}
	if again := open(t, dir, c).CA(); !bytes.Equal(again, second) {
		t.Error("the renewed one was not kept")
	}
}

func TestFiles(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	dir := filepath.Join(t.TempDir(), "tls")
	var group sync.WaitGroup
	found := make([]string, 8)
	for i := range found {
		group.Go(func() {
			a, err := authority.Open(dir, c.now)
			if err != nil {
				t.Error(err)
				return
			}
			block, _ := pem.Decode(a.CA())
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Error(err)
				return
			}
			found[i] = string(certificate.RawSubjectPublicKeyInfo)
		})
	}
	group.Wait()
	for _, key := range found {
		if key != found[0] {
			t.Error("processes that start together have different authorities")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, want ca.crt and ca.key: %v", len(entries), err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "ca.key": 0o600, "ca.crt": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(dir string) error
		code   report.Code
		want   string
	}{
		{"a key that others read", func(dir string) error {
			return os.Chmod(filepath.Join(dir, "ca.key"), 0o640)
		}, report.TrustStore, "can be read by others"},
		{"a key that is none", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ca.key"), []byte("key"), 0o600)
		}, report.Corrupt, "is damaged"},
		{"no directory", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, report.Failure, "not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tls")
			open(t, dir, &clock{time.Now()})
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := authority.Open(dir, time.Now)
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%s)", err, report.CodeOf(err))
			}
		})
	}
	t.Run("a certificate of another key is replaced", func(t *testing.T) {
		c := &clock{time.Now()}
		a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
		open(t, a, c)
		foreign := open(t, b, c).CA()
		if err := os.WriteFile(filepath.Join(a, "ca.crt"), foreign, 0o600); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(open(t, a, c).CA(), foreign) {
			t.Error("it was taken")
		}
	})
}
