package bundle

import (
	"crypto"
	"crypto/x509"
	"time"

	sigstore "github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// VerifyKey checks that the key has signed this bundle, and that the bundle is about the file with that digest:
// SHA-256 for a statement, otherwise the hash that [Bundle.Digest] names. A failure has the code report.Untrusted when
// the signature is not one of the key, and report.Mismatch when it is but belongs to another file.
//
// The digest must have been computed by the caller, or be one that the caller will check the file against.
func (b *Bundle) VerifyKey(k *key.Public, digest []byte) error {
	if b.HasCertificate() {
		return report.Errorf(report.Untrusted, "the bundle holds a certificate, not a signature of a key")
	}
	v, err := keyVerifier(k)
	if err != nil {
		return err
	}
	h, err := b.hash(k)
	if err != nil {
		return err
	}
	return b.verify(v, digest, h, verify.WithKey())
}

// keyVerifier verifies signatures of one key.
func keyVerifier(k *key.Public) (*verify.Verifier, error) {
	verifier, err := signature.LoadDefaultVerifier(k.Crypto())
	if err != nil {
		return nil, report.Errorf(report.WeakKey, "key %s: %w", k.Fingerprint(), err)
	}
	// The hint is not signed: for any hint, the answer is the given key.
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	return verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
}

// verifyAttestation checks that the key has signed a bundle that [Attest] makes, whatever it is about.
func verifyAttestation(data []byte, k *key.Public) error {
	v, err := keyVerifier(k)
	if err != nil {
		return err
	}
	var entity sigstore.Bundle
	if err = entity.UnmarshalJSON(data); err != nil {
		return err
	}
	if _, err = v.Verify(&entity, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey())); err != nil {
		return unverified(err)
	}
	return nil
}

// verify tries the digest that the bundle claims first: when that fails the signature is bad, and when only the wanted
// digest fails the signature is good but about something else.
func (b *Bundle) verify(v *verify.Verifier, digest []byte, h string, option verify.PolicyOption) error {
	_, err := v.Verify(b.entity, verify.NewPolicy(verify.WithArtifactDigest(h, b.Claimed()), option))
	if err != nil {
		return report.Errorf(report.Untrusted, "verify signature: %w", err)
	}
	if _, err := v.Verify(b.entity, verify.NewPolicy(verify.WithArtifactDigest(h, digest), option)); err != nil {
		return report.Errorf(report.Mismatch, "the signature is for a file with digest %s:%x, this one has %x", h, b.Claimed(), digest).
			WithHint("compare the file with the one that was released; it was altered, or the bundle belongs to another file")
	}
	return nil
}

func (b *Bundle) hash(k *key.Public) (string, error) {
	if b.statement != nil || b.provenance != nil {
		return "sha256", nil
	}
	claimed, _ := b.Digest()
	for _, h := range hashes {
		if h.hash == claimed && (k == nil || claimed == k.Hash()) {
			return h.name, nil
		}
	}
	return "", report.Errorf(report.Untrusted, "a key %s does not sign files by a digest of kind %v", k.Algorithm(), claimed)
}

// Root has the trusted authorities: those that issue certificates to signers, and those that issue timestamps.
type Root struct{ material *root.TrustedRoot }

// ParseRoot reads a trusted_root.json, such as `cosign trusted-root create` makes.
func ParseRoot(data []byte) (*Root, error) {
	if len(data) > MaxSize {
		return nil, report.Errorf(report.Invalid, "the trusted root is larger than %d bytes", MaxSize)
	}
	if err := strictjson.Check(data); err != nil {
		return nil, report.Errorf(report.Invalid, "trusted root: %w", err)
	}
	material, err := root.NewTrustedRootFromJSON(data)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "trusted root: %w", err)
	}
	if err := checkAuthorities(material); err != nil {
		return nil, report.Errorf(report.CodeOf(err), "trusted root: %w", err)
	}
	return &Root{material: material}, nil
}

// checkAuthorities refuses weak keys, as those of signers are.
func checkAuthorities(material *root.TrustedRoot) error {
	var keys []crypto.PublicKey
	certificates := func(list ...*x509.Certificate) {
		for _, c := range list {
			if c != nil {
				keys = append(keys, c.PublicKey)
			}
		}
	}
	for _, authority := range material.FulcioCertificateAuthorities() {
		if ca, ok := authority.(*root.FulcioCertificateAuthority); ok {
			certificates(append(ca.Intermediates, ca.Root)...)
		}
	}
	for _, authority := range material.TimestampingAuthorities() {
		if tsa, ok := authority.(*root.SigstoreTimestampingAuthority); ok {
			certificates(append(tsa.Intermediates, tsa.Root, tsa.Leaf)...)
		}
	}
	for _, logs := range []map[string]*root.TransparencyLog{material.RekorLogs(), material.CTLogs()} {
		for _, log := range logs {
			keys = append(keys, log.PublicKey)
		}
	}
	for _, k := range keys {
		if err := key.CheckAuthority(k); err != nil {
			return err
		}
	}
	return nil
}

// Identity is the subject of a certificate: one of its subject alternative names, and the issuer that vouched for
// the name in a certificate of Fulcio. An empty Issuer accepts any; a company's own authority states none.
type Identity struct{ Name, Issuer string }

// VerifyCertificate is [Bundle.VerifyKey] for a bundle that holds a certificate: it must be issued by an authority of
// the root to the identity, for code signing, and valid at the time of a trusted timestamp, or now if there is none.
// Where the root knows transparency logs, an entry and its inclusion are required too.
func (b *Bundle) VerifyCertificate(r *Root, id Identity, digest []byte) error {
	if !b.HasCertificate() {
		return report.Errorf(report.Untrusted, "the bundle is signed by a key, not by a certificate")
	}
	issuer := ""
	if id.Issuer == "" {
		issuer = ".*"
	}
	identity, err := verify.NewShortCertificateIdentity(id.Issuer, issuer, id.Name, "")
	if err != nil {
		return report.Errorf(report.TrustStore, "identity %q: %w", id.Name, err)
	}
	h, err := b.hash(nil)
	if err != nil {
		return err
	}
	v, err := verify.NewVerifier(r.material, append(b.observers(r), verify.WithoutStatementPredicate())...)
	if err != nil {
		return err
	}
	return b.verify(v, digest, h, verify.WithCertificateIdentity(identity))
}

// observers are the requirements that follow from the authorities of the root.
func (b *Bundle) observers(r *Root) []verify.VerifierOption {
	var options []verify.VerifierOption
	if len(r.material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	switch {
	case len(r.material.RekorLogs()) > 0:
		options = append(options, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	case !b.Time(r).IsZero():
		options = append(options, verify.WithSignedTimestamps(1))
	default:
		options = append(options, verify.WithCurrentTime())
	}
	return options
}

// Certificate returns the certificate of the bundle, nil if it has none.
func (b *Bundle) Certificate() *x509.Certificate {
	content, err := b.entity.VerificationContent()
	if err != nil {
		return nil
	}
	return content.Certificate()
}

// Time returns a time at which the signature existed already, according to the earliest timestamp by an authority of the roots.
// It is zero when there is no such timestamp.
func (b *Bundle) Time(roots ...*Root) time.Time {
	var earliest time.Time
	for _, r := range roots {
		stamps, _, err := verify.VerifySignedTimestamp(b.entity, r.material)
		if err != nil {
			continue
		}
		for _, stamp := range stamps {
			if earliest.IsZero() || stamp.Time.Before(earliest) {
				earliest = stamp.Time
			}
		}
	}
	return earliest
}
