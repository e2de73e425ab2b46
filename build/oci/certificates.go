package oci

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultCertsDirs returns the directories where podman and docker keep the certificates of registries, in podman's order.
func DefaultCertsDirs() []string {
	dirs := []string{"/etc/containers/certs.d", "/etc/docker/certs.d"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append([]string{filepath.Join(home, ".config", "containers", "certs.d")}, dirs...)
	}
	return dirs
}

// hostCertificates is a transport that trusts a host by the authorities of a certs.d directory, too, and shows the host the
// client certificates there.
type hostCertificates struct {
	dirs  []string // the first that has the host counts
	below *http.Transport
	hosts onces[string, http.RoundTripper]
}

func (h *hostCertificates) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return h.below.RoundTrip(req)
	}
	t, err := h.hosts.get(req.URL.Host, func() (http.RoundTripper, error) { return h.transport(req.URL.Host) })
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(req)
}

// transport returns the transport for one host: that of every other host where no directory has it.
func (h *hostCertificates) transport(host string) (http.RoundTripper, error) {
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	if !fs.ValidPath(host) || strings.ContainsAny(host, `/\`) || host == "." {
		return h.below, nil
	}
	for _, base := range h.dirs {
		dir := filepath.Join(base, host)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		t := h.below.Clone()
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		return t, addCertificates(t.TLSClientConfig, dir)
	}
	return h.below, nil
}

// addCertificates adds the certificates of a directory: authorities in *.crt, client certificates in *.cert with their
// keys in *.key.
func addCertificates(config *tls.Config, dir string) error {
	fsys := Directory(dir)
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return report.Errorf(report.Invalid, "certificates of a registry: %w", err).
			WithHint("let the user who runs this read %s", dir)
	}
	for _, entry := range entries {
		switch file := entry.Name(); path.Ext(file) {
		case ".crt":
			err = addAuthority(config, fsys, file)
		case ".cert":
			err = addClientCertificate(config, fsys, file)
		}
		if err != nil {
			return report.Errorf(report.Invalid, "%s: %w", filepath.Join(dir, entry.Name()), err).
				WithHint("write authorities as PEM into NAME.crt, a client certificate into NAME.cert and its key into NAME.key, and let the user who runs this read them")
		}
	}
	return nil
}

func addAuthority(config *tls.Config, fsys fs.FS, file string) error {
	data, err := readFile(fsys, file)
	if err != nil {
		return err
	}
	return appendAuthority(config, data)
}

// appendAuthority trusts the certificates in PEM as well.
func appendAuthority(config *tls.Config, data []byte) (err error) {
	if config.RootCAs != nil {
		config.RootCAs = config.RootCAs.Clone() // other hosts are not trusted by it
	} else if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return report.Errorf(report.Invalid, "there is no certificate in it")
	}
	return nil
}

func addClientCertificate(config *tls.Config, fsys fs.FS, file string) error {
	certificate, err := readFile(fsys, file)
	if err != nil {
		return err
	}
	key, err := readFile(fsys, strings.TrimSuffix(file, ".cert")+".key")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err == nil {
		config.Certificates = append(config.Certificates, pair)
	}
	return err
}
