package key

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Pair is a new key pair in the form in which it is stored.
type Pair struct {
	Private []byte // cosign's PEM: PKCS#8, encrypted with scrypt and NaCl secretbox
	Public  *Public
}

// Generate makes an ECDSA P-256 key pair, the kind that every tool verifies without further options. An empty
// password still encrypts, as cosign does.
func Generate(password []byte) (*Pair, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, report.Errorf(report.Failure, "generate key: %w", err)
	}
	public, err := NewPublic(private.Public())
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, report.Errorf(report.Failure, "encode key: %w", err)
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, report.Errorf(report.Failure, "encrypt key: %w", err)
	}
	block := &pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}
	return &Pair{Private: pem.EncodeToMemory(block), Public: public}, nil
}

// Write stores the pair as prefix.key, readable by its owner only, and prefix.pub. It never overwrites: when either file
// exists, or cannot be written, nothing is left behind.
func (p *Pair) Write(prefix string) (err error) {
	if err := create(prefix+".key", p.Private, 0o600); err != nil {
		return err
	}
	if err := create(prefix+".pub", p.Public.PEM(), 0o644); err != nil {
		return errors.Join(err, durable.Remove(prefix+".key"))
	}
	return nil
}

func create(name string, data []byte, mode fs.FileMode) error {
	err := durable.WriteNewFile(name, data, mode)
	if errors.Is(err, fs.ErrExist) {
		return report.Errorf(report.Usage, "%s exists already; keys are never overwritten", name).
			WithHint("choose another name, or move the old key away if it is not in use any more")
	}
	return err
}
