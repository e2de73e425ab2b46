package sbom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// find is the content of a file that names packages, or has facts about them.
type find struct {
	packages []component
	license  map[string]string // of packages of dpkg, by their names
	release  *osRelease
	unread   string // why the file was not read, or not to its end
}

// component is a package as its file names it. The distribution, which a purl has, is known when all layers are merged.
type component struct {
	kind                  string // type of the purl
	namespace, name       string
	version               string
	arch                  string // of a package of a distribution
	epoch                 string // of an rpm
	source, sourceVersion string
	license               string
	digest                string
	vendor                string // of an rpm, if the distribution is unknown
}

// size is about how many bytes of memory a file takes that names packages.
func (f *find) size() int64 {
	const each = 256 // beside its texts
	size := len(f.unread) + each
	for _, c := range f.packages {
		size += each + len(c.namespace) + len(c.name) + len(c.version) + len(c.source) + len(c.sourceVersion) + len(c.license) + len(c.digest)
	}
	for name, license := range f.license {
		size += len(name) + len(license)
	}
	return int64(size)
}

// file is a regular file of a layer while it is read.
type file struct {
	io.Reader
	ctx   context.Context // of the scan
	path  string
	size  int64
	limit *limits
}

// reader reads a file that names packages. An error means that the packages of the file are not known, or not all of them.
type reader func(file) (*find, error)

// kind is a kind of packages.
type kind struct {
	typ   string
	files []string // for people: patterns of the files that name packages
	// match returns the reader of a file, by its path; nil for other files.
	match func(name string) reader
}

// kinds are the kinds of packages that are looked for. Programs in ELF format are recognized by their first bytes, see [layerScan].
var kinds = []kind{
	{"deb", []string{"var/lib/dpkg/status", "var/lib/dpkg/status.d/*"}, matchDpkg},
	{"apk", []string{"lib/apk/db/installed", "usr/lib/apk/db/installed"}, matchAPK},
	{"rpm", rpmFiles, matchRPM},
	{"golang", []string{"programs in ELF format with build information of Go"}, func(string) reader { return nil }},
	{"pypi", []string{"*.dist-info/METADATA", "*.egg-info/PKG-INFO", "*.egg-info"}, matchPython},
	{"npm", []string{"node_modules/**/package.json"}, matchNPM},
	{"maven", []string{"META-INF/maven/**/pom.properties in *.jar, *.war, *.ear and *.jar in them"}, matchJava},
}

// Edition names what a list of packages depends on beside the images. It changes with each change of the kinds that are looked for, or of how they
// are read: a list that was kept before is made again.
const Edition = "3"

// packageKinds lists the kinds of packages that are looked for.
func packageKinds() []schema.PackageKind {
	var list []schema.PackageKind
	for _, k := range kinds {
		list = append(list, schema.PackageKind{Type: k.typ, Files: k.files})
	}
	return list
}

// readerOf returns the reader of a file by its path; nil for a file that names no packages.
func readerOf(name string) reader {
	for _, k := range kinds {
		if read := k.match(name); read != nil {
			return read
		}
	}
	return matchOSRelease(name)
}

// readDocument reads a small file.
func (f file) readDocument() ([]byte, error) {
	if f.size > f.limit.document {
		return nil, f.tooLarge(f.limit.document)
	}
	return io.ReadAll(io.LimitReader(f, f.limit.document))
}

func (f file) tooLarge(limit int64) error {
	return fmt.Errorf("it has %d bytes, the limit is %d", f.size, limit)
}

// valid reports whether the texts of a package can be listed: it has a name, and no text is longer than the limit.
func (c component) valid(limit *limits) error {
	if c.name == "" {
		return errors.New("a package has no name")
	}
	for _, text := range []string{c.namespace, c.name, c.version, c.arch, c.epoch, c.source, c.sourceVersion, c.vendor} {
		if len(text) > limit.text || strings.ContainsFunc(text, isControl) {
			return errors.New("a package has a name or version that is too long, or has control characters")
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// add appends a package; its license is cut to the limit.
func (f *find) add(c component, limit *limits) error {
	if err := c.valid(limit); err != nil {
		return err
	}
	if len(f.packages) >= limit.packages {
		return fmt.Errorf("it names more than %d packages", limit.packages)
	}
	for _, text := range []*string{&c.namespace, &c.name, &c.version, &c.arch, &c.epoch, &c.source, &c.sourceVersion, &c.digest, &c.vendor} {
		*text = strings.Clone(*text) // it can be a part of a long line, or of the whole file
	}
	c.license = strings.Clone(clean(c.license, limit.text))
	f.packages = append(f.packages, c)
	return nil
}

// clean makes a text one line of at most limit bytes.
func clean(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, text)), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// within reports whether a path is in a directory of this name, at any depth, and returns the rest of the path.
func within(name, dir string) (rest string, ok bool) {
	i := strings.LastIndex("/"+name, "/"+dir+"/")
	if i < 0 {
		return "", false
	}
	return name[i+len(dir)+1:], true
}

func parentName(name string) string { return path.Base(path.Dir(name)) }
