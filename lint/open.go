package lint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// opened is a target, the files that its findings are shown with, and the project that they are mended in.
type opened struct {
	*target.Target
	path    string
	sources fs.FS // paths as the user knows them
	preview *build.Preview
	closers []io.Closer
}

func (o *opened) close() {
	for _, closer := range o.closers {
		_ = closer.Close() // everything was only read
	}
}

// open detects by the content of a path whether it is a project, a directory with the content of an archive, or an ISO
// image. Of a project it reads tar files with images only when r.Deep is set. The caller closes the result. Errors name the path.
func open(ctx context.Context, name string, r Request) (*opened, error) {
	if err := media.RefuseRegistry(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if missing, ok := errors.AsType[*report.Error](media.Missing(name, err)); ok {
		return nil, missing.WithHint("name a project, an archive or a directory with the content of an archive; make a project with: solutionctl init DIR")
	}
	if err != nil {
		return nil, report.As(report.Usage, err)
	}
	o := &opened{path: name, sources: oci.Directory(name)}
	switch {
	case !info.IsDir():
		err = o.openISO(r.more)
	case isProject(name):
		err = inPath(name, o.openProject(ctx, r.Deep, r.Overrides))
	default:
		o.Target, err = target.OpenDirectory(o.sources, name)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func isProject(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, build.ProjectFile))
	return err == nil
}

func (o *opened) openISO(more []string) error {
	image, err := media.Open(o.path, more...)
	if err != nil {
		return err
	}
	o.closers = append(o.closers, image)
	if err = delta.Refuse(image, o.path); err != nil {
		return err
	}
	if o.Target, err = target.OpenISO(image, image.Size); err != nil {
		return inPath(o.path, err)
	}
	o.sources = o.FS
	return nil
}

// inPath adds the path to an error that does not name it.
func inPath(name string, err error) error {
	if err == nil {
		return nil
	}
	return report.Errorf(report.CodeOf(err), "%s: %w", name, err)
}

func (o *opened) openProject(ctx context.Context, deep bool, overrides build.Overrides) error {
	project, err := build.Load(o.path, overrides)
	if err != nil {
		o.Target, err = target.OpenRefused(err)
		return err
	}
	o.closers = append(o.closers, project)
	if o.preview, err = project.Preview(); err != nil {
		return err
	}
	resolver := oci.NewResolver(oci.Options{
		BaseDir: project.Dir, Platforms: project.Build.Spec.Platforms,
		OpenArchive: func(name string) (fs.FS, io.Closer, error) { return archive.OpenFile(name) },
	})
	o.closers = append(o.closers, resolver)
	local := project.LocalImages(ctx, resolver, deep)
	source := target.Source{FS: o.preview, Build: project.Build, Solution: o.preview.Solution, SourcePath: o.preview.Source}
	if source.Project, err = projectDocument(o.sources); err != nil {
		return err
	}
	for _, refused := range project.Refusals(ctx) {
		source.Refusals = append(source.Refusals, target.Refusal{File: refused.Path, Err: refused.Err})
	}
	for _, ref := range o.preview.Solution.Spec.Images {
		image := local[ref]
		source.Images = append(source.Images, target.Image{Ref: ref, Content: image.Image, Unread: image.Unread, Err: image.Err})
	}
	o.Target, err = target.OpenProject(source)
	return err
}

// projectDocument is solution.yaml as it was written.
func projectDocument(project fs.FS) (*schema.Document, error) {
	data, err := fs.ReadFile(project, build.ProjectFile)
	if err != nil {
		return nil, err
	}
	documents, err := schema.ParseKubernetes(build.ProjectFile, data)
	if err != nil {
		return nil, err
	}
	return documents[0], nil
}

// openOlder opens the version that others are compared with; without a name there is none.
func openOlder(ctx context.Context, name string) (*opened, error) {
	if name == "" {
		return &opened{}, nil
	}
	o, err := open(ctx, name, Request{})
	if err == nil && o.Solution == nil {
		o.close()
		err = report.Errorf(report.Invalid, "%s: the manifest cannot be read", name).WithHint("see: solutionctl lint %s", report.ShellFile(name))
	}
	return o, err
}

// maxSource is how far into a file an offending line is looked for.
const maxSource = 4 << 20

// lines reads lines of files as the user knows them. It reads on in a file from the last line, so that those of sorted findings take as long as
// reading each file once.
type lines struct {
	files fs.FS
	name  string // of the file that was read
	text  string
	from  int // where line number starts in it
	at    int
}

// line returns a line of a file without its end; "" when there is none.
func (l *lines) line(name string, number int) string {
	if name == "" || number == 0 {
		return ""
	}
	if name != l.name {
		l.name, l.text, l.from, l.at = name, l.read(name), 0, 1
	}
	if number < l.at {
		l.from, l.at = 0, 1
	}
	for ; l.at < number; l.at++ {
		i := strings.IndexByte(l.text[l.from:], '\n')
		if i < 0 {
			return ""
		}
		l.from += i + 1
	}
	line, _, _ := strings.Cut(l.text[l.from:], "\n")
	return strings.TrimRight(line, "\r")
}

// read returns the text of a file, "" when it cannot be read.
func (l *lines) read(name string) string {
	f, err := l.files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	var text strings.Builder
	if _, err = io.Copy(&text, io.LimitReader(f, maxSource)); err != nil {
		return ""
	}
	return text.String()
}
