package trust

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Identified is the signer of a signature. Names are all names under which the store knows the signer: those of the key, or the roots and
// identities of the policy for which the certificate is good.
type Identified struct {
	Names       []string
	KeyID       string // of the key, or of the key in the certificate
	Fingerprint string
	Algorithm   string
	SignedAt    time.Time // zero without a timestamp of a known authority

	certified []certified // nil: identified by its key
}

// certified is an identity in a certificate, and the root of the store that it is to be issued by.
type certified struct {
	root     string
	identity bundle.Identity
}

func (s *Signer) certified() certified {
	return certified{s.Root, bundle.Identity{Name: s.Identity, Issuer: s.Issuer}}
}

func identify(k *key.Public, names []string) *Identified {
	return &Identified{Names: names, KeyID: k.ID(), Fingerprint: k.Fingerprint(), Algorithm: k.Algorithm()}
}

// Authenticate finds the signer in the store. The digest is that of the archive, as for [bundle.Bundle.VerifyKey].
// A good signature over another file has the code report.Mismatch, a bad one that names a key of the store report.Corrupt,
// every other failure report.Untrusted.
func (s *Store) Authenticate(b *bundle.Bundle, digest []byte) (*Identified, error) {
	if b.HasCertificate() {
		return s.authenticateCertificate(b, digest)
	}
	if len(s.keys) == 0 {
		return nil, report.Errorf(report.Untrusted, "the trust store has no keys").
			WithHint("get the vendor's public key in a way that you trust, then: solutionctl trust add NAME KEY.pub")
	}
	for _, k := range s.candidates(b.Hint()) {
		err := b.VerifyKey(k, digest)
		if report.CodeOf(err) == report.Untrusted {
			continue
		}
		if err != nil {
			return nil, err
		}
		who := identify(k, s.names(k))
		who.SignedAt = b.Time(slices.Collect(maps.Values(s.roots))...)
		return who, nil
	}
	for _, k := range s.candidates(b.Hint()) {
		if k.ID() == b.Hint() {
			return nil, report.Errorf(report.Corrupt, "the signature claims to be one of the trusted key %s, and is not", s.names(k)[0]).
				WithHint("the signature file was damaged or altered: get it again from where the release is; if that does not help, do not use the archive")
		}
	}
	return nil, report.Errorf(report.Untrusted, "the signature was not made by any of the %d trusted keys%s", len(s.keys), claim(b)).
		WithHint("solutionctl trust list shows the trusted keys; ask the vendor which key signed this release")
}

func claim(b *bundle.Bundle) string {
	if b.Hint() == "" {
		return ""
	}
	return fmt.Sprintf(" (it claims key %q)", b.Hint())
}

// candidates are the different keys of the store, the one that the hint names first.
func (s *Store) candidates(hint string) []*key.Public {
	var keys []*key.Public
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		if k := s.keys[name]; !slices.ContainsFunc(keys, k.Equal) {
			keys = append(keys, k)
		}
	}
	first := slices.IndexFunc(keys, func(k *key.Public) bool { return k.ID() == hint })
	if first > 0 {
		keys[0], keys[first] = keys[first], keys[0]
	}
	return keys
}

