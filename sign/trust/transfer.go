package trust

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// rootName is the name under which the root key of a store endorses. No other key has it there.
const rootName = "root"

// ImportOptions say who answers for an import.
type ImportOptions struct {
	State *State
	// Endorsed proves that a key of the present store has signed the export. A release key adds keys under names that no directory
	// has, and no more. The root key, under the name "root", replaces the store.
	Endorsed *Endorsement
	// Replace lets the export replace the present store, whatever its signature: the decision of an administrator of
	// this host, who has seen the changes.
	Replace bool
}

// Transfer is an import that is prepared and not done yet.
type Transfer struct {
	Serial  int64    // of the revocation list afterwards, 0 without one
	Changes []string // the changes, in words
	Notes   []string // content that stays although the import does not have it

	dir   string
	write func() error
	again func() (*Transfer, error) // prepares the same import
}

// Apply makes the changes of the transfer, unless the store has changed since so that they would be different.
func (t *Transfer) Apply() error {
	return changing(t.dir, func() error {
		now, err := t.again()
		if err != nil {
			return err
		}
		if !slices.Equal(now.Changes, t.Changes) {
			return errChanged(t.dir)
		}
		return now.write()
	})
}

// PrepareImport returns the changes of importing an exported store into a directory. The first import is accepted
// without a signature: compare the fingerprints with the vendor's. A later one needs the authority that [ImportOptions]
// names. Revocations stay whatever the authority, and a list of the same root key must not be older than the present
// one.
func PrepareImport(dir string, data []byte, o ImportOptions) (*Transfer, error) {
	if err := restore(dir); err != nil {
		return nil, err
	}
	if _, err := Load([]string{dir}, o.State); err != nil {
		return nil, err
	}
	present, err := readSnapshot(dir)
	if err != nil {
		return nil, err
	}
	files, err := readExport(data)
	if err != nil {
		return nil, err
	}
	next, err := usable(files, nil)
	if err != nil {
		return nil, fmt.Errorf("the exported trust store is not usable: %w", err)
	}
	if err = present.authorize(data, dir, o); err != nil {
		return nil, err
	}
	merged, err := present.merge(next, o)
	if err != nil {
		return nil, err
	}
	result, err := usable(merged, o.State)
	if err != nil {
		return nil, fmt.Errorf("the trust store would not be usable: %w", err)
	}
	t := &Transfer{Serial: result.list.Serial, Changes: present.changes(result), Notes: present.notes(next, result)}
	t.write = func() error {
		if len(t.Changes) == 0 {
			return nil
		}
		return install(dir, merged, o.State)
	}
	t.dir, t.again = dir, func() (*Transfer, error) { return PrepareImport(dir, data, o) }
	return t, nil
}

// authorize refuses an import without an authority.
func (p *snapshot) authorize(data []byte, dir string, o ImportOptions) error {
	if o.Endorsed != nil {
		store, err := read(append([]string{dir}, o.Endorsed.Beside...))
		if err != nil {
			return err
		}
		return store.checkEndorsement(data, o.Endorsed)
	}
	if o.Replace || p.empty() {
		return nil
	}
	return report.Errorf(report.Untrusted, "there is a trust store in %s already, and nothing proves that the new one comes from its owner", dir).
		WithHint("name the key that has signed the new store with --endorsed-by, or check the changes and accept them: --replace --dry-run")
}

// whole reports whether an authorized import replaces the store. A release key does not outrank the policy, the root key or
// other release keys, which can be in a directory beside an empty one.
func (o ImportOptions) whole() bool {
	return o.Replace || o.Endorsed == nil || o.Endorsed.By == rootName
}

