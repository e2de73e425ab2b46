package build

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ProjectFile is the name of the document that describes a project.
const ProjectFile = "solution.yaml"

const maxProjectFile = 4 << 20

// Project is the input of a build: solution.yaml and its directory. Close it after the last use of anything made from
// it.
type Project struct {
	Build *schema.SolutionBuild
	Dir   string // the directory that relative sources of images start from

	root    *os.Root
	file    string         // the name of solution.yaml, which can be another one
	digest  oci.Digest     // of solution.yaml, as it lies there
	sources map[int]string // that flags name, by position in the document's images
}

// Load reads a project. Name is its directory or its solution.yaml, and overrides change the document before it is
// judged.
func Load(name string, overrides Overrides) (*Project, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, report.Errorf(report.Usage, "load project: %w", err).
			WithHint("name a directory that holds a %s, or make one with: solutionctl init DIR", ProjectFile)
	}
	file := name
	if info.IsDir() {
		file = filepath.Join(name, ProjectFile)
		info, err = os.Stat(file)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, report.Errorf(report.Usage, "load project: %s is not a file", file)
	}
	data, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	if err = notDocument(file, data); err != nil {
		return nil, err
	}
	build, sources, err := parseBuild(file, data, overrides)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("load project: %w", err)
	}
	return &Project{
		Build: build, Dir: dir, root: root, sources: sources, file: filepath.Base(file), digest: oci.BytesBlob("", data).Digest,
	}, nil
}

// source returns the reference that an image of the document is read from.
func (p *Project) source(index int) string {
	return cmp.Or(p.sources[index], p.Build.Spec.Images[index].Source)
}

// ReadsStdin reports whether an image is read from standard input, which can be read once.
func (p *Project) ReadsStdin() bool {
	for i := range p.Build.Spec.Images {
		if oci.IsStdin(p.source(i)) {
			return true
		}
	}
	return false
}

// Close releases the project's directory.
func (p *Project) Close() error { return p.root.Close() }

func readDocument(file string) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.Errorf(report.Usage, "load project: %w", err).WithHint("make a project with: solutionctl init DIR")
	}
	if err != nil {
		return nil, fmt.Errorf("load project: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxProjectFile+1)) // the parser refuses larger ones
	return data, errors.Join(err, f.Close())
}

// notDocument refuses other files that users name instead of a project.
func notDocument(file string, data []byte) error {
	err := report.Errorf(report.Usage, "load project: %s is not a %s", file, ProjectFile)
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		return err.WithHint("put a chart into the directory charts of a project and name it in spec.components; make a project with: solutionctl init DIR")
	case strings.EqualFold(filepath.Ext(file), ".iso"):
		return err.WithHint("it is built already; see what is in it with: solutionctl inspect %s", report.ShellFile(file))
	}
	return nil
}

// sourceFile is one file of the project and its place in the archive.
type sourceFile struct{ path, source string }

// files lists the files that the project puts into the archive, in the order in which the parts are described. leftOut
// has the files that a user could expect there: paths in the project, sorted, those of directories with a slash.
func (p *Project) files() (files []sourceFile, leftOut []string, err error) {
	for _, part := range p.parts() {
		found, hidden, err := p.walk(part)
		if err != nil {
			return nil, nil, err
		}
		files, leftOut = append(files, found...), append(leftOut, hidden...)
	}
	for _, file := range p.Build.Spec.Files {
		files = append(files, sourceFile{file.Path, file.Source})
	}
	slices.Sort(leftOut)
	return files, slices.Compact(leftOut), nil
}

// part is a directory of the archive, where it comes from, and whether the project asked for it by name.
type part struct {
	name, source string
	required     bool
}

func (p *Project) parts() []part {
	spec := p.Build.Spec
	var operator, ui string
	if spec.Operator != nil {
		operator = spec.Operator.Path
	}
	if spec.UI != nil {
		ui = spec.UI.Path
	}
	var paths schema.BuildPaths
	if spec.Paths != nil {
		paths = *spec.Paths
	}
	parts := []part{
		{name: "operator", source: operator},
		{name: "operators", source: paths.Operators},
		{name: "ui", source: ui},
		{name: "charts", source: paths.Charts},
		{name: "components", source: paths.Components},
		{name: "monitoring", source: paths.Monitoring},
		{name: "sbom", source: paths.SBOM},
		{name: "vex"},
		{name: "release-notes.md"},
	}
	for i := range parts {
		parts[i].required = parts[i].source != ""
		if !parts[i].required {
			parts[i].source = parts[i].name
		}
	}
	return parts
}

// walk lists the files below a part's directory, sorted. Names with a leading dot are left out, as ISO 9660 readers
// lose them; leftOut has those that a user could expect.
func (p *Project) walk(part part) (files []sourceFile, leftOut []string, _ error) {
	source := path.Clean(part.source)
	err := fs.WalkDir(p.root.FS(), source, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != source && strings.HasPrefix(entry.Name(), "."):
			shown, skip := name, error(nil)
			if entry.IsDir() {
				shown, skip = name+"/", fs.SkipDir
			}
			if !ofTools.MatchString(entry.Name()) {
				leftOut = append(leftOut, shown)
			}
			return skip
		case entry.IsDir():
			return nil
		}
		files = append(files, sourceFile{path.Join(part.name, strings.TrimPrefix(name, source)), name})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && !part.required {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, report.Errorf(report.Invalid, "read the %s directory of the project: %w", part.name, err).
			WithHint("correct the path in %s; it is relative to the directory of that file", ProjectFile)
	}
	return files, leftOut, nil
}

// ofTools matches names that version control, Helm, file browsers and editors use beside the files of a project, and
// that no archive needs.
var ofTools = lazyregexp.New(`^\.(git(|ignore|keep|attributes|modules|hub|lab|lab-ci\.yml)|helmignore|DS_Store|(.*\.)?sw[a-p]|#.*)$`)

// open opens a file of the project, which must be a regular file below the project's directory.
func (p *Project) open(source string) (*os.File, error) {
	name := filepath.FromSlash(source)
	info, err := p.root.Stat(name) // opening a FIFO waits for a writer
	if err == nil && !info.Mode().IsRegular() {
		return nil, report.Errorf(report.Invalid, "project file %s is not a regular file", source)
	}
	var f *os.File
	if err == nil {
		f, err = p.root.Open(name)
	}
	if err != nil {
		return nil, notOpened(source, err)
	}
	return f, nil
}

// notOpened is the error of a file that is not there, or of a link that leads out of the project.
func notOpened(source string, err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return report.Errorf(report.Invalid, "open project file %s: %w", source, err).
		WithHint("the files of a project lie below the directory of its %s", ProjectFile)
}
