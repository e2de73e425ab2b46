package bundle

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"github.com/digitorus/timestamp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// SignStatement returns a bundle that signs the statement. It was verified with the public key before it is returned.
func SignStatement(ctx context.Context, signer *key.Signer, s *Statement) ([]byte, error) {
	payload, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	signature, err := signer.SignMessage(ctx, dsse.PAE(PayloadType, payload))
	if err != nil {
		return nil, err
	}
	digest := s.SHA256()
	return finish(signer.Public(), digest[:], enveloped(payload, signature))
}

// Attest returns a bundle that signs an in-toto statement of any type, such as where a file comes from. [Parse] refuses it: it
// releases nothing. It was verified with the public key before it is returned.
func Attest(ctx context.Context, signer *key.Signer, payload []byte) ([]byte, error) {
	signature, err := signer.SignMessage(ctx, dsse.PAE(PayloadType, payload))
	if err != nil {
		return nil, err
	}
	data, err := marshal(signer.Public(), enveloped(payload, signature))
	if err != nil {
		return nil, err
	}
	return data, verifyAttestation(data, signer.Public())
}

func enveloped(payload, signature []byte) *protobundle.Bundle {
	return &protobundle.Bundle{Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: PayloadType,
		// No keyid: see checkEnvelope.
		Signatures: []*protodsse.Signature{{Sig: signature}},
	}}}
}

// SignDigest returns a bundle that signs a file by its digest, computed with the hash of the key, in the form of
// `cosign sign-blob`. It was verified with the public key before it is returned.
func SignDigest(ctx context.Context, signer *key.Signer, digest []byte) ([]byte, error) {
	signature, err := signer.SignDigest(ctx, digest)
	if err != nil {
		return nil, err
	}
	content := &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Digest: digest}, Signature: signature,
	}
	for _, h := range hashes {
		if h.hash == signer.Public().Hash() {
			content.MessageDigest.Algorithm = h.proto
		}
	}
	return finish(signer.Public(), digest, &protobundle.Bundle{
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: content},
	})
}

func finish(public *key.Public, digest []byte, b *protobundle.Bundle) ([]byte, error) {
	data, err := marshal(public, b)
	if err != nil {
		return nil, err
	}
	parsed, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if err := parsed.VerifyKey(public, digest); err != nil {
		return nil, unverified(err)
	}
	return data, nil
}

// marshal returns the JSON of a bundle whose signature is one of public.
func marshal(public *key.Public, b *protobundle.Bundle) ([]byte, error) {
	b.MediaType = mediaType
	b.VerificationMaterial = &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
		PublicKey: &protocommon.PublicKeyIdentifier{Hint: public.ID()},
	}}
	return protojson.Marshal(b)
}

func unverified(err error) error {
	return report.Errorf(report.Failure, "the new signature does not verify: %w", err).
		WithHint("the key store returned a signature of another key or of other content; check the key reference")
}

// SetCertificate returns the bundle with the certificate of its key, a PEM file, in place of the key's hint. It can
// then be verified with the certificate's authority, without the key.
func SetCertificate(data, certificate []byte) ([]byte, error) {
	b, err := parseAny(data)
	if err != nil {
		return nil, err
	}
	leaf, public, err := parseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	if b.HasCertificate() || b.VerifyKey(public, b.Claimed()) != nil {
		return nil, notItsKey(leaf)
	}
	b.entity.VerificationMaterial.Content = &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: leaf.Raw},
	}
	return protojson.Marshal(b.entity.Bundle)
}

// parseAny reads a bundle that signs an archive or its provenance.
func parseAny(data []byte) (*Bundle, error) {
	b, err := Parse(data)
	if report.CodeOf(err) == report.NotAllowed {
		b, err = ParseProvenance(data)
	}
	return b, err
}

// CheckCertificate reports whether [SetCertificate] will accept a certificate for the signatures of a key.
func CheckCertificate(certificate []byte, signer *key.Public) error {
	leaf, public, err := parseCertificate(certificate)
	if err == nil && !public.Equal(signer) {
		err = notItsKey(leaf)
	}
	return err
}

func notItsKey(leaf *x509.Certificate) error {
	return report.Errorf(report.Usage, "the certificate of %s does not belong to the key that signed", leaf.Subject)
}

func parseCertificate(data []byte) (*x509.Certificate, *key.Public, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, nil, report.Errorf(report.Usage, "no PEM block CERTIFICATE found")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, report.Errorf(report.Usage, "parse certificate: %w", err)
	}
	public, err := key.NewPublic(leaf.PublicKey)
	return leaf, public, err
}

// AddTimestamp returns the bundle with a timestamp in addition: the response of an RFC 3161 authority to a query over
// the raw signature.
func AddTimestamp(data, response []byte) ([]byte, error) {
	b, err := parseAny(data)
	if err != nil {
		return nil, err
	}
	token, err := timestamp.ParseResponse(response)
	if err != nil {
		return nil, report.Errorf(report.Usage, "parse timestamp response: %w", err)
	}
	if !token.HashAlgorithm.Available() || string(hash(token.HashAlgorithm, b.Signature())) != string(token.HashedMessage) {
		return nil, report.Errorf(report.Usage, "the timestamp is not one of this signature").
			WithHint("stamp the raw bytes of the signature, as docs/guides/signing.md shows")
	}
	material := b.entity.VerificationMaterial
	if material.TimestampVerificationData == nil {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{}
	}
	stamps := &material.TimestampVerificationData.Rfc3161Timestamps
	*stamps = append(*stamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: response})
	return protojson.Marshal(b.entity.Bundle)
}

func hash(h crypto.Hash, data []byte) []byte {
	sum := h.New()
	sum.Write(data)
	return sum.Sum(nil)
}

// Claimed returns the signed digest that the bundle itself has, of whatever file it is.
func (b *Bundle) Claimed() []byte {
	if b.statement != nil {
		digest := b.statement.SHA256()
		return digest[:]
	}
	if b.provenance != nil {
		digest, _ := hex.DecodeString(b.provenance.Subject[0].Digest["sha256"]) // checkProvenance has decoded it before
		return digest
	}
	_, digest := b.Digest()
	return digest
}
