package sign_test

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// clock is an authority of timestamps.
type clock struct {
	*authority
	leaf *x509.Certificate
}

func newClock(t *testing.T) *clock {
	t.Helper()
	a := newAuthority(t)
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		t.Fatal(err)
	}
	return &clock{a, a.create(&x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "clock"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0),
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, a.itself, a.private.Public())}
}

func (c *clock) trustedRoot() []byte {
	c.t.Helper()
	authority := &root.SigstoreTimestampingAuthority{Root: c.itself, Leaf: c.leaf, URI: "https://tsa.example", ValidityPeriodStart: now.AddDate(-10, 0, 0)}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, nil, nil, []root.TimestampingAuthority{authority}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := made.MarshalJSON()
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

// stamp returns the response of the authority to a query over a signature.
func (c *clock) stamp(signature []byte) []byte {
	c.t.Helper()
	sum := sha256.Sum256(signature)
	response, err := (&timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: now.AddDate(0, -1, 0), Policy: asn1.ObjectIdentifier{1, 2, 3, 4, 1},
	}).CreateResponseWithOpts(c.leaf, c.private, crypto.SHA256)
	if err != nil {
		c.t.Fatal(err)
	}
	return response
}

// TestTimestampOfProvenance lets a provenance count where the policy requires timestamps.
func TestTimestampOfProvenance(t *testing.T) {
	w, c := newWorld(t), newClock(t)
	w.options.Provenance = true
	w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}], requireTimestamp: true}]"
	w.roots = map[string][]byte{"clock": c.trustedRoot()}
	w.attest(w.acme, provenance(hexSum(w.data)))
	for i, parse := range []func([]byte) (*bundle.Bundle, error){bundle.Parse, bundle.ParseProvenance} {
		if i == 1 {
			if verdict, _, err := w.verify(); report.CodeOf(err) != report.NotAllowed || verdict.Signatures[0].Status != sign.Accepted {
				t.Errorf("the archive alone is stamped: %v", err)
			}
		}
		b, err := parse(w.bundles[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		if w.bundles[i].Data, err = bundle.AddTimestamp(w.bundles[i].Data, c.stamp(b.Signature())); err != nil {
			t.Fatal(err)
		}
	}
	verdict, _, err := w.verify()
	if err != nil || verdict.Signatures[1].Status != sign.Attested || verdict.Signatures[1].SignedAt == nil {
		t.Errorf("%v, %+v", err, verdict.Signatures)
	}
}
