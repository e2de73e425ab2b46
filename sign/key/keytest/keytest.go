// Package keytest has signers for tests: [New] makes one, and [Of] one of a certain key. Their keys were never encrypted, which takes
// the better part of a second each time.
package keytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/solutionctl/solutionctl/sign/key"
)

// New returns a signer with a key of its own, of the kind that [key.Generate] makes.
func New(tb testing.TB) *key.Signer {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return Of(tb, private)
}

// Of returns a signer with a private key.
func Of(tb testing.TB, private crypto.PrivateKey) *key.Signer {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := key.Load(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}
