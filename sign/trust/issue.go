package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Draft is a revocation list that is not issued yet.
type Draft struct {
	Serial  int64
	Changes []string // the additions to the present list; none: they are in it already

	dir   string
	root  *key.Public
	state *State
	more  Revocations
	list  []byte // nil: the present list stays
}

// Prepare makes the next revocation list of a directory: the present revocations, in the list and beside it, and the
// given ones. A revocation is never removed. The holder of the root key issues the list. It is refused where a later list than the present one
// was seen: the next one would not have its revocations, and hosts that have it would refuse the next one.
func Prepare(dir string, more Revocations, root *key.Public, state *State) (*Draft, error) {
	if err := more.check(); err != nil {
		return nil, err
	}
	return retry(func() (*Draft, error) {
		d, err := openDirectory(dir)
		if err != nil || d == nil {
			return nil, errors.Join(err, errMissing(dir, d))
		}
		draft, err := d.prepare(more, root, state)
		return draft, d.finish(err)
	})
}

func (d *directory) prepare(more Revocations, root *key.Public, state *State) (*Draft, error) {
	store, err := read([]string{d.path})
	if err != nil {
		return nil, err
	}
	present, err := currentRevocations(d, root)
	if err != nil {
		return nil, err
	}
	if err = state.checkPresent(root.ID(), present.Serial); err != nil {
		return nil, err
	}
	local, err := readLocal(d)
	if err != nil {
		return nil, err
	}
	next := present.with(local).with(&more)
	draft := &Draft{Serial: present.Serial, Changes: store.changes(present, next), dir: d.path, root: root, state: state, more: more}
	if len(draft.Changes) == 0 && present.Serial > 0 {
		return draft, nil
	}
	draft.Serial++
	next.Serial = draft.Serial
	if draft.list, err = next.Marshal(); err != nil {
		return nil, err
	}
	if _, err = ParseRevocations(draft.list); err != nil { // it could not be parsed, and no further list could be made
		return nil, report.Errorf(report.Usage, "the list could not be read any more: %w", err)
	}
	return draft, nil
}

var solutionName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// check refuses invalid names of keys, archives and Solutions, with a hint for the user.
func (r *Revocations) check() error {
	for _, name := range slices.Sorted(maps.Keys(r.MinimumVersions)) {
		if !solutionName.MatchString(name) {
			return report.Errorf(report.Usage, "minimum version of %q: no Solution is called that", name).
				WithHint("write the name as it is in the manifest: lower-case letters, digits and '-'")
		}
		if _, err := schema.ParseVersion(r.MinimumVersions[name]); err != nil {
			return report.Errorf(report.Usage, "minimum version of %s: %w", name, err)
		}
	}
	c := *r
	c.APIVersion, c.Kind, c.Serial = apiVersion, revocationsKind, 1
	if err := c.validate(); err != nil {
		return report.As(report.Usage, err).
			WithHint("'solutionctl trust list --output json' shows the IDs of keys; 'sha256sum' shows the digest of an archive")
	}
	return nil
}

// with returns a list with the revocations of both.
func (r *Revocations) with(more *Revocations) *Revocations {
	next := &Revocations{Keys: slices.Clone(r.Keys), Archives: slices.Clone(r.Archives), MinimumVersions: maps.Clone(r.MinimumVersions)}
	next.add(more)
	return next
}

// changes describes the additional revocations of a list compared with another one.
func (s *Store) changes(before, after *Revocations) []string {
	var changes []string
	compare := func(kind string, before, after []string, describe func(string) string) {
		for _, one := range unique(after) {
			if !slices.Contains(before, one) {
				changes = append(changes, "revokes "+kind+" "+describe(one))
			}
		}
	}
	compare("archive", before.Archives, after.Archives, func(digest string) string { return digest })
	compare("key", before.Keys, after.Keys, s.describeKey)
	for _, name := range slices.Sorted(maps.Keys(after.MinimumVersions)) {
		old, now := before.MinimumVersions[name], after.MinimumVersions[name]
		switch {
		case old == "":
			changes = append(changes, fmt.Sprintf("revokes versions of %s below %s", name, now))
		case old != now:
			changes = append(changes, fmt.Sprintf("revokes versions of %s below %s (before: %s)", name, now, old))
		}
	}
	return changes
}

func (s *Store) describeKey(id string) string {
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		if s.keys[name].ID() == id {
			return id + " (" + name + ")"
		}
	}
	return id
}

// Issue signs the list and puts it into the directory. The first one also stores the public root key.
func (d *Draft) Issue(ctx context.Context, signer *key.Signer) error {
	if d.list == nil {
		return nil
	}
	h := signer.Public().Hash()
	if h == 0 {
		return report.Errorf(report.Usage, "a key %s cannot sign revocations", signer.Public().Algorithm())
	}
	sum := h.New()
	sum.Write(d.list)
	signature, err := bundle.SignDigest(ctx, signer, sum.Sum(nil))
	if err != nil {
		return err
	}
	return changing(d.dir, func() error {
		again, err := Prepare(d.dir, d.more, d.root, d.state)
		if err == nil && !bytes.Equal(again.list, d.list) {
			err = errChanged(d.dir)
		}
		if err == nil {
			err = writeFile(filepath.Join(d.dir, rootKeyFile), d.root.PEM())
		}
		if err != nil {
			return err
		}
		return writeSigned(d.dir, d.list, signature)
	})
}

// Record notes in a state how new the list is.
func (d *Draft) Record(s *State) {
	s.FormatVersion = stateFormat
	if s.Issued == nil {
		s.Issued = map[string]int64{}
	}
	s.Issued[d.root.ID()] = max(d.Serial, s.Issued[d.root.ID()])
}

// writeSigned replaces a list and its signature, which are two files. The signature is complete under the name that readers
// try as well before the list appears, so that there is no moment without a list that verifies.
func writeSigned(dir string, list, signature []byte) error {
	f, err := durable.Create(filepath.Join(dir, revocationsFile+bundle.Suffix))
	if err != nil {
		return err
	}
	_, err = f.Write(signature)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), durable.SyncDirectory(dir)); err == nil {
		err = writeFile(filepath.Join(dir, revocationsFile), list)
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(0o644)
}

func currentRevocations(d *directory, root *key.Public) (*Revocations, error) {
	known, err := readRootKey(d)
	if errors.Is(err, fs.ErrNotExist) {
		return &Revocations{}, nil
	}
	if err != nil {
		return nil, err
	}
	if !known.Equal(root) {
		return nil, report.Errorf(report.Untrusted, "the store trusts another root key (%s) than this one (%s)",
			known.Fingerprint(), root.Fingerprint())
	}
	return readRevocations(d, known)
}