func (s *Store) names(k *key.Public) []string {
	var names []string
	for name, other := range s.keys {
		if other.Equal(k) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// authenticateCertificate tries the identities that the policy names: a certificate of a known authority is worth
// nothing by itself, since the authority issues certificates to others as well.
func (s *Store) authenticateCertificate(b *bundle.Bundle, digest []byte) (*Identified, error) {
	public, err := key.NewPublic(b.Certificate().PublicKey)
	if err != nil {
		return nil, err
	}
	who, roots, causes := identify(public, nil), []*bundle.Root(nil), []error(nil)
	for _, entry := range s.certified() {
		err := b.VerifyCertificate(s.roots[entry.root], entry.identity, digest)
		if report.CodeOf(err) == report.Untrusted {
			causes = append(causes, fmt.Errorf("%s of %s: %w", entry.identity.Name, entry.root, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		who.Names, who.certified = append(who.Names, entry.root+"/"+entry.identity.Name), append(who.certified, entry)
		roots = append(roots, s.roots[entry.root])
	}
	switch {
	case who.certified != nil:
		who.SignedAt = b.Time(roots...)
		return who, nil
	case causes == nil:
		return nil, report.Errorf(report.Untrusted, "the bundle holds a certificate, and the policy names no identity to accept").
			WithHint("add the authority under roots/ and a signer with root and identity to policy.yaml")
	default:
		return nil, report.Errorf(report.Untrusted, "the certificate is not one of a trusted signer: %w", errors.Join(causes...))
	}
}

// certified returns all identities that the policy names, each once.
func (s *Store) certified() (list []certified) {
	if s.policy == nil {
		return nil
	}
	for _, rule := range s.policy.Rules {
		for i := range rule.Signers {
			if entry := rule.Signers[i].certified(); entry.root != "" && !slices.Contains(list, entry) {
				list = append(list, entry)
			}
		}
	}
	return list
}

// Rule returns the rule for a Solution and its place in the policy, -1 when there is no policy.
func (s *Store) Rule(solution string) (*Rule, int, error) {
	if s.policy == nil {
		implied := &Rule{Solutions: []string{"*"}, Threshold: 1, AcceptPlain: true}
		for name := range s.keys {
			implied.Signers = append(implied.Signers, Signer{Key: name})
		}
		return implied, -1, nil
	}
	for i := range s.policy.Rules {
		if s.policy.Rules[i].matches(solution) {
			return &s.policy.Rules[i], i, nil
		}
	}
	return nil, -1, report.Errorf(report.NotAllowed, "no rule of %s is for Solution %q", s.source.File, solution).
		WithHint("add a rule for it to the policy")
}

// Judge reports whether the rule accepts this signature of an identified signer.
func (s *Store) Judge(rule *Rule, who *Identified, b *bundle.Bundle, now time.Time) error {
	if slices.Contains(s.revoked.Keys, who.KeyID) {
		return report.Errorf(report.Revoked, "key %s (%s) was revoked", who.Names[0], who.Fingerprint).
			WithHint("get a release that is signed with the vendor's current key")
	}
	entry := rule.signer(who)
	if entry == nil {
		return report.Errorf(report.NotAllowed, "%s is not allowed to sign this Solution", who.Names[0]).
			WithHint("the policy lists the signers of each Solution")
	}
	if b.Statement() == nil && b.Provenance() == nil && !rule.AcceptPlain {
		return report.Errorf(report.NotAllowed, "the signature of %s has no statement, and the policy does not accept that", who.Names[0]).
			WithHint("sign with solutionctl sign, or set acceptPlain in the rule")
	}
	moment := now
	if rule.RequireTimestamp {
		if who.SignedAt.IsZero() {
			return report.Errorf(report.NotAllowed, "the signature of %s has no timestamp of a trusted authority", who.Names[0])
		}
		moment = who.SignedAt
	}
	if limit := entry.NotAfter.Time; !limit.IsZero() && moment.After(limit) {
		return report.Errorf(report.Expired, "signatures of %s are accepted until %s only", who.Names[0], limit.Format(time.RFC3339)).
			WithHint("get a release that is signed with the vendor's current key")
	}
	if st := b.Statement(); st != nil && st.Predicate.Expires != nil && now.After(*st.Predicate.Expires) {
		return report.Errorf(report.Expired, "the signature of %s has expired at %s", who.Names[0], st.Predicate.Expires.UTC().Format(time.RFC3339)).
			WithHint("get a newer release, or the same one with a newer signature")
	}
	return nil
}

// signer returns the entry that names the signer; of several, the one that is valid longest.
func (r *Rule) signer(who *Identified) *Signer {
	var best *Signer
	for i := range r.Signers {
		entry := &r.Signers[i]
		same := slices.Contains(who.certified, entry.certified()) || who.certified == nil && slices.Contains(who.Names, entry.Key)
		if same && (best == nil || entry.NotAfter.IsZero() || !best.NotAfter.IsZero() && entry.NotAfter.After(best.NotAfter.Time)) {
			best = entry
		}
	}
	return best
}

// CheckArchive reports whether the archive itself was revoked, by its digest or its version.
func (s *Store) CheckArchive(digest []byte, solution bundle.Solution) error {
	if slices.Contains(s.revoked.Archives, "sha256:"+hex.EncodeToString(digest)) {
		return report.Errorf(report.Revoked, "this archive was revoked").WithHint("get a newer release from the vendor")
	}
	if floor := s.revoked.MinimumVersions[solution.Name]; floor != "" && lower(solution.Version, floor) {
		return report.Errorf(report.Revoked, "versions of %s below %s were revoked; this is %s", solution.Name, floor, solution.Version).
			WithHint("get version %s or later", floor)
	}
	return nil
}

// RevokesArchives reports whether archives were revoked by their digests.
func (s *Store) RevokesArchives() bool { return len(s.revoked.Archives) > 0 }

// CheckOverride reports whether an administrator is allowed to skip verification.
func (s *Store) CheckOverride() error {
	return s.refuseOverride("to skip verification", "add the vendor's key with 'solutionctl trust add', and to the policy")
}

// WithKeys returns a store that trusts exactly these keys, under these names, instead of its own. Everything else
// stays: revocations apply, and each rule of the policy accepts these keys instead of its signers, so that its
// threshold counts, and the end of a key that it lists. It is refused where the policy does not allow an override.
func (s *Store) WithKeys(keys map[string]*key.Public) (*Store, error) {
	if err := s.refuseOverride("to trust keys of the command line", "leave out --key, so that the keys of the trust store count"); err != nil {
		return nil, err
	}
	other := *s
	other.keys = maps.Clone(keys)
	if s.policy == nil {
		return &other, nil
	}
	policy := *s.policy
	policy.Rules = slices.Clone(policy.Rules)
	for i := range policy.Rules {
		policy.Rules[i].Signers = s.replaceSigners(&policy.Rules[i], keys)
	}
	other.policy = &policy
	return &other, nil
}

func (s *Store) replaceSigners(rule *Rule, keys map[string]*key.Public) (signers []Signer) {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		signer := Signer{Key: name}
		if listed := rule.signer(&Identified{Names: s.names(keys[name])}); listed != nil {
			signer.NotAfter = listed.NotAfter
		}
		signers = append(signers, signer)
	}
	return signers
}

func (s *Store) refuseOverride(what, hint string) error {
	if s.policy == nil || s.policy.AllowOverride {
		return nil
	}
	return report.Errorf(report.Refused, "%s does not allow %s", s.source.File, what).
		WithHint("%s; an administrator of this host can set allowOverride: true there", hint)
}

// RevokedKeys returns the IDs of all revoked keys.
func (s *Store) RevokedKeys() []string { return slices.Clone(s.revoked.Keys) }

// WithKey returns the store as it is once [Add] has stored a key under a name.
func (s *Store) WithKey(name string, k *key.Public) (*Store, error) {
	if have := s.keys[name]; have != nil && !have.Equal(k) {
		return nil, otherKey(name, have)
	}
	other := *s
	other.keys = maps.Clone(s.keys)
	if other.keys == nil {
		other.keys = map[string]*key.Public{}
	}
	other.keys[name] = k
	return &other, nil
}

// Has reports whether the store has a key under any name.
func (s *Store) Has(k *key.Public) bool { return len(s.names(k)) > 0 }
