package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Names of the files of a store.
const (
	policyFile      = "policy.yaml"
	keysDir         = "keys"
	keySuffix       = ".pub"
	rootsDir        = "roots"
	rootFile        = "trusted_root.json"
	rootKeyFile     = "root.pub"
	revocationsFile = "revocations.json"
)

// Store is a trust store: keys, policy and revocations. It does not change after it was loaded.
type Store struct {
	keys    map[string]*key.Public
	roots   map[string]*bundle.Root
	policy  *Policy
	source  PolicySource
	revoked Revocations
	serials map[string]int64 // by the ID of the root key
	root    *key.Public      // of the first directory
}

// PolicySource names the policy that was applied. File is empty when there is none.
type PolicySource struct {
	File   string
	SHA256 string
}

// Load reads the store from directories, the most important one first: the policy is the first one found, and a name
// of an earlier directory hides the same name of a later one. Revocations of all of them apply. Directories that do
// not exist are left out.
func Load(dirs []string, state *State) (*Store, error) {
	s, err := read(dirs)
	if err != nil {
		return nil, err
	}
	if err := s.checkReferences(); err != nil {
		return nil, err
	}
	if err := state.checkSerials(s.serials); err != nil {
		return nil, err
	}
	return s, nil
}

// read is Load for those who change a store, which may name a key before it has it.
func read(dirs []string) (*Store, error) {
	return retry(func() (*Store, error) { return readOnce(dirs) })
}

func readOnce(dirs []string) (*Store, error) {
	s := &Store{keys: map[string]*key.Public{}, roots: map[string]*bundle.Root{}, serials: map[string]int64{}}
	for i, dir := range dirs {
		d, err := openDirectory(dir)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		rootKey, err := s.load(d)
		if err = d.finish(err); err != nil {
			return nil, err
		}
		if i == 0 {
			s.root = rootKey
		}
	}
	return s, nil
}

// Keys returns a store that trusts exactly these keys, under these names, for everything.
func Keys(keys map[string]*key.Public) *Store { return &Store{keys: maps.Clone(keys)} }

// load adds the content of a directory and returns its root key, nil for none.
func (s *Store) load(d *directory) (*key.Public, error) {
	for _, step := range []func(*directory) error{s.loadKeys, s.loadRoots, s.loadPolicy, s.loadLocal} {
		if err := step(d); err != nil {
			return nil, err
		}
	}
	return s.loadRevocations(d)
}

func (s *Store) loadLocal(d *directory) error {
	local, err := readLocal(d)
	if err == nil {
		s.revoked.add(local)
	}
	return err
}

func (s *Store) loadKeys(d *directory) error {
	names, err := d.list(keysDir, keySuffix)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.keys[name] != nil {
			continue
		}
		file := path.Join(keysDir, name+keySuffix)
		data, err := d.read(file, maxDocument)
		if err != nil {
			return err
		}
		if s.keys[name], err = key.ParsePublic(data); err != nil {
			return d.fail(file, err)
		}
	}
	return nil
}

func (s *Store) loadRoots(d *directory) error {
	names, err := d.list(rootsDir, "")
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.roots[name] != nil {
			continue
		}
		if err := d.check(path.Join(rootsDir, name)); err != nil {
			return err
		}
		file := path.Join(rootsDir, name, rootFile)
		data, err := d.read(file, bundle.MaxSize)
		if err != nil {
			return err
		}
		if s.roots[name], err = bundle.ParseRoot(data); err != nil {
			return d.fail(file, err)
		}
	}
	return nil
}

func (s *Store) loadPolicy(d *directory) error {
	data, err := d.read(policyFile, maxDocument)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.policy != nil {
		return nil
	}
	if err != nil {
		return err
	}
	file := path.Join(d.path, policyFile)
	digest := sha256.Sum256(data)
	s.source = PolicySource{File: file, SHA256: hex.EncodeToString(digest[:])}
	s.policy, err = ParsePolicy(file, data)
	return err
}

// loadRevocations accepts no list without a signature of the root key. That there is a root key and no list is noted, so
// that the state can object.
func (s *Store) loadRevocations(d *directory) (*key.Public, error) {
	rootKey, err := readRootKey(d)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := d.read(revocationsFile, maxDocument); errors.Is(missing, fs.ErrNotExist) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	revoked, err := readRevocations(d, rootKey)
	if err != nil {
		return nil, err
	}
	s.serials[rootKey.ID()] = max(revoked.Serial, s.serials[rootKey.ID()])
	s.revoked.add(revoked)
	return rootKey, nil
}

