// Package keytest has signers for tests: [New] makes one, [Of] one of a certain key, and [Write] a pair of files. Their keys were never
// encrypted, which takes the better part of a second each time.
package keytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
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

// Write stores a pair of keys as prefix.key and prefix.pub, as [key.Pair.Write] does.
func Write(prefix string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	public, err := key.NewPublic(private.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(prefix+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(prefix+".pub", public.PEM(), 0o644),
	)
}
