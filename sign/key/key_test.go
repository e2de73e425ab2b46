package key_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/common"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

const secret = "correct horse"

func password() ([]byte, error) { return []byte(secret), nil }

func ecKey(tb testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func rsaKey(tb testing.TB, bits int) *rsa.PrivateKey {
	tb.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func publicPEM(k crypto.PublicKey) []byte {
	return block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(k)))
}

func TestLoad(t *testing.T) {
	ec, rsa3072 := ecKey(t, elliptic.P256()), rsaKey(t, 3072)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1 := block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ec)))
	for _, test := range []struct {
		name, algorithm string
		data            []byte
	}{
		{"PKCS#8", "ecdsa-p256", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ec)))},
		{"SEC 1", "ecdsa-p256", sec1},
		{"SEC 1 after parameters", "ecdsa-p256", append(block("EC PARAMETERS", []byte{6, 0}), sec1...)},
		{"PKCS#1", "rsa-3072", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa3072))},
		{"Ed25519", "ed25519", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ed)))},
		{"P-384", "ecdsa-p384", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ecKey(t, elliptic.P384()))))},
		{"P-521", "ecdsa-p521", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ecKey(t, elliptic.P521()))))},
		{"cosign", "ecdsa-p256", must(key.Generate([]byte(secret))).Private},
	} {
		t.Run(test.name, func(t *testing.T) {
			signer, err := key.Load(test.data, password)
			if err != nil {
				t.Fatal(err)
			}
			if got := signer.Public().Algorithm(); got != test.algorithm {
				t.Errorf("algorithm %q, want %q", got, test.algorithm)
			}
			signature, err := signer.SignMessage(t.Context(), []byte("message"))
			if err != nil || len(signature) == 0 {
				t.Errorf("signature %x, %v", signature, err)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	pair := must(key.Generate([]byte(secret)))
	ec := ecKey(t, elliptic.P256())
	plain := block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ec)))
	asked := errors.New("no terminal")
	answer := func(s string) key.PasswordFunc { return func() ([]byte, error) { return []byte(s), nil } }
	for _, test := range []struct {
		name     string
		data     []byte
		password key.PasswordFunc
		code     report.Code
	}{
		{"wrong password", pair.Private, answer("hunter2hunter2"), report.Usage},
		{"empty password", pair.Private, func() ([]byte, error) { return nil, nil }, report.Usage},
		{"no password to be had", pair.Private, func() ([]byte, error) { return nil, asked }, report.Failure},
		{"public key", publicPEM(ec.Public()), password, report.Invalid},
		{"nothing", nil, password, report.Invalid},
		{"two keys", append(plain, plain...), password, report.Invalid},
		{"damaged", block("PRIVATE KEY", []byte("x")), password, report.Invalid},
		{"P-224", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ecKey(t, elliptic.P224())))), password, report.WeakKey},
		{"RSA-1024", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(weakRSA(t)))), password, report.WeakKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := key.Load(test.data, test.password)
			if got := report.CodeOf(err); got != test.code {
				t.Errorf("code %q (%v), want %q", got, err, test.code)
			}
			for _, text := range append(report.Hints(err), fmt.Sprint(err)) {
				if strings.Contains(text, "hunter2") || strings.Contains(text, secret) {
					t.Errorf("the password is in %q", text)
				}
			}
		})
	}
}

// weakRSA is a fixed key: the standard library does not generate weak ones any more.
func weakRSA(tb testing.TB) *rsa.PrivateKey {
	tb.Helper()
	data, err := os.ReadFile("testdata/rsa1024.pem")
	if err != nil {
		tb.Fatal(err)
	}
	der, _ := pem.Decode(data)
	return must(x509.ParsePKCS8PrivateKey(der.Bytes)).(*rsa.PrivateKey)
}

func TestParsePublicRefuses(t *testing.T) {
	ec := ecKey(t, elliptic.P256())
	good := publicPEM(ec.Public())
	if _, err := key.ParsePublic(append([]byte("a comment\n"), good...)); err != nil {
		t.Errorf("a key with a comment before it: %v", err)
	}
	for _, test := range []struct {
		name string
		data []byte
		code report.Code
	}{
		{"nothing", nil, report.Invalid},
		{"two keys", append(good, good...), report.Invalid},
		{"trailing data", append(good, 'x'), report.Invalid},
		{"private key", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ec))), report.Invalid},
		{"certificate", block("CERTIFICATE", []byte("x")), report.Invalid},
		{"damaged", block("PUBLIC KEY", []byte("x")), report.Invalid},
		{"P-224", publicPEM(ecKey(t, elliptic.P224()).Public()), report.WeakKey},
		{"RSA-1024", publicPEM(weakRSA(t).Public()), report.WeakKey},
	} {
		if _, err := key.ParsePublic(test.data); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.name, err, test.code)
		}
	}
}

func TestSignDigestRefuses(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []any{ed, ecKey(t, elliptic.P384())} {
		signer := keytest.Of(t, k)
		if _, err := signer.SignDigest(t.Context(), make([]byte, 32)); report.CodeOf(err) != report.Usage {
			t.Errorf("%s signs a SHA-256 digest: %v", signer.Public().Algorithm(), err)
		}
	}
}

