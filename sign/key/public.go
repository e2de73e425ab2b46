package key

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Public is a public key of a supported kind.
type Public struct {
	key  crypto.PublicKey
	der  []byte
	hash crypto.Hash
}

// NewPublic refuses keys that are too weak or of a kind that is not supported, with report.WeakKey.
func NewPublic(k crypto.PublicKey) (*Public, error) {
	details, err := signature.GetDefaultAlgorithmDetails(k)
	if err != nil {
		return nil, refuseKind(describe(k))
	}
	if err = weakness(k); err != nil {
		return nil, report.Errorf(report.WeakKey, "key %s is not accepted: %w", describe(k), err).
			WithHint("do not trust it: such a key is made on purpose; ask for another one, such as ECDSA P-256")
	}
	der, err := x509.MarshalPKIXPublicKey(k)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "encode public key: %w", err)
	}
	return &Public{key: k, der: der, hash: details.GetHashType()}, nil
}

// refuseKind refuses a key by its kind.
func refuseKind(kind string) error {
	return report.Errorf(report.WeakKey, "key %s is not accepted", kind).
		WithHint("use ECDSA P-256 (solutionctl keygen makes one), P-384, P-521, RSA of 2048, 3072 or 4096 bits, or Ed25519")
}

// CheckAuthority refuses a key in a certificate of an authority. Such keys may be longer than those of signers.
func CheckAuthority(k crypto.PublicKey) error {
	if rsaKey, ok := k.(*rsa.PublicKey); ok && rsaKey.N.BitLen() >= minRSA {
		if err := weakness(k); err != nil {
			return report.Errorf(report.WeakKey, "key %s is not accepted: %w", describe(k), err)
		}
		return nil
	}
	_, err := NewPublic(k)
	return err
}

// minRSA is the length of the shortest RSA key that is accepted.
const minRSA = 2048

// ParsePublic reads a file that consists of exactly one PEM block "PUBLIC KEY".
func ParsePublic(data []byte) (*Public, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, report.Errorf(report.Invalid, "no PEM block found, want one PUBLIC KEY")
	case strings.Contains(block.Type, "PRIVATE KEY"):
		return nil, report.Errorf(report.Invalid, "this is a private key, want a PUBLIC KEY").
			WithHint("move the private key to a safe place and use the .pub file that was made with it")
	case block.Type != "PUBLIC KEY":
		return nil, report.Errorf(report.Invalid, "PEM block %q, want PUBLIC KEY", block.Type)
	case len(bytes.TrimSpace(rest)) != 0:
		return nil, report.Errorf(report.Invalid, "data after the first PEM block, want exactly one PUBLIC KEY").
			WithHint("put each key into a file of its own")
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if kind := unsupportedPublic(block.Bytes); err != nil && kind != "" {
		return nil, refuseKind(kind)
	}
	if err != nil {
		return nil, report.Errorf(report.Invalid, "parse public key: %w", err)
	}
	return NewPublic(k)
}

// ID identifies the key in a bundle's hint: the standard base64 of the SHA-256 digest of its DER form.
func (p *Public) ID() string {
	digest := sha256.Sum256(p.der)
	return base64.StdEncoding.EncodeToString(digest[:])
}

// Fingerprint is the ID as people compare it: "SHA256:" and the digest in base64 without padding.
func (p *Public) Fingerprint() string { return "SHA256:" + strings.TrimRight(p.ID(), "=") }

// Algorithm names the kind of key, such as "ecdsa-p256".
func (p *Public) Algorithm() string { return describe(p.key) }

// Hash is the hash that the key signs files with, 0 for a key that signs messages only (Ed25519).
func (p *Public) Hash() crypto.Hash { return p.hash }

// PEM is the form in which public keys are exchanged.
func (p *Public) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: p.der})
}

// Crypto returns the key itself.
func (p *Public) Crypto() crypto.PublicKey { return p.key }

// Equal reports whether both are the same key.
func (p *Public) Equal(other *Public) bool { return bytes.Equal(p.der, other.der) }

func describe(k crypto.PublicKey) string {
	switch k := k.(type) {
	case *ecdsa.PublicKey:
		return "ecdsa-" + strings.ToLower(strings.ReplaceAll(k.Curve.Params().Name, "-", ""))
	case *rsa.PublicKey:
		return fmt.Sprintf("rsa-%d", k.N.BitLen())
	case ed25519.PublicKey:
		return "ed25519"
	default:
		return fmt.Sprintf("of type %T", k)
	}
}
