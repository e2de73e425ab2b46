package testcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 24 * time.Hour // longer than any run

// An authority signs every certificate of a cluster.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

func newAuthority() (*authority, error) {
	template := newTemplate(pkix.Name{CommonName: "testcluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key, encodePEM("CERTIFICATE", der)}, nil
}

// identity is a certificate for a client with that name and those groups, which serves at the addresses as well.
func (a *authority) identity(user string, groups []string, addresses ...string) (cert, key []byte, err error) {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, address)
		}
	}
	signer, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, signer.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(signer)
	return encodePEM("CERTIFICATE", der), key, err
}

// writeIdentity writes the identity to DIR/NAME.crt and DIR/NAME.key.
func (a *authority) writeIdentity(dir, name, user string, groups []string, addresses ...string) error {
	cert, key, err := a.identity(user, groups, addresses...)
	if err != nil {
		return err
	}
	base := filepath.Join(dir, name)
	return errors.Join(os.WriteFile(base+".crt", cert, 0o644), os.WriteFile(base+".key", key, 0o600))
}

// writeServiceAccountKeys writes the pair that tokens of service accounts are signed and checked with.
func writeServiceAccountKeys(dir string) error {
	signer, err := newKey()
	if err != nil {
		return err
	}
	private, err := encodeKey(signer)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, "sa.key"), private, 0o600),
		os.WriteFile(filepath.Join(dir, "sa.pub"), encodePEM("PUBLIC KEY", public), 0o644))
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails, according to crypto/rand
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encodePEM("PRIVATE KEY", der), err
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
