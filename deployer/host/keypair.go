package host

import (
	"crypto/tls"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/schema/report"
)

// keyPair is a certificate and its key in files that somebody else renews.
type keyPair struct {
	certificate, key string // both empty: there is none
	current          atomic.Pointer[tls.Certificate]
}

// load reads the files. When that fails, what was read before stays in use.
func (p *keyPair) load() error {
	if p.certificate == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return report.Errorf(report.Failure, "%s and %s: %w", p.certificate, p.key, err)
	}
	p.current.Store(&pair)
	return nil
}

func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.current.Load(), nil }
