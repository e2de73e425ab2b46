package trust

import (
	"errors"
	"io/fs"
	"maps"

	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// snapshot is all that a trust directory holds at one moment.
type snapshot struct {
	files map[string][]byte // without revocations, which are united and not replaced
	store *Store

	root            *key.Public // nil: none
	list            *Revocations
	listed, listSig []byte       // the list and its signature as they were read, nil: none
	local           *Revocations // see [localFile]
}

// readSnapshot returns an empty snapshot when there is no such directory.
func readSnapshot(dir string) (*snapshot, error) {
	return retry(func() (*snapshot, error) { return readSnapshotOnce(dir) })
}

func readSnapshotOnce(dir string) (*snapshot, error) {
	s := &snapshot{files: map[string][]byte{}, list: &Revocations{}, local: &Revocations{}}
	d, err := openDirectory(dir)
	if err != nil {
		return nil, err
	}
	if s.store, err = read([]string{dir}); d == nil {
		return s, err
	}
	if err == nil {
		s.files, err = d.readFiles()
	}
	if err == nil {
		maps.DeleteFunc(s.files, func(name string, _ []byte) bool { return isRevocation(name) })
		err = s.readRevocations(d)
	}
	return s, d.finish(err)
}

func (p *snapshot) readRevocations(d *directory) (err error) {
	if p.local, err = readLocal(d); err != nil {
		return err
	}
	if p.root, err = readRootKey(d); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	signed, err := readSigned(d, p.root)
	if err == nil {
		p.list, p.listed, p.listSig = signed.Revocations, signed.list, signed.signature
	}
	return err
}

func (p *snapshot) empty() bool { return len(p.files) == 0 && p.local.none() && p.listed == nil }

func isRevocation(name string) bool {
	return name == revocationsFile || name == revocationsFile+bundle.Suffix || name == localFile
}

// withRevocations returns files together with the signed list of this snapshot, and the revocations beside it.
func (p *snapshot) withRevocations(files map[string][]byte, more *Revocations) (map[string][]byte, error) {
	all := maps.Clone(files)
	if p.listed != nil {
		all[revocationsFile], all[revocationsFile+bundle.Suffix] = p.listed, p.listSig
	}
	more = more.without(p.list)
	if more.none() {
		return all, nil
	}
	var err error
	all[localFile], err = more.marshalLocal()
	return all, err
}