func TestPairWrite(t *testing.T) {
	pair := must(key.Generate([]byte(secret)))
	prefix := filepath.Join(t.TempDir(), "release")
	if err := pair.Write(prefix); err != nil {
		t.Fatal(err)
	}
	if info := must(os.Stat(prefix + ".key")); info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the private key %v", info.Mode())
	}
	if public := must(key.ParsePublic(must(os.ReadFile(prefix + ".pub")))); !public.Equal(pair.Public) {
		t.Error("another public key was written")
	}
	if err := pair.Write(prefix); report.CodeOf(err) != report.Usage {
		t.Errorf("overwriting: %v", err)
	}
	if err := os.Remove(prefix + ".key"); err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(prefix); report.CodeOf(err) != report.Usage {
		t.Errorf("overwriting the public key: %v", err)
	}
	if _, err := os.Stat(prefix + ".key"); !os.IsNotExist(err) {
		t.Errorf("half a pair was left behind: %v", err)
	}
}

// TestMain lets the test binary also be the plug-in program that TestOpen calls.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sigstore-kms-file" {
		os.Exit(plugin())
	}
	os.Exit(m.Run())
}

func plugin() int {
	args := must(handler.GetPluginArgs(os.Args))
	der, _ := pem.Decode(must(os.ReadFile(args.InitOptions.KeyResourceID)))
	sv := must(signature.LoadSignerVerifier(must(x509.ParsePKCS8PrivateKey(der.Bytes)), args.InitOptions.HashFunc))
	if args.MethodName != common.PublicKeyMethodName && args.MethodName != common.SignMessageMethodName {
		return 1
	}
	if _, err := handler.Dispatch(os.Stdout, os.Stdin, args, stored{sv}); err != nil {
		return 1
	}
	return 0
}

// stored adds the methods of a plug-in that this package does not call.
type stored struct{ signature.SignerVerifier }

func (stored) CreateKey(context.Context, string) (crypto.PublicKey, error) {
	return nil, errors.ErrUnsupported
}
func (stored) SupportedAlgorithms() []string { return nil }
func (stored) DefaultAlgorithm() string      { return "" }
func (stored) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, errors.ErrUnsupported
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(must(os.Executable()), filepath.Join(dir, "sigstore-kms-file")); err != nil {
		t.Skip("needs symbolic links:", err)
	}
	t.Setenv("PATH", dir)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		private := ecKey(t, curve)
		file := filepath.Join(dir, curve.Params().Name)
		if err := os.WriteFile(file, block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))), 0o600); err != nil {
			t.Fatal(err)
		}
		signer, err := key.Open(t.Context(), "file://"+file)
		if err != nil {
			t.Fatal(err)
		}
		h := signer.Public().Hash().New()
		h.Write([]byte("message"))
		digest := h.Sum(nil)
		byMessage, err := signer.SignMessage(t.Context(), []byte("message"))
		if err != nil || !ecdsa.VerifyASN1(&private.PublicKey, digest, byMessage) {
			t.Errorf("%s: sign a message: %v", curve.Params().Name, err)
		}
		byDigest, err := signer.SignDigest(t.Context(), digest)
		if err != nil || !ecdsa.VerifyASN1(&private.PublicKey, digest, byDigest) {
			t.Errorf("%s: sign a digest: %v", curve.Params().Name, err)
		}
	}
	for _, test := range []struct {
		reference string
		code      report.Code
	}{
		{"missing://key", report.Usage},
		{"file:///does/not/exist", report.Unavailable},
		{"release.key", report.Usage},
	} {
		if _, err := key.Open(t.Context(), test.reference); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.reference, err, test.code)
		}
	}
}

func TestIsReference(t *testing.T) {
	for name, want := range map[string]bool{
		"awskms://alias/release": true, "hsm://slot?pin=1": true, "release.key": false, "./x://y": false, "://y": false, "x://": false, "": false,
	} {
		if got := key.IsReference(name); got != want {
			t.Errorf("IsReference(%q) = %v", name, got)
		}
	}
}

func FuzzParsePublic(f *testing.F) {
	f.Add(publicPEM(ecKey(f, elliptic.P256()).Public()))
	f.Add(publicPEM(weakRSA(f).Public()))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\n\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := key.ParsePublic(data)
		if err != nil {
			return
		}
		again, err := key.ParsePublic(k.PEM())
		if err != nil || !again.Equal(k) || again.ID() != k.ID() {
			t.Errorf("the PEM form is another key: %v", err)
		}
	})
}

func ExamplePublic_Fingerprint() {
	public, err := key.ParsePublic([]byte(`-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
-----END PUBLIC KEY-----
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(public.Algorithm(), public.Fingerprint())
	// Output: ecdsa-p256 SHA256:XNJS+wzokyQ2+vjM0QQJgbie5K1rn+niorfnGqyyfNM
}
