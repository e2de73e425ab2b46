package host

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Monitoring returns the objects that let the Prometheus operator of a cluster watch over a registry with these options. Their
// address has to be one at which Prometheus reaches this host.
func (o ServeOptions) Monitoring() ([]byte, error) {
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	return o.objects(target)
}

// MonitoringWithoutRegistry is [ServeOptions.Monitoring] where images come from elsewhere, as from MetalK8s' nginx.
func (o ServeOptions) MonitoringWithoutRegistry() ([]byte, error) {
	return o.objects(monitoring.Target{})
}

func (o ServeOptions) objects(t monitoring.Target) (text []byte, err error) {
	if t.Selectors, err = site.WithLabels(nil, o.MonitoringLabels); err != nil {
		return nil, err
	}
	return monitoring.Objects(cluster.SystemNamespace, t)
}

func (o ServeOptions) target() (t monitoring.Target, err error) {
	flag, address := "--listen", o.Listen
	if o.MetricsListen != "" {
		flag, address = "--metrics-listen", o.MetricsListen
	}
	t.Address, err = netip.ParseAddrPort(address)
	if ip := t.Address.Addr(); err != nil || ip.IsUnspecified() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || t.Address.Port() == 0 {
		return t, report.Errorf(report.Usage, "%s %s does not say at which address Prometheus reaches this host", flag, address).
			WithHint("name one that other hosts reach, such as %s 10.0.0.1:5000", flag)
	}
	t.TLS = o.MetricsListen == "" && !o.PlainHTTP
	if !t.TLS || o.Certificate != "" {
		return t, nil
	}
	t.Name = schema.RegistryHostOwn
	data, err := os.ReadFile(AuthorityFile(o.Store))
	t.CA = string(data)
	if errors.Is(err, fs.ErrNotExist) {
		err = report.Errorf(report.NotFound, "the registry has no certificate authority yet: %w", err).WithHint("start it once, which makes one")
	}
	return t, err
}
