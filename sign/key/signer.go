package key

import (
	"bytes"
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"os/exec"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PasswordFunc returns the password of a private key. It is called only when there is something to decrypt.
type PasswordFunc func() ([]byte, error)

// Signer signs with a private key that it never shows.
type Signer struct {
	signer signature.Signer
	public *Public
}

// Public returns the key that verifies the signatures of the signer.
func (s *Signer) Public() *Public { return s.public }

// SignMessage signs a message that is small enough to be in memory.
func (s *Signer) SignMessage(ctx context.Context, message []byte) ([]byte, error) {
	sig, err := s.signer.SignMessage(bytes.NewReader(message), options.WithContext(ctx))
	if err != nil {
		return nil, report.Errorf(report.Unavailable, "sign with key %s: %w", s.public.Fingerprint(), err)
	}
	return sig, nil
}

// SignDigest signs a file by its digest, computed with the hash of [Public.Hash]. Ed25519 keys cannot do that.
func (s *Signer) SignDigest(ctx context.Context, digest []byte) ([]byte, error) {
	if s.public.hash == 0 || len(digest) != s.public.hash.Size() {
		return nil, report.Errorf(report.Usage, "a key %s cannot sign this file by its digest", s.public.Algorithm()).
			WithHint("sign a statement (the default format), or use an ECDSA P-256 key")
	}
	sig, err := s.signer.SignMessage(nil, options.WithDigest(digest), options.WithCryptoSignerOpts(s.public.hash),
		options.WithContext(ctx))
	if err != nil {
		return nil, report.Errorf(report.Unavailable, "sign with key %s: %w", s.public.Fingerprint(), err)
	}
	return sig, nil
}

// Load reads a private key: cosign's encrypted PEM, PKCS#8 with or without encryption, SEC 1 or PKCS#1.
func Load(data []byte, password PasswordFunc) (*Signer, error) {
	block, rest := pem.Decode(data)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam -genkey writes one before the key
		data = rest
		block, rest = pem.Decode(data)
	}
	switch {
	case block == nil:
		return nil, report.Errorf(report.Invalid, "no PEM block found, want a private key")
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, report.Errorf(report.Invalid, "PEM block %q, want a private key", block.Type).
			WithHint("give the .key file to sign and the .pub file to verify")
	case len(bytes.TrimSpace(rest)) != 0:
		return nil, report.Errorf(report.Invalid, "data after the first PEM block, want exactly one private key")
	}
	var asked error
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(data, func(bool) ([]byte, error) {
		answer, err := password()
		asked = err
		if answer == nil {
			answer = []byte{} // the library takes nil for "not encrypted"
		}
		return answer, err
	})
	if asked != nil {
		return nil, asked
	}
	if err != nil {
		return nil, refuse(block, err)
	}
	return newSigner(private)
}

// refuse explains why a private key could not be read. The cause of a failed decryption is left out: it is noise at
// best, and a library could quote decrypted bytes.
func refuse(block *pem.Block, err error) error {
	if strings.Contains(block.Type, "ENCRYPTED") || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		return report.Errorf(report.Usage, "decrypt private key: wrong password or damaged key").
			WithHint("set SOLUTIONCTL_PASSWORD or COSIGN_PASSWORD to the password of the key")
	}
	if kind := unsupportedPrivate(block.Bytes); kind != "" {
		return refuseKind(kind)
	}
	return report.Errorf(report.Invalid, "parse private key: %w", err)
}

func newSigner(private crypto.PrivateKey) (*Signer, error) {
	k, ok := private.(crypto.Signer)
	if !ok {
		return nil, report.Errorf(report.WeakKey, "a key of type %T cannot sign", private)
	}
	public, err := NewPublic(k.Public())
	if err != nil {
		return nil, err
	}
	signer, err := signature.LoadDefaultSignerVerifier(private)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "load private key: %w", err)
	}
	return &Signer{signer: signer, public: public}, nil
}

// IsReference reports whether a key is named by a reference such as "awskms://alias/release" rather than by a file.
func IsReference(name string) bool {
	scheme, rest, found := strings.Cut(name, "://")
	return found && scheme != "" && rest != "" && !strings.ContainsAny(scheme, `/\.`)
}

// Open returns a signer for a key that stays where it is: "NAME://REF" runs the program sigstore-kms-NAME, which
// speaks to a KMS, an HSM or a token. Only digests and small messages are sent to it, never the archive.
func Open(ctx context.Context, reference string) (*Signer, error) {
	if !IsReference(reference) {
		return nil, report.Errorf(report.Usage, "key reference %q, want NAME://REF", reference)
	}
	provider, err := kms.Get(ctx, reference, crypto.SHA256)
	if err != nil {
		return nil, refuseReference(reference, err)
	}
	k, err := provider.PublicKey(options.WithContext(ctx))
	if err != nil {
		return nil, report.Errorf(report.Unavailable, "key %s: %w", reference, err)
	}
	public, err := NewPublic(k)
	if err != nil {
		return nil, err
	}
	switch public.hash {
	case crypto.SHA256:
	case 0:
		return nil, report.Errorf(report.WeakKey, "key %s: a %s key cannot be used through a plug-in", reference, public.Algorithm()).
			WithHint("use an ECDSA P-256 key there")
	default:
		if provider, err = kms.Get(ctx, reference, public.hash); err != nil {
			return nil, refuseReference(reference, err)
		}
	}
	return &Signer{signer: provider, public: public}, nil
}

func refuseReference(reference string, err error) error {
	name, _, _ := strings.Cut(reference, "://")
	if errors.Is(err, exec.ErrNotFound) {
		return report.Errorf(report.Usage, "key %s: the program sigstore-kms-%s is not installed", reference, name).
			WithHint("install sigstore-kms-%s and put it on the PATH", name)
	}
	return report.Errorf(report.Unavailable, "key %s: %w", reference, err)
}
