package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Where the certificate authority of a host's registry lies, below its store.
const (
	authorityDir  = "tls"
	authorityFile = "ca.crt" // the certificates that nodes need
)

// AuthorityFile is the certificate by which nodes trust the registry of the host with a store in dir.
func AuthorityFile(dir string) string { return filepath.Join(dir, authorityDir, authorityFile) }

// EndpointOptions say at which addresses nodes find images.
type EndpointOptions struct {
	deployer.EndpointOptions
	URLs []string
	CA   string // the file by which nodes trust them; "" is the authority of this host
}

// CheckEndpoints checks endpoints without a cluster: their form, and that this host has archives if they need its
// authority.
func (h *Host) CheckEndpoints(o EndpointOptions) error {
	needed, err := needAuthority(o.URLs)
	if err != nil || !needed || o.CA != "" {
		return err
	}
	mode, err := h.Store.RegistryMode()
	if err == nil && mode == "" {
		err = report.Errorf(report.Refused, "nothing was imported on this host: its authority is not the one that nodes have to trust").
			WithHint("run it on the host that serves, or name the file tls/ca.crt in that host's store with --ca")
	}
	return err
}

// AddEndpoints records in the cluster the addresses at which nodes find images. Without a file of certificates, their
// authority is that of this host.
func (h *Host) AddEndpoints(ctx context.Context, o EndpointOptions) (*schema.ClusterRegistry, error) {
	if err := h.CheckEndpoints(o); err != nil {
		return nil, err
	}
	more := schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: o.URLs}
	var err error
	if more.CA, err = h.authorityFor(o.URLs, o.CA); err != nil {
		return nil, err
	}
	if err = records.CheckAuthority(ctx, more); err != nil {
		return nil, err
	}
	o.More = more
	return h.Cluster.AddEndpoints(ctx, o.EndpointOptions)
}

// authorityFor returns the certificates by which nodes trust endpoints: those in a file, else those of this host.
func (h *Host) authorityFor(endpoints []string, file string) (string, error) {
	needed, err := needAuthority(endpoints)
	switch {
	case err != nil:
		return "", err
	case file != "":
		data, failure := os.ReadFile(file)
		return string(data), failure
	case !needed:
		return "", nil
	}
	own, err := openAuthority(h.Dir, h.Now) // 'deploy serve' might not have run yet
	if err != nil {
		return "", err
	}
	return string(own.CA()), nil
}

// needAuthority reports whether one of the endpoints is encrypted.
func needAuthority(endpoints []string) (needed bool, err error) {
	for _, text := range endpoints {
		endpoint, err := schema.ParseEndpoint(text)
		if err != nil {
			return false, err
		}
		needed = needed || strings.HasPrefix(endpoint, "https://")
	}
	return needed, nil
}

// openAuthority returns the certificate authority of a store. The first one who asks makes it.
func openAuthority(dir string, now func() time.Time) (*authority.Authority, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil { // the store before its first import
		return nil, report.As(report.Failure, err).WithHint("make it as root: '%s' prints a unit that does", report.Run("deploy serve").With("print-unit"))
	}
	return authority.Open(filepath.Join(dir, authorityDir), now)
}
