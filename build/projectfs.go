package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Preview is the archive that a project would build, without images and files derived from them: a file system with the
// paths of the archive. It reads files when they are opened.
type Preview struct {
	Solution *schema.Solution // with the images that the project declares

	project *Project
	sources map[string]string // path in the archive → path in the project
	data    map[string][]byte // files that are generated
	entries map[string][]fs.DirEntry
}

// Preview returns the part of the archive that does not depend on the images.
func (p *Project) Preview() (*Preview, error) {
	solution := p.Build.Solution(p.Build.Spec.ImageRefs(), time.Time{})
	v := &Preview{project: p, Solution: solution, sources: map[string]string{}, entries: map[string][]fs.DirEntry{".": nil}}
	manifest, err := v.Solution.Marshal()
	if err != nil {
		return nil, err
	}
	v.data = map[string][]byte{ManifestFile: manifest}
	v.add(ManifestFile)
	files, _, err := p.files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if v.sources[file.path] == "" && v.data[file.path] == nil {
			v.sources[file.path] = file.source
			v.add(file.path)
		}
	}
	for _, entries := range v.entries {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return v, nil
}

// Source returns the path, relative to the project, of the file that a path of the archive comes from: that of
// solution.yaml for what is generated.
func (v *Preview) Source(name string) string {
	if source, ok := v.sources[name]; ok {
		return path.Clean(source)
	}
	return ProjectFile
}

// Place returns the path, relative to the project, where a new file has to be so that it gets a path in the archive;
// false when no directory of the project leads there.
func (v *Preview) Place(name string) (string, bool) {
	if source, ok := v.sources[name]; ok {
		return path.Clean(source), true
	}
	for _, part := range v.project.parts() {
		if rest, ok := strings.CutPrefix(name, part.name+"/"); ok {
			return path.Join(part.source, rest), true
		}
	}
	return "", false
}

// LocalImage is the part of an image of a project that this host has.
type LocalImage struct {
	*oci.Image        // nil when it was not read
	Unread     string // why, unless Err is set: it is elsewhere, or not built yet
	Err        error  // the error of a build
}

// LocalImages resolves those images of the project that lie in a directory or an archive on this host. With tar files it also
// reads files of docker and podman, which takes time: their layers are compressed.
func (p *Project) LocalImages(ctx context.Context, resolver *oci.Resolver, tarFiles bool) map[schema.ImageRef]LocalImage {
	images := map[schema.ImageRef]LocalImage{}
	for i, image := range p.Build.Spec.Images {
		ref := p.Build.Spec.ImageRef(image)
		if reason := unreadSource(p.source(i), tarFiles); reason != "" {
			images[ref] = LocalImage{Unread: reason}
			continue
		}
		resolved, err := resolver.Resolve(ctx, ref, p.source(i))
		switch {
		case err == nil:
			resolved.Origin = oci.FullReference(image.OriginName())
			images[ref] = LocalImage{Image: resolved}
		case errors.Is(err, fs.ErrNotExist) && report.CodeOf(err) != report.Corrupt:
			images[ref] = LocalImage{Unread: "its source does not exist yet"}
		default:
			images[ref] = LocalImage{Err: err}
		}
	}
	return images
}

// unreadSource returns why a source is not read, "" when it is.
func unreadSource(source string, tarFiles bool) string {
	kind, rest, _ := strings.Cut(source, ":")
	switch kind {
	case "oci", "dir", "solution":
		return ""
	case "docker-archive", "oci-archive":
		switch file, _, _ := strings.Cut(rest, ":"); {
		case file == "-":
			return "it is read from standard input"
		case tarFiles:
			return ""
		}
		return "it is in a tar file"
	case "docker-daemon":
		return "the Docker daemon has it"
	}
	return "it is in a registry"
}

// add enters a file and the directories that lead to it.
func (v *Preview) add(name string) {
	entry := fs.DirEntry(previewEntry{v, name, false})
	for {
		dir := path.Dir(name)
		_, known := v.entries[dir]
		v.entries[dir] = append(v.entries[dir], entry)
		if known {
			return
		}
		entry, name = previewEntry{v, dir, true}, dir
	}
}

// Open opens a file or directory.
func (v *Preview) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if data, ok := v.data[name]; ok {
		return &previewFile{previewInfo{path.Base(name), int64(len(data)), 0o444}, bytes.NewReader(data), io.NopCloser(nil)}, nil
	}
	if source, ok := v.sources[name]; ok {
		return v.openSource(name, source)
	}
	if entries, ok := v.entries[name]; ok {
		return &previewDirectory{info: previewInfo{path.Base(name), 0, fs.ModeDir | 0o555}, rest: slices.Clone(entries)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (v *Preview) openSource(name, source string) (fs.File, error) {
	f, err := v.project.openFilled(sourceFile{path: name, source: source})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &previewFile{previewInfo{path.Base(name), f.size, 0o444}, f, f}, nil
}

// Filled reports whether the content of a file is not that of the project's file, because placeholders were filled in.
func (v *Preview) Filled(name string) bool {
	source, ok := v.sources[name]
	if !ok {
		return false
	}
	f, err := v.project.openFilled(sourceFile{path: name, source: source})
	if err != nil {
		return false
	}
	return errors.Join(f.Close()) == nil && f.filled
}

// previewEntry is one name in a directory.
type previewEntry struct {
	preview *Preview
	path    string
	dir     bool
}

func (e previewEntry) Name() string { return path.Base(e.path) }
func (e previewEntry) IsDir() bool  { return e.dir }

func (e previewEntry) Type() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}

func (e previewEntry) Info() (fs.FileInfo, error) {
	if e.dir {
		return previewInfo{path.Base(e.path), 0, fs.ModeDir | 0o555}, nil
	}
	if data, ok := e.preview.data[e.path]; ok {
		return previewInfo{path.Base(e.path), int64(len(data)), 0o444}, nil
	}
	source := e.preview.sources[e.path]
	info, err := e.preview.project.root.Stat(filepath.FromSlash(source))
	if err != nil {
		return nil, notOpened(source, err)
	}
	return previewInfo{path.Base(e.path), info.Size(), 0o444}, nil
}

// previewInfo describes a file; it has no time.
type previewInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i previewInfo) Name() string      { return i.name }
func (i previewInfo) Size() int64       { return i.size }
func (i previewInfo) Mode() fs.FileMode { return i.mode }
func (previewInfo) ModTime() time.Time  { return time.Time{} }
func (i previewInfo) IsDir() bool       { return i.mode.IsDir() }
func (previewInfo) Sys() any            { return nil }

type previewFile struct {
	info previewInfo
	io.ReadSeeker
	io.Closer
}

func (f *previewFile) Stat() (fs.FileInfo, error) { return f.info, nil }

type previewDirectory struct {
	info previewInfo
	rest []fs.DirEntry
}

func (d *previewDirectory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (*previewDirectory) Close() error                 { return nil }

func (d *previewDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, all that are left when n is not positive.
func (d *previewDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n]
	d.rest = d.rest[n:]
	return entries, nil
}
