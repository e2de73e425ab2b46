// Package authority is the certificate authority of one host. It issues the certificates of the host's registry, so
// that nodes with its CA certificate talk to that registry and to no other.
//
// [Open] reads the authority in its directory, or creates it. [Authority.CA] is the certificate for nodes,
// [Authority.Server] the configuration of a listener. Only the authority's key is stored, in a file that only its owner
// can read; the keys of listeners stay in memory. Certificates are renewed long before they expire, while the listener
// runs. The authority renews its own certificate with the same key, so that nodes with the old one accept certificates
// signed by the new one.
package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	keyFile         = "ca.key"
	certificateFile = "ca.crt"

	authorityLife = 10 * 365 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	// skew is how far the clock of a node may be behind.
	skew = 24 * time.Hour
)

// Authority signs the certificates of a host. It is safe for concurrent use.
type Authority struct {
	dir string
	now func() time.Time
	key *ecdsa.PrivateKey

	mu          sync.Mutex
	certificate *x509.Certificate
}

// Open opens the authority in a directory; when there is none, it creates the directory and a new authority. Concurrent
// calls agree on one authority. The files belong to the owner of the directory, so that root can create them for
// another user.
func Open(dir string, now func() time.Time) (*Authority, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, explain(err)
	}
	a := &Authority{dir: dir, now: now}
	if err := a.alone(a.loadKey); err != nil {
		return nil, explain(err)
	}
	return a, explain(a.renew())
}

// alone runs f while no other process changes the directory.
func (a *Authority) alone(f func() error) error {
	lock := flock.New(a.dir, flock.SetFlag(os.O_RDONLY))
	if err := lock.Lock(); err != nil {
		return err
	}
	return errors.Join(f(), lock.Close())
}

// explain adds a hint to the error of a directory that another user owns.
func explain(err error) error {
	if !errors.Is(err, fs.ErrPermission) && !isReadOnly(err) {
		return err
	}
	return report.Errorf(report.Failure, "certificate authority: %w", err).
		WithHint("the directory has to belong to the user that serves; '%s' prints a unit that sees to that", report.Run("deploy serve").With("print-unit"))
}

// CA is the certificate of the authority in PEM.
func (a *Authority) CA() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return encodePEM("CERTIFICATE", a.certificate.Raw)
}

// loadKey reads the key, or makes one.
func (a *Authority) loadKey() error {
	name := filepath.Join(a.dir, keyFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = a.makeKey(name); err == nil {
			data, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return err
	}
	if err = checkPrivate(name); err != nil {
		return err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return damaged(name, errors.New("there is no key in it"))
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return damaged(name, err)
	}
	ecKey, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return damaged(name, fmt.Errorf("it is a %T", key))
	}
	a.key = ecKey
	return nil
}

func damaged(name string, err error) error {
	return report.Errorf(report.Corrupt, "%s is damaged: %w", name, err).
		WithHint("restore it from a backup. If there is none, remove it: a new authority is made, and every node has to be configured again")
}

// makeKey makes a key.
func (a *Authority) makeKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, encodePEM("PRIVATE KEY", der), 0o600)
}

// renew makes a certificate for the authority, unless the one that is there is good for a while.
func (a *Authority) renew() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isGood(a.certificate) {
		return nil
	}
	return a.alone(a.findCertificate)
}

// findCertificate takes the certificate that is in the directory, or makes one when that is not good any more.
func (a *Authority) findCertificate() error {
	name := filepath.Join(a.dir, certificateFile)
	if data, err := os.ReadFile(name); err == nil {
		if block, _ := pem.Decode(data); block != nil {
			if found, err := x509.ParseCertificate(block.Bytes); err == nil && a.isGood(found) {
				a.certificate = found
				return nil
			}
		}
	}
	template, err := a.template("solutionctl registry authority", authorityLife)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return err
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	if err := a.write(name, encodePEM("CERTIFICATE", der), 0o644); err != nil {
		return err
	}
	a.certificate = made
	return nil
}

// isGood reports whether a certificate of the authority belongs to its key and is in the first four fifths of its life.
func (a *Authority) isGood(c *x509.Certificate) bool {
	return c != nil && a.key.PublicKey.Equal(c.PublicKey) && isFresh(c, a.now(), 5)
}

// isFresh reports whether a certificate is valid, and its last part of so many has not begun.
func isFresh(c *x509.Certificate, now time.Time, parts time.Duration) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter.Add(-life/parts))
}

func (a *Authority) template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := a.now().UTC()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(life),
	}, nil
}

// write writes a file that belongs to whom the directory belongs to.
func (a *Authority) write(name string, data []byte, mode fs.FileMode) error {
	f, err := durable.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, giveToOwner(f.File, a.dir)); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(mode)
}

func encodePEM(kind string, der []byte) []byte {
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
		panic(fmt.Sprintf("authority: PEM without headers does not encode: %v", err))
	}
	return b.Bytes()
}
