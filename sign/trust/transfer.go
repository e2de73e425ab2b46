package trust

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// maxExport bounds the files of an exported store together.
const maxExport = 16 << 20

// Export writes the store in a directory as a tar file, to be carried to another site and given to [Import] there. It
// holds no secrets, and the same store gives the same bytes.
func Export(dir string, w io.Writer) error {
	d, err := openDirectory(dir)
	if err != nil || d == nil {
		return errors.Join(err, errMissing(dir, d))
	}
	defer d.close() //nolint:errcheck // opened for reading
	if _, err = Load([]string{dir}, nil); err != nil {
		return err
	}
	names, err := d.files()
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, name := range names {
		data, err := d.read(name, bundle.MaxSize)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// files returns the names of all files that a store may have, sorted; those at the top need not exist.
func (d *directory) files() ([]string, error) {
	names := []string{policyFile, rootKeyFile, revocationsFile, revocationsFile + bundle.Suffix}
	keys, err := d.list(keysDir, keySuffix)
	if err != nil {
		return nil, err
	}
	for _, name := range keys {
		names = append(names, path.Join(keysDir, name+keySuffix))
	}
	roots, err := d.list(rootsDir, "")
	if err != nil {
		return nil, err
	}
	for _, name := range roots {
		names = append(names, path.Join(rootsDir, name, rootFile))
	}
	slices.Sort(names)
	return names, nil
}

// Import replaces the store in a directory by an exported one. The first import is taken as it is: compare the
// fingerprints with the vendor's. Later ones need the endorsement of a key of the present store, or of its root key
// under the name "root", and must not bring older revocations.
func Import(dir string, data []byte, state *State, endorsed *Endorsement) error {
	if err := restore(dir); err != nil {
		return err
	}
	present, err := Load([]string{dir}, state)
	if err != nil {
		return err
	}
	if len(present.keys) > 0 || present.policy != nil || len(present.serials) > 0 {
		if err = present.checkImport(dir, data, endorsed); err != nil {
			return err
		}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err = durable.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(parent, ".trust-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next) //nolint:errcheck // it was renamed, or it is rubbish
	if err := errors.Join(unpack(next, data), os.Chmod(next, 0o755)); err != nil {
		return err
	}
	if _, err := Load([]string{next}, &State{Serials: present.serials}); err != nil {
		return fmt.Errorf("the imported trust store is not usable: %w", err)
	}
	return swap(dir, next)
}

func (s *Store) checkImport(dir string, data []byte, e *Endorsement) error {
	if e == nil {
		return report.Errorf(report.Untrusted, "there is a trust store in %s already, and nothing proves that the new one comes from its owner", dir).
			WithHint("name the key that has signed the new store with --endorsed-by")
	}
	if e.By != "root" {
		return s.checkEndorsement(data, e)
	}
	d, err := openDirectory(dir)
	if err != nil || d == nil {
		return errors.Join(err, errMissing(dir, d))
	}
	defer d.close() //nolint:errcheck // opened for reading
	k, err := readRootKey(d)
	if err != nil {
		return err
	}
	return verifyFile(data, e.Bundle, k)
}

// unpack writes the files of an export; it knows which names a store has and accepts no others.
func unpack(dir string, data []byte) error {
	bad := func(err error) error { return report.Errorf(report.Invalid, "exported trust store: %w", err) }
	archive, total := tar.NewReader(bytes.NewReader(data)), int64(0)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bad(err)
		}
		if total += header.Size; header.Typeflag != tar.TypeReg || total > maxExport || !isStoreFile(header.Name) {
			return bad(fmt.Errorf("unexpected entry %q", header.Name))
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return bad(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(header.Name))
		if err := durable.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := writeFile(name, content); err != nil {
			return err
		}
	}
}

func isStoreFile(name string) bool {
	switch name {
	case policyFile, rootKeyFile, revocationsFile, revocationsFile + bundle.Suffix:
		return true
	}
	dir, base := path.Split(name)
	if dir == keysDir+"/" && path.Ext(base) == keySuffix {
		return validName.MatchString(base[:len(base)-len(keySuffix)])
	}
	parent, root := path.Split(path.Clean(dir))
	return parent == rootsDir+"/" && validName.MatchString(root) && base == rootFile && name == path.Clean(name)
}

// oldStore returns the name of a store while another one is put in its place.
func oldStore(dir string) string { return filepath.Clean(dir) + ".old" }

// checkReplaced refuses to go on without a store whose replacement was interrupted.
func checkReplaced(dir string) error {
	old := oldStore(dir)
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return report.Errorf(report.TrustStore, "trust store: %s was being replaced, and is missing", dir).
		WithHint("put the former one back, then import again: mv %s %s", old, dir)
}

// restore puts back what an interrupted replacement has moved away.
func restore(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || checkReplaced(dir) == nil {
		return nil
	}
	return durable.Rename(oldStore(dir), dir)
}

// swap puts the new directory in the place of the old one: at once where the system can. Elsewhere a crash in between leaves the
// old one beside it.
func swap(dir, next string) error {
	if err := durable.Exchange(dir, next); err == nil {
		return os.RemoveAll(next)
	}
	old := oldStore(dir)
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := durable.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.Rename(next, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// ImportRevocations takes over a newer revocation list, signed by the root key of the store, and returns its serial and, in
// words, what it changes.
func ImportRevocations(dir string, list, signature []byte, state *State) (serial int64, changes []string, err error) {
	d, err := openDirectory(dir)
	if err != nil || d == nil {
		return 0, nil, errors.Join(err, errMissing(dir, d))
	}
	defer d.close() //nolint:errcheck // opened for reading
	root, err := readRootKey(d)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, report.Errorf(report.Untrusted, "%s has no %s, so no revocations can be verified", dir, rootKeyFile).
			WithHint("get the root key of the vendor on a way that you trust and store it there")
	}
	if err != nil {
		return 0, nil, err
	}
	revoked, err := openRevocations(list, signature, root)
	if err != nil {
		return 0, nil, err
	}
	current, err := currentRevocations(d, root)
	if err != nil {
		return 0, nil, err
	}
	if revoked.Serial < current.Serial {
		return 0, nil, report.Errorf(report.TrustStore, "this list has serial %d, the present one %d", revoked.Serial, current.Serial).
			WithHint("get the current list from the holder of the root key")
	}
	if err = state.checkSerials(map[string]int64{root.ID(): revoked.Serial}); err != nil {
		return 0, nil, err
	}
	store, err := read([]string{dir})
	if err != nil {
		return 0, nil, err
	}
	return revoked.Serial, store.changes(current, revoked), writeSigned(dir, list, signature)
}
