package trust

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Endorsement proves that a new key comes from the holder of a trusted key: a bundle without statement over the file of
// the new key.
type Endorsement struct {
	By     string // the name of the trusted key, "root" for the root key of the store
	Bundle []byte
	Now    time.Time // a key that the policy ends before does not endorse
	Beside []string  // directories that are read after the one that is changed: their keys, policy and revocations count, too
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
	return public, changing(dir, func() error { return add(dir, name, data, public, endorsed) })
}

func add(dir, name string, data []byte, public *key.Public, endorsed *Endorsement) error {
	dirs := []string{dir}
	if endorsed != nil {
		dirs = append(dirs, endorsed.Beside...)
	}
	store, err := read(dirs)
	if err != nil {
		return err
	}
	if have := store.keys[name]; have != nil {
		if have.Equal(public) {
			return nil
		}
		return otherKey(name, have)
	}
	if endorsed != nil {
		if err := store.checkEndorsement(data, endorsed); err != nil {
			return err
		}
	}
	if err := durable.MkdirAll(filepath.Join(dir, keysDir), 0o755); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, keysDir, name+keySuffix), public.PEM())
}

func otherKey(name string, have *key.Public) error {
	return report.Errorf(report.Usage, "there is another key %s already (%s)", name, have.Fingerprint()).
		WithHint("choose another name, so that both are trusted during the change; remove the old key later")
}

func (s *Store) checkEndorsement(data []byte, e *Endorsement) error {
	k, err := s.endorser(e.By, e.Now)
	if err != nil {
		return err
	}
	if err := verifyFile(data, e.Bundle, k); err != nil {
		return report.Errorf(report.Untrusted, "endorsement by %s: %w", e.By, err).
			WithHint("its holder signs the file: solutionctl sign --format message --key OLD.key FILE")
	}
	return nil
}

// endorser returns the key of this name if it is as good for an endorsement as it is for an archive: not revoked, and not past its end.
func (s *Store) endorser(name string, now time.Time) (*key.Public, error) {
	k := s.keys[name]
	if name == rootName {
		k = s.root
	}
	if k == nil {
		return nil, report.Errorf(report.Untrusted, "there is no trusted key %s to endorse another one", name)
	}
	if slices.Contains(s.revoked.Keys, k.ID()) {
		return nil, report.Errorf(report.Revoked, "key %s was revoked and cannot endorse another one", name)
	}
	if name == rootName || s.policy == nil {
		return k, nil
	}
	var last *Signer
	for i := range s.policy.Rules {
		signer := s.policy.Rules[i].signer(&Identified{Names: s.names(k)})
		switch {
		case signer == nil:
		case signer.NotAfter.IsZero() || !now.After(signer.NotAfter.Time):
			return k, nil
		case last == nil || signer.NotAfter.After(last.NotAfter.Time):
			last = signer
		}
	}
	if last == nil {
		return nil, report.Errorf(report.NotAllowed, "the policy lets key %s sign no Solution, so it cannot endorse another key", name).
			WithHint("name a key that the policy lists with --endorsed-by")
	}
	return nil, report.Errorf(report.Expired, "key %s was accepted until %s and cannot endorse another one", name, last.NotAfter.Format(time.RFC3339)).
		WithHint("name a key that is still accepted with --endorsed-by, or compare the fingerprint and add the key without it")
}

// Remove takes a key out of the store. It refuses while the policy still names it.
func Remove(dir, name string) error {
	return changing(dir, func() error {
		found, err := CheckRemoval(dir, name)
		if err != nil {
			return err
		}
		if !found {
			return report.Errorf(report.Usage, "there is no key %s", name).WithHint("solutionctl trust list shows the keys")
		}
		return durable.Remove(filepath.Join(dir, keysDir, name+keySuffix))
	})
}

// CheckRemoval reports whether the store has a key, and refuses what [Remove] would refuse.
func CheckRemoval(dir, name string) (found bool, err error) {
	store, err := read([]string{dir})
	if err != nil || store.keys[name] == nil {
		return false, err
	}
	if store.policy == nil {
		return true, nil
	}
	for i, rule := range store.policy.Rules {
		for _, signer := range rule.Signers {
			if signer.Key == name {
				return true, report.Errorf(report.Usage, "rules[%d] of %s still names key %s", i, store.source.File, name).
					WithHint("take it out of the policy first")
			}
		}
	}
	return true, nil
}

// changing runs a change that depends on the content of a store, while no other process makes such a change. The lock
// lies beside the store, which may be exchanged, or in it where the directory above is not writable.
func changing(dir string, change func() error) error {
	dir = filepath.Clean(dir)
	if err := durable.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := durable.Create(dir + ".lock")
	if err != nil {
		lock, err = durable.Create(filepath.Join(dir, "lock"))
	}
	if err != nil {
		return err
	}
	return errors.Join(change(), lock.Discard())
}

func errChanged(dir string) error {
	return report.Errorf(report.Conflict, "trust store %s was changed meanwhile", dir).WithHint("run the same command again, and look at the changes")
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
