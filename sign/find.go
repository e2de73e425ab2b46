package sign

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// Bounds of the files that are read beside one archive: all that a pull can write. A file that is not a bundle takes no place from an honest
// signer.
const (
	maxBundles     = 1000
	maxBundleBytes = 16 * bundle.MaxSize
)

// NamedBundle is a bundle as it was found.
type NamedBundle struct {
	File string
	Data []byte
	// Problem is the reason why there are no data, for example because this name is a directory. Such a bundle is
	// malformed and stops no other one.
	Problem error `json:"-"`
}

// NameBundles returns bundles that came with an archive from elsewhere, under the names that they have beside it.
func NameBundles(archive string, bundles []layout.Bundle) []NamedBundle {
	var named []NamedBundle
	for _, b := range bundles {
		named = append(named, NamedBundle{File: layout.BundleFile(archive, b.Signer), Data: b.Data})
	}
	return named
}

// FindBundles reads the bundles beside an archive: first the one of the first signer, then the others in the order of
// their names. Those of an archive in parts have the name of the whole and lie beside any of the parts; see [media.Open] for more.
// The directory is not trusted, so files that are not bundles are skipped.
func FindBundles(archive string, more ...string) ([]NamedBundle, error) {
	names, err := bundleNames(archive, more)
	if err != nil {
		return nil, err
	}
	var found []NamedBundle
	size := 0
	for i, name := range names {
		if i == maxBundles || size > maxBundleBytes {
			problem := report.Errorf(report.BadBundle, "it and %d more were not read: too many signatures are beside the archive", len(names)-i-1).
				WithHint("name those of the release with --bundle, or remove the others")
			return append(found, NamedBundle{File: name, Problem: problem}), nil
		}
		b, err := ReadBundle(name)
		if report.CodeOf(err) == report.BadBundle || errors.Is(err, os.ErrPermission) {
			b, err = NamedBundle{File: name, Problem: report.As(report.BadBundle, err)}, nil
		}
		if err != nil {
			return nil, err
		}
		size += len(b.Data)
		found = append(found, b)
	}
	return found, nil
}

// bundleNames are the names that bundles of an archive have, each in the first directory that has it.
func bundleNames(archive string, more []string) ([]string, error) {
	whole, _, parts := media.PartOf(archive)
	if !parts {
		return bundlesIn(filepath.Dir(archive), filepath.Base(archive))
	}
	var names []string
	seen := map[string]bool{}
	for _, dir := range media.Directories(archive, more...) {
		found, err := bundlesIn(dir, filepath.Base(whole))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !seen[filepath.Base(name)] {
				seen[filepath.Base(name)] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// bundlesIn are the names of the bundles of an archive in a directory.
func bundlesIn(dir, base string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		middle, ok := strings.CutPrefix(entry.Name(), base)
		if ok {
			middle, ok = strings.CutSuffix(middle, bundle.Suffix)
		}
		switch {
		case !ok:
		case middle == "":
			names = slices.Insert(names, 0, filepath.Join(dir, entry.Name()))
		case middle[0] == '.':
			names = append(names, filepath.Join(dir, entry.Name()))
		}
	}
	return names, nil
}

// ReadBundles reads these bundles, or those beside the archive where none are named.
func ReadBundles(archive string, named []string, more ...string) ([]NamedBundle, error) {
	if named == nil {
		return FindBundles(archive, more...)
	}
	var bundles []NamedBundle
	for _, name := range named {
		b, err := ReadBundle(name)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, b)
	}
	return bundles, nil
}

// ReadBundle reads one bundle file, at most a byte more than a bundle may have.
func ReadBundle(path string) (NamedBundle, error) {
	f, err := durable.OpenNoFollow(path)
	if errors.Is(err, durable.ErrLink) {
		err = media.RefuseLink(path)
		return NamedBundle{}, report.As(report.BadBundle, err)
	}
	if err != nil {
		return NamedBundle{}, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return NamedBundle{}, report.Errorf(report.BadBundle, "%s is not a file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, bundle.MaxSize+1))
	return NamedBundle{File: path, Data: data}, err
}