// merge returns the files of the store after an import.
func (p *snapshot) merge(next *snapshot, o ImportOptions) (map[string][]byte, error) {
	if p.root != nil && next.root != nil && p.root.Equal(next.root) && next.list.Serial < p.list.Serial {
		return nil, report.Errorf(report.TrustStore, "the exported store has revocations with serial %d, the present one %d", next.list.Serial, p.list.Serial).
			WithHint("export a store that has the current list: solutionctl trust import revocations.json")
	}
	local := p.list.with(p.local)
	local.add(next.local)
	if o.whole() {
		return next.withRevocations(next.files, local)
	}
	together := maps.Clone(next.files)
	maps.Copy(together, p.files)
	if err := p.checkAddsKeysOnly(next, o.Endorsed); err != nil {
		return nil, err
	}
	if next.root == nil {
		return p.withRevocations(together, local)
	}
	return next.withRevocations(together, local)
}

// checkAddsKeysOnly refuses changes of a host's store for which a release key is not sufficient.
func (p *snapshot) checkAddsKeysOnly(next *snapshot, e *Endorsement) error {
	beside, err := read(e.Beside)
	if err != nil {
		return err
	}
	together := maps.Clone(p.files)
	maps.Copy(together, next.files)
	var refused []string
	for _, c := range fileChanges(p.files, together) {
		if !c.addsKey {
			refused = append(refused, c.text)
		}
	}
	for _, k := range next.store.List() {
		if hidden := beside.keys[k.Name]; hidden != nil && !hidden.Equal(k.Key) && p.store.keys[k.Name] == nil {
			refused = append(refused, fmt.Sprintf("hides key %s  %s  %s of another trust directory", k.Name, hidden.Algorithm(), hidden.Fingerprint()))
		}
	}
	if more := next.local.without(p.list.with(p.local)).without(next.list); !more.none() {
		refused = append(refused, "revokes more in "+localFile)
	}
	if refused == nil {
		return nil
	}
	return report.Errorf(report.Refused, "key %s can add keys to this store and no more, and the exported store %s", e.By, strings.Join(refused, "; ")).
		WithHint("the holder of the root key can sign it (--endorsed-by root); or check the changes with --replace --dry-run, and accept them on this host with --replace")
}

// notes names content that stays although the import does not have it.
func (p *snapshot) notes(next, result *snapshot) (notes []string) {
	for _, name := range sortedNames(p.files) {
		if next.files[name] == nil && result.files[name] != nil {
			notes = append(notes, "keeps "+describeFile(name)+", which is not in the exported store")
		}
	}
	return append(notes, result.store.stayRevoked(p.local, result.local)...)
}

// stayRevoked names revocations that stay because an earlier list had them.
func (s *Store) stayRevoked(before, after *Revocations) (notes []string) {
	for _, text := range s.changes(before, after) {
		notes = append(notes, "still "+text+": an earlier list did")
	}
	return notes
}

// install replaces the store by one with other files.
func install(dir string, files map[string][]byte, state *State) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := durable.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	next, err := materialize(parent, files)
	if err != nil {
		return err
	}
	defer os.RemoveAll(next) //nolint:errcheck // it was renamed, or it is rubbish
	if _, err := Load([]string{next}, state); err != nil {
		return err
	}
	return swap(dir, next)
}

// usable returns files as the store that they make.
func usable(files map[string][]byte, state *State) (*snapshot, error) {
	dir, err := materialize("", files)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a copy
	if _, err = Load([]string{dir}, state); err != nil {
		return nil, relocated(err, dir)
	}
	s, err := readSnapshot(dir)
	return s, err
}

// relocated removes the name of a temporary copy from an error: the user does not know it.
func relocated(err error, dir string) error {
	return report.Errorf(report.CodeOf(err), "%s", strings.ReplaceAll(err.Error(), dir+"/", "")).WithHint("%s", "correct it where it was exported, and export it again")
}

// materialize writes files into a new directory below parent.
func materialize(parent string, files map[string][]byte) (string, error) {
	dir, err := os.MkdirTemp(parent, ".trust-")
	if err != nil {
		return "", err
	}
	for _, name := range sortedNames(files) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := durable.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = writeFile(file, files[name])
		}
		if err != nil {
			_ = os.RemoveAll(dir) // the rest of it is useless
			return "", err
		}
	}
	return dir, os.Chmod(dir, 0o755)
}