// signedList is a list of revocations with its files, which are nil where there is none.
type signedList struct {
	*Revocations
	list, signature []byte
}

func readRevocations(d *directory, rootKey *key.Public) (*Revocations, error) {
	signed, err := readSigned(d, rootKey)
	if err != nil {
		return nil, err
	}
	return signed.Revocations, nil
}

// readSigned returns an empty list when there is none. A process that was killed between the writing of the list and that of its
// signature leaves the latter as a partial file.
func readSigned(d *directory, rootKey *key.Public) (*signedList, error) {
	list, err := d.read(revocationsFile, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return &signedList{Revocations: &Revocations{}}, nil
	}
	if err != nil {
		return nil, err
	}
	var failure error
	for _, name := range []string{revocationsFile + bundle.Suffix, durable.Partial(revocationsFile + bundle.Suffix)} {
		signature, err := d.read(name, bundle.MaxSize)
		if err == nil {
			var revoked *Revocations
			if revoked, err = openRevocations(list, signature, rootKey); err == nil {
				return &signedList{revoked, list, signature}, nil
			}
			err = d.fail(revocationsFile, err)
		}
		failure = cmp.Or(failure, err)
	}
	return nil, failure
}

func readRootKey(d *directory) (*key.Public, error) {
	data, err := d.read(rootKeyFile, maxDocument)
	if err != nil {
		return nil, err
	}
	rootKey, err := key.ParsePublic(data)
	if err != nil {
		return nil, d.fail(rootKeyFile, err)
	}
	return rootKey, nil
}

// openRevocations checks the signature before it parses the list.
func openRevocations(list, signature []byte, rootKey *key.Public) (*Revocations, error) {
	if err := verifyFile(list, signature, rootKey); err != nil {
		return nil, err
	}
	return ParseRevocations(list)
}

// verifyFile checks a bundle without statement over a small file: what `cosign sign-blob` makes.
func verifyFile(data, signature []byte, k *key.Public) error {
	b, err := bundle.Parse(signature)
	if err != nil {
		return err
	}
	h, _ := b.Digest()
	if b.Statement() != nil || h == 0 {
		return report.Errorf(report.BadBundle, "want a signature over the file itself, as `solutionctl sign --format message` makes it")
	}
	sum := h.New()
	sum.Write(data)
	return b.VerifyKey(k, sum.Sum(nil))
}

// checkReferences refuses a policy that names a missing key or root: a misspelling must not turn into a rule that
// cannot be met, or that fewer signers can meet than intended.
func (s *Store) checkReferences() error {
	if s.policy == nil {
		return nil
	}
	for i, rule := range s.policy.Rules {
		signers := map[string]bool{}
		for _, signer := range rule.Signers {
			switch {
			case signer.Key != "" && s.keys[signer.Key] == nil:
				return report.Errorf(report.TrustStore, "%s: rules[%d]: there is no key %q", s.source.File, i, signer.Key).
					WithHint("add it with solutionctl trust add, or take it out of the policy")
			case signer.Root != "" && s.roots[signer.Root] == nil:
				return report.Errorf(report.TrustStore, "%s: rules[%d]: there is no root %q", s.source.File, i, signer.Root)
			case signer.Key != "":
				signers[s.keys[signer.Key].ID()] = true
			default:
				signers[signer.Root+"/"+signer.Identity] = true
			}
		}
		if rule.Required() > len(signers) {
			return report.Errorf(report.TrustStore, "%s: rules[%d]: threshold %d, but there are only %d different signers",
				s.source.File, i, rule.Threshold, len(signers))
		}
	}
	return nil
}

// NamedKey is a key of the store. Revoked keys are listed too.
type NamedKey struct {
	Name    string
	Key     *key.Public
	Revoked bool
}

// List returns the keys, by name.
func (s *Store) List() []NamedKey {
	var list []NamedKey
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		k := s.keys[name]
		list = append(list, NamedKey{Name: name, Key: k, Revoked: slices.Contains(s.revoked.Keys, k.ID())})
	}
	return list
}

// Source returns the policy that applies.
func (s *Store) Source() PolicySource { return s.source }
