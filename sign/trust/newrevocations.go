package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PrepareRevocations returns the changes of a revocation list that was signed by the root key of the store in a
// directory. A list with a lower serial than the present one is refused. Revocations of the present list that are not
// in the new one stay.
func PrepareRevocations(dir string, list, signature []byte, state *State) (*Transfer, error) {
	present, err := readSnapshot(dir)
	if err != nil {
		return nil, err
	}
	if present.root == nil {
		return nil, report.Errorf(report.Untrusted, "%s has no %s, so no revocations can be verified", dir, rootKeyFile).
			WithHint("get the root key of the vendor in a way that you trust and store it there")
	}
	next := *present
	if next.list, err = openRevocations(list, signature, present.root); err != nil {
		return nil, err
	}
	next.listed, next.listSig = list, signature
	if next.list.Serial < present.list.Serial {
		return nil, report.Errorf(report.TrustStore, "this list has serial %d, the present one %d", next.list.Serial, present.list.Serial).
			WithHint("get the current list from the holder of the root key")
	}
	if err = state.checkSerials(map[string]int64{present.root.ID(): next.list.Serial}); err != nil {
		return nil, err
	}
	next.local = present.list.with(present.local).without(next.list)
	t := &Transfer{Serial: next.list.Serial, Changes: present.changes(&next), Notes: present.store.stayRevoked(present.local, next.local)}
	if next.list.Serial == present.list.Serial && !bytes.Equal(list, present.listed) {
		t.Notes = append(t.Notes, fmt.Sprintf("two lists with serial %d were issued: the root key is used in two places", next.list.Serial))
	}
	t.write = func() error { return present.replaceList(dir, &next) }
	t.dir, t.again = dir, func() (*Transfer, error) { return PrepareRevocations(dir, list, signature, state) }
	return t, nil
}

// replaceList makes the list of another snapshot the present one. All revocations are in force at every moment: those
// that both snapshots have beside their lists are written before the new list, and those that it contains are removed
// after it.
func (p *snapshot) replaceList(dir string, next *snapshot) error {
	err := writeLocal(dir, p.local.with(next.local))
	if err == nil {
		err = writeSigned(dir, next.listed, next.listSig)
	}
	if err == nil {
		err = writeLocal(dir, next.local)
	}
	return err
}

func writeLocal(dir string, r *Revocations) error {
	file := filepath.Join(dir, localFile)
	if r.none() {
		err := durable.Remove(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := r.marshalLocal()
	if err != nil {
		return err
	}
	return writeFile(file, data)
}
