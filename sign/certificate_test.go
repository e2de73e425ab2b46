package sign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

const releaser = "release@acme.example"

// authority issues certificates to signers, as a company's own one does.
type authority struct {
	t       *testing.T
	private *ecdsa.PrivateKey
	itself  *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, private: private}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0),
	}
	a.itself = a.create(template, template, private.Public())
	return a
}

func (a *authority) create(template, parent *x509.Certificate, public any) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.private)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// trustedRoot returns the file with which a trust store trusts the authority.
func (a *authority) trustedRoot() []byte {
	a.t.Helper()
	authorities := []root.CertificateAuthority{&root.FulcioCertificateAuthority{
		Root: a.itself, URI: "https://pki.example", ValidityPeriodStart: now.AddDate(-10, 0, 0),
	}}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, nil, nil, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	data, err := made.MarshalJSON()
	if err != nil {
		a.t.Fatal(err)
	}
	return data
}

// certify returns a bundle of this signer with a certificate for the releaser in place of the key.
func (a *authority) certify(data []byte, signer *key.Signer) []byte {
	a.t.Helper()
	certificate := a.create(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "release"}, EmailAddresses: []string{releaser}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}, a.itself, signer.Public().Crypto())
	certified, err := bundle.SetCertificate(data, pemBlock("CERTIFICATE", certificate.Raw))
	if err != nil {
		a.t.Fatal(err)
	}
	return certified
}

// withAuthority returns a world that trusts an authority under two names, and has one bundle with a certificate of acme's key.
func withAuthority(t *testing.T) (*world, *authority) {
	t.Helper()
	w, a := newWorld(t), newAuthority(t)
	w.roots = map[string][]byte{"a": a.trustedRoot(), "b": a.trustedRoot()}
	w.set(a.certify(w.sign(w.acme, w.statement()), w.acme))
	return w, a
}

// TestCertificateOfSeveralEntries lets a certificate count by any entry of the policy, whichever comes first.
func TestCertificateOfSeveralEntries(t *testing.T) {
	a, b := "{root: a, identity: "+releaser+"}", "{root: b, identity: "+releaser+"}"
	ended := "{root: a, identity: " + releaser + ", notAfter: 2020-01-01}"
	for name, test := range map[string]struct {
		policy string
		code   report.Code
	}{
		"one entry":                   {"rules: [{solutions: [acme-db], signers: [" + a + "]}]", ""},
		"another root in a rule":      {"rules: [{solutions: [other], signers: [" + a + "]}, {solutions: [acme-db], signers: [" + b + "]}]", ""},
		"in the other rule only":      {"rules: [{solutions: [other], signers: [" + a + "]}, {solutions: [acme-db], signers: [{key: acme}]}]", report.NotAllowed},
		"an entry that ended first":   {"rules: [{solutions: [acme-db], signers: [" + ended + ", " + b + "]}]", ""},
		"an entry that ended":         {"rules: [{solutions: [acme-db], signers: [" + ended + "]}]", report.Expired},
		"two roots, threshold of two": {"rules: [{solutions: [acme-db], signers: [" + a + ", " + b + "], threshold: 2}]", report.Threshold},
	} {
		w, _ := withAuthority(t)
		w.policy = test.policy
		if _, _, err := w.verify(); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", name, err, test.code)
		}
	}
}

// TestOneKeyIsOneSigner puts a public certificate into a copy of the only signature, which needs no key.
func TestOneKeyIsOneSigner(t *testing.T) {
	w, a := withAuthority(t)
	w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}, {root: a, identity: " + releaser + "}], threshold: 2}]"
	mine := w.sign(w.acme, w.statement())
	w.set(mine, a.certify(mine, w.acme))
	if verdict, _, err := w.verify(); report.CodeOf(err) != report.Threshold {
		t.Errorf("one key satisfies a threshold of two: %v, %+v", err, verdict.Signatures)
	}
	w.set(mine, a.certify(mine, w.acme), w.sign(w.second, w.statement()))
	if _, _, err := w.verify(); err != nil {
		t.Errorf("two keys: %v", err)
	}
	w.set(mine, a.certify(w.sign(w.mallory, w.statement()), w.mallory))
	if _, _, err := w.verify(); err != nil {
		t.Errorf("a key, and another one with a certificate: %v", err)
	}
	w.set(mine, a.certify(mine, w.acme), a.certify(w.sign(w.mallory, w.statement()), w.mallory))
	if _, _, err := w.verify(); err != nil {
		t.Errorf("the same two, and a copy that anyone can make: %v", err)
	}
	w.set(a.certify(w.sign(w.acme, w.statement()), w.acme), a.certify(w.sign(w.mallory, w.statement()), w.mallory))
	if _, _, err := w.verify(); report.CodeOf(err) != report.Threshold {
		t.Errorf("two keys of one identity: %v", err)
	}
}

// TestRevokedCertificateKey imports an absurd version that a stolen certificate key has signed. It is forgotten once that key is revoked.
func TestRevokedCertificateKey(t *testing.T) {
	w, a := withAuthority(t)
	w.policy = "rules: [{solutions: [acme-db], signers: [{root: a, identity: " + releaser + "}]}]"
	verdict, _, err := w.verify()
	if err != nil {
		t.Fatal(err)
	}
	id := w.acme.Public().ID()
	if got := parse(t, w.bundles[0].Data).KeyID(); got != id || parse(t, w.sign(w.acme, w.statement())).KeyID() != id {
		t.Errorf("the bundle names key %s, want %s", got, id)
	}
	if s := verdict.Signatures[0]; s.KeyID != id || s.KeyName != "a/"+releaser || len(verdict.Signers()) != 1 || verdict.Signers()[0] != id {
		t.Errorf("%+v, signers %v, want key ID %s", s, verdict.Signers(), id)
	}
	store, err := trust.Load([]string{w.trustDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.state = &trust.State{}
	w.state.Record(bundle.Solution{Name: "acme-db", Version: "999.0.0"}, hexSum([]byte("other")), verdict.Signers(), store)
	w.set(a.certify(w.sign(w.second, w.statement()), w.second))
	if _, _, err = w.verify(); report.CodeOf(err) != report.Downgrade {
		t.Errorf("before the revocation: %v", err)
	}
	w.revoked = &trust.Revocations{Keys: []string{id}}
	if verdict, _, err = w.verify(); err != nil || verdict.Signatures[0].Status != sign.Accepted {
		t.Errorf("after the revocation: %v", err)
	}
}
