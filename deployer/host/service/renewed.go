package service

import (
	"crypto/tls"
	"os"
	"slices"
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Renewed is a value from files that another program renews while this one runs. It is safe for concurrent use.
type Renewed[T any] struct {
	files []string
	read  func() (T, error)
	step  string
	sink  report.Sink

	mu      sync.Mutex
	seen    []os.FileInfo // as the files were when they were read last, perhaps in vain
	current T
}

// Read reads files for the first time. Later errors are reported as a failed step.
func Read[T any](sink report.Sink, step string, read func() (T, error), files ...string) (*Renewed[T], error) {
	r := &Renewed[T]{files: files, read: read, step: step, sink: sink, seen: look(files)}
	var err error
	r.current, err = read()
	return r, err
}

// Current reads the files again if they have changed. When that fails, the former value stays in use.
func (r *Renewed[T]) Current() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := look(r.files); !slices.EqualFunc(now, r.seen, same) {
		r.seen = now
		if next, err := r.read(); err == nil {
			r.current = next
		} else {
			r.sink.Emit(report.Event{Step: r.step, State: report.Failed, Note: err.Error()})
		}
	}
	return r.current
}

// Again reads the files even if they seem unchanged.
func (r *Renewed[T]) Again() {
	r.mu.Lock()
	r.seen = nil
	r.mu.Unlock()
	r.Current()
}

func look(files []string) []os.FileInfo {
	infos := make([]os.FileInfo, len(files))
	for i, file := range files {
		infos[i], _ = os.Stat(file) // one that is not there will be missed by who reads it
	}
	return infos
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// KeyPair reads a certificate and its key, in PEM.
func KeyPair(sink report.Sink, certificate, key string) (*Renewed[*tls.Certificate], error) {
	return Read(sink, "load the certificate", func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, report.Errorf(report.Failure, "%s and %s: %w", certificate, key, err)
		}
		return &pair, nil
	}, certificate, key)
}

// TLS encrypts with a certificate.
func TLS(pair *Renewed[*tls.Certificate]) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Current(), nil }}
}
