package store

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultNginxDir is the directory of the files that MetalK8s' nginx includes.
const DefaultNginxDir = "/var/lib/metalk8s/repositories/conf.d"

// NginxTemplate is the file of an archive with the nginx configuration for its images.
const NginxTemplate = "registry-config.inc.j2"

// Nginx is the directory of files by which MetalK8s' nginx serves images of mounted archives.
type Nginx struct{ Dir string }

func (n *Nginx) file(id string) sharedFile {
	return sharedFile{path: filepath.Join(n.Dir, id+"-registry-config.inc"), elsewhere: "name another directory with --nginx-dir"}
}

// Include writes the file of an archive, made of its [NginxTemplate], and reports whether it changed anything.
func (n *Nginx) Include(ctx context.Context, id string, template []byte) (changed bool, err error) {
	data, err := renderNginx(id, template)
	if err != nil {
		return false, err
	}
	file := n.file(id)
	unlock, err := file.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	before, err := file.read()
	if err != nil || before.info != nil && bytes.Equal(before.data, data) {
		return false, err
	}
	return true, file.replace(before, data)
}

// Exclude removes the file of an archive and reports whether there was one.
func (n *Nginx) Exclude(id string) (changed bool, err error) {
	file := n.file(id)
	before, err := file.read()
	if err != nil || before.info == nil {
		return false, err
	}
	return true, file.explain(removeIfThere(file.path))
}

var (
	templateVariable = lazyregexp.New(`\{\{-?\s*(repository|registry_root)\s*-?\}\}`)
	templateSyntax   = lazyregexp.New(`\{[{%#]`)
)

// renderNginx replaces the two variables that MetalK8s replaces. Anything else that its template language would act on is
// refused: nothing of an archive is a program.
func renderNginx(id string, template []byte) ([]byte, error) {
	values := map[string]string{"repository": id, "registry_root": MountPoint(id) + "/images"}
	data := templateVariable.ReplaceAllFunc(template, func(match []byte) []byte {
		return []byte(values[string(templateVariable.FindSubmatch(match)[1])])
	})
	if place := templateSyntax.FindIndex(data); place != nil {
		line := bytes.Count(data[:place[0]], []byte("\n")) + 1
		return nil, report.Errorf(report.Invalid, "%s:%d: only the variables repository and registry_root are allowed", NginxTemplate, line).
			WithHint("build the archive again with %s, which writes the file", report.Run("build"))
	}
	return data, nil
}
