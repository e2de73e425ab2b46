package trust

import (
	"path/filepath"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Endorsement is the proof that a new key comes from whoever holds a key that is trusted already: a bundle without
// statement over the file of the new key.
type Endorsement struct {
	By     string // the name of the trusted key
	Bundle []byte
}

// Add stores a public key under a name that is not in use yet. With an endorsement, the key is refused unless the
// endorsing key is in the store, was not revoked and has signed exactly this file.
func Add(dir, name string, data []byte, endorsed *Endorsement) (*key.Public, error) {
	if !validName.MatchString(name) {
		return nil, report.Errorf(report.Usage, "key name %q, want letters, digits, '.', '_' and '-'", name)
	}
	public, err := key.ParsePublic(data)
	if err != nil {
		return nil, err
	}
	store, err := read([]string{dir})
	if err != nil {
		return nil, err
	}
	if have := store.keys[name]; have != nil {
		if have.Equal(public) {
			return public, nil
		}
		return nil, report.Errorf(report.Usage, "there is another key %s already (%s)", name, have.Fingerprint()).
			WithHint("choose another name, so that both are trusted during the change; remove the old key later")
	}
	if endorsed != nil {
		if err := store.checkEndorsement(data, endorsed); err != nil {
			return nil, err
		}
	}
	if err := durable.MkdirAll(filepath.Join(dir, keysDir), 0o755); err != nil {
		return nil, err
	}
	return public, writeFile(filepath.Join(dir, keysDir, name+keySuffix), public.PEM())
}

func (s *Store) checkEndorsement(data []byte, e *Endorsement) error {
	for _, trusted := range s.List() {
		if trusted.Name != e.By {
			continue
		}
		if trusted.Revoked {
			return report.Errorf(report.Revoked, "key %s was revoked and cannot endorse another one", e.By)
		}
		if err := verifyFile(data, e.Bundle, trusted.Key); err != nil {
			return report.Errorf(report.Untrusted, "endorsement by %s: %w", e.By, err).
				WithHint("the vendor signs the new key with the old one: solutionctl sign --format message --key OLD.key NEW.pub")
		}
		return nil
	}
	return report.Errorf(report.Untrusted, "there is no trusted key %s to endorse another one", e.By)
}

// Remove takes a key out of the store. It refuses while the policy still names it.
func Remove(dir, name string) error {
	store, err := read([]string{dir})
	if err != nil {
		return err
	}
	if store.keys[name] == nil {
		return report.Errorf(report.Usage, "there is no key %s", name).WithHint("solutionctl trust list shows the keys")
	}
	if store.policy != nil {
		for i, rule := range store.policy.Rules {
			for _, signer := range rule.Signers {
				if signer.Key == name {
					return report.Errorf(report.Usage, "rules[%d] of %s still names key %s", i, store.source.File, name).
						WithHint("take it out of the policy first")
				}
			}
		}
	}
	return durable.Remove(filepath.Join(dir, keysDir, name+keySuffix))
}

func errMissing(dir string, d *directory) error {
	if d != nil {
		return nil
	}
	return report.Errorf(report.Usage, "there is no trust store %s", dir).
		WithHint("make one with solutionctl trust add, or name another with --trust-dir")
}

// writeFile replaces a file at once. Nothing in a trust store is secret.
func writeFile(name string, data []byte) error { return durable.WriteFile(name, data, 0o644) }
