package bundle

import (
	"crypto"

	_ "crypto/sha512" // SHA-384 and SHA-512, with which P-384 and P-521 keys sign

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	sigstore "github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// Suffix follows the name of a file in the name of its bundle.
const Suffix = ".sigstore.json"

// MaxSize bounds what [Parse] reads; a list for 250 GB of archive fits.
const MaxSize = 4 << 20

const (
	mediaType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	mediaTypeOld = "application/vnd.dev.sigstore.bundle+json;version=0.3"
)

// Bundle is a well-formed bundle. Nothing in it is to be believed before its signature was verified.
type Bundle struct {
	entity     *sigstore.Bundle
	statement  *Statement
	provenance *schema.ProvenanceStatement // of [ParseProvenance]
}

// Parse reads a bundle. All its errors have the code report.BadBundle, except that a statement of a foreign type has
// report.NotAllowed.
func Parse(data []byte) (*Bundle, error) {
	b, err := parse(data)
	if err != nil {
		return nil, err
	}
	if envelope := b.entity.GetDsseEnvelope(); envelope != nil {
		if err = checkEnvelope(envelope); err != nil {
			return nil, err
		}
		b.statement, err = ParseStatement(envelope.GetPayload())
		return b, err
	}
	return b, b.checkMessage()
}

// parse reads a bundle, and nothing of its content.
func parse(data []byte) (*Bundle, error) {
	if len(data) > MaxSize {
		return nil, report.Errorf(report.BadBundle, "the bundle is larger than %d bytes", MaxSize)
	}
	if err := strictjson.Check(data); err != nil {
		return nil, report.Errorf(report.BadBundle, "bundle: %w", err)
	}
	b := &Bundle{entity: &sigstore.Bundle{}}
	if err := b.entity.UnmarshalJSON(data); err != nil {
		return nil, report.Errorf(report.BadBundle, "bundle: %w", err).
			WithHint("want a sigstore bundle of version 0.3; cosign 2 writes one with --new-bundle-format")
	}
	if t := b.entity.MediaType; t != mediaType && t != mediaTypeOld {
		return nil, report.Errorf(report.BadBundle, "bundle: media type %q, want %q", t, mediaType)
	}
	if _, err := b.entity.VerificationContent(); err != nil {
		return nil, report.Errorf(report.BadBundle, "bundle: %w", err)
	}
	return b, nil
}

func checkEnvelope(envelope *protodsse.Envelope) error {
	if n := len(envelope.GetSignatures()); n != 1 {
		return report.Errorf(report.BadBundle, "bundle: %d signatures in the envelope, want exactly one", n)
	}
	if envelope.GetSignatures()[0].GetKeyid() != "" {
		// Verifiers interpret it differently: some compare it with the hint, some with an ssh fingerprint.
		return report.Errorf(report.BadBundle, "bundle: the envelope's signature has a keyid, want none")
	}
	if envelope.GetPayloadType() != PayloadType {
		return report.Errorf(report.BadBundle, "bundle: payload type %q, want %q", envelope.GetPayloadType(), PayloadType)
	}
	return nil
}

func (b *Bundle) checkMessage() error {
	h, digest := b.Digest()
	if h == 0 || len(digest) != h.Size() {
		return report.Errorf(report.BadBundle, "bundle: the message digest is not a SHA-256, SHA-384 or SHA-512 digest")
	}
	return nil
}

// Statement returns the statement that is signed, nil when the bundle signs the digest of a file.
func (b *Bundle) Statement() *Statement { return b.statement }

// Digest returns the digest that a bundle without a statement signs, as the bundle claims it.
func (b *Bundle) Digest() (crypto.Hash, []byte) {
	claimed := b.entity.GetMessageSignature().GetMessageDigest()
	for _, h := range hashes {
		if h.proto == claimed.GetAlgorithm() {
			return h.hash, claimed.GetDigest()
		}
	}
	return 0, nil
}

// Hint returns the identifier of the key in the bundle, empty for a certificate. It is not signed: use it to try the right key
// first, never to choose one.
func (b *Bundle) Hint() string { return b.entity.GetVerificationMaterial().GetPublicKey().GetHint() }

// KeyID returns the ID of the key that the bundle names: by its hint, which is not signed, or by its certificate.
func (b *Bundle) KeyID() string {
	if !b.HasCertificate() {
		return b.Hint()
	}
	public, err := key.NewPublic(b.Certificate().PublicKey)
	if err != nil {
		return ""
	}
	return public.ID()
}

// HasCertificate reports whether the bundle is to be verified by a certificate instead of a key.
func (b *Bundle) HasCertificate() bool {
	_, key := b.entity.GetVerificationMaterial().GetContent().(*protobundle.VerificationMaterial_PublicKey)
	return !key
}

// Signature returns the raw signature, which a timestamp authority stamps.
func (b *Bundle) Signature() []byte {
	if envelope := b.entity.GetDsseEnvelope(); envelope != nil {
		return envelope.GetSignatures()[0].GetSig()
	}
	return b.entity.GetMessageSignature().GetSignature()
}

// hashes are the ways in which a digest is named.
var hashes = []struct {
	hash  crypto.Hash
	proto protocommon.HashAlgorithm
	name  string
}{
	{crypto.SHA256, protocommon.HashAlgorithm_SHA2_256, "sha256"},
	{crypto.SHA384, protocommon.HashAlgorithm_SHA2_384, "sha384"},
	{crypto.SHA512, protocommon.HashAlgorithm_SHA2_512, "sha512"},
}
