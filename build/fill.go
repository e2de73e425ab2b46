package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// versionPlaceholder matches {{ version }}, which manifests may write so that a release is one change. It is
// filled in here and not where the Solution is deployed: MetalK8s fills in the repository only.
var versionPlaceholder = lazyregexp.New(`\{\{-?[ \t]*version[ \t]*-?\}\}`)

// maxFilled is the size of the largest file to search, in bytes: larger manifests are never read.
const maxFilled = 4 << 20

// isFilled reports whether placeholders of a file of the archive are replaced: in objects for Kubernetes and in the
// values of charts, but not in alerts and dashboards, where the same notation names labels.
func isFilled(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	extension := path.Ext(name)
	return (top == "operator" || top == "ui" || top == "components") && (extension == ".yaml" || extension == ".yml")
}

// projectContent is a file of the project as the archive has it.
type projectContent struct {
	io.ReadSeeker
	io.Closer
	size   int64
	filled bool
}

// openFilled opens a file of the project and fills in the version.
func (p *Project) openFilled(file sourceFile) (*projectContent, error) {
	f, err := p.open(file.source)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	content := &projectContent{ReadSeeker: f, Closer: f, size: info.Size()}
	if !isFilled(file.path) || info.Size() > maxFilled {
		return content, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFilled+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read project file %s: %w", file.source, err)
	}
	filled := versionPlaceholder.ReplaceAllLiteral(data, []byte(p.Build.Spec.Version))
	return &projectContent{bytes.NewReader(filled), io.NopCloser(nil), int64(len(filled)), !bytes.Equal(filled, data)}, nil
}
