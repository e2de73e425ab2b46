package trust

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// maxExport bounds the files of an exported store together.
const maxExport = 16 << 20

// Export writes the store in a directory as a tar file, to be carried to another site and given to [PrepareImport] there. It
// holds no secrets, and the same store gives the same bytes.
func Export(dir string, w io.Writer) error {
	files, err := retry(func() (map[string][]byte, error) { return readValid(dir) })
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return report.Errorf(report.Usage, "trust store %s is empty", dir).WithHint("trust a key first: solutionctl trust add NAME FILE.pub")
	}
	archive := tar.NewWriter(w)
	for _, name := range sortedNames(files) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// readValid returns the files of a store that can be loaded.
func readValid(dir string) (files map[string][]byte, err error) {
	d, err := openDirectory(dir)
	if err != nil || d == nil {
		return nil, errors.Join(err, errMissing(dir, d))
	}
	if _, err = Load([]string{dir}, nil); err == nil {
		files, err = d.readFiles()
	}
	return files, d.finish(err)
}

// readFiles returns the files that the store has, by their names.
func (d *directory) readFiles() (map[string][]byte, error) {
	names, err := d.files()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		content, err := d.read(name, bundle.MaxSize)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

// files returns the names of all files that a store may have, sorted; those at the top need not exist.
func (d *directory) files() ([]string, error) {
	names := []string{policyFile, rootKeyFile, revocationsFile, revocationsFile + bundle.Suffix, localFile}
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

// readExport returns the files of an export by their names. It knows which names a store has and accepts no others.
func readExport(data []byte) (map[string][]byte, error) {
	bad := func(err error) (map[string][]byte, error) {
		return nil, report.Errorf(report.Invalid, "exported trust store: %w", err).WithHint("export it again: solutionctl trust export > trust.tar")
	}
	archive, total := tar.NewReader(bytes.NewReader(data)), int64(0)
	files := map[string][]byte{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bad(err)
		}
		if total += header.Size; header.Typeflag != tar.TypeReg || total > maxExport || !isStoreFile(header.Name) {
			return bad(fmt.Errorf("unexpected entry %q", header.Name))
		}
		if files[header.Name] != nil {
			return bad(fmt.Errorf("two entries %q", header.Name))
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return bad(err)
		}
		files[header.Name] = append([]byte{}, content...)
	}
	if len(files) == 0 {
		return bad(errors.New("it is empty"))
	}
	return files, nil
}

func isStoreFile(name string) bool {
	switch name {
	case policyFile, rootKeyFile, revocationsFile, revocationsFile + bundle.Suffix, localFile:
		return true
	}
	dir, base := path.Split(name)
	if dir == keysDir+"/" && path.Ext(base) == keySuffix {
		return validName.MatchString(base[:len(base)-len(keySuffix)])
	}
	parent, root := path.Split(path.Clean(dir))
	return parent == rootsDir+"/" && validName.MatchString(root) && base == rootFile && name == path.Clean(name)
}
