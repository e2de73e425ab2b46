package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkComponentFiles compares the files that components name with those of the archive.
func checkComponentFiles(_ context.Context, t *subject, r *reporter) {
	if t.Solution == nil {
		return
	}
	for i, component := range t.Solution.Spec.Components {
		for _, file := range []struct{ field, name string }{
			{"chart", component.Chart},
			{"manifests", component.Manifests},
			{"job", component.Job},
			{"values", component.Values},
			{"operator", roleFileOf(component)},
		} {
			if file.name == "" {
				continue
			}
			at := t.ManifestPlace("spec", "components", fmt.Sprint(i), file.field)
			info, err := fs.Stat(t.FS, path.Clean(file.name))
			switch {
			case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
				r.Report(at, "paths start at the root of the archive", "component %s: there is no %s", component.Name, file.name)
			case err != nil: // rules on the archive report it
			case file.field == "chart":
				t.checkChartFile(r, at, component)
			case file.field == "manifests" || file.field == "job":
				t.checkManifestFiles(r, at, component.Name, file.name, info.IsDir())
			case file.field == "values" && !info.Mode().IsRegular():
				r.Report(at, "name one file", "component %s: %s is not a file", component.Name, file.name)
			}
		}
	}
}

// checkChartFile finds charts that deploying cannot read, and in which no rule looks for images.
func (t *subject) checkChartFile(r *reporter, at target.Place, component schema.Component) {
	name := path.Clean(component.Chart)
	if slices.ContainsFunc(t.Charts(), func(c target.Chart) bool { return c.File == name }) {
		return
	}
	if dir := path.Dir(name); path.Base(name) == "Chart.yaml" {
		name = dir
	}
	hint := "name a packed chart: charts/NAME-VERSION.tgz"
	if t.Has(path.Join(name, "Chart.yaml")) {
		source := path.Dir(t.SourcePath(path.Join(name, "Chart.yaml")))
		hint = fmt.Sprintf("pack it, keep its files elsewhere, and name the package: helm package %s --destination charts", report.ShellFile(source))
	}
	r.Report(at, hint, "component %s: %s is not a packed chart", component.Name, component.Chart)
}

// checkManifestFiles finds components of manifests or a job that are not where rules read objects of components.
func (t *subject) checkManifestFiles(r *reporter, at target.Place, component, name string, isDir bool) {
	clean := path.Clean(name)
	found := slices.ContainsFunc(t.Manifests(), func(file string) bool {
		return target.PartOf(file) == target.PartComponent && (file == clean || isDir && strings.HasPrefix(file, clean+"/"))
	})
	for _, file := range t.Manifests() {
		if file == clean || strings.HasPrefix(file, clean+"/") {
			t.reportForeignFile(r, component, file)
		}
	}
	if !found {
		r.Report(at, "name a file *.yaml below components/, or a directory with some", "component %s: %s has no *.yaml file below components/", component, name)
	}
}

// reportForeignFile names the files of other tools that hold no objects: a component of one would be a component of nothing.
func (t *subject) reportForeignFile(r *reporter, component, file string) {
	documents, err := t.Documents(file)
	if err != nil || len(documents) == 0 {
		return // SOL205 reports unreadable files
	}
	value, _ := documents[0].Value().(map[string]any)
	apiVersion, _ := value["apiVersion"].(string)
	_, compose := value["services"].(map[string]any)
	dir, name := path.Dir(t.SourcePath(file)), path.Base(file)
	switch {
	case strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") || apiVersion == "" && strings.HasPrefix(name, "kustomization."):
		r.Report(target.InFile(file), fmt.Sprintf("keep it elsewhere, and put what it makes into the component: kubectl kustomize %s", dir),
			"component %s: this is a kustomization, which nothing here reads", component)
	case compose && apiVersion == "" && value["kind"] == nil:
		r.Report(target.InFile(file), fmt.Sprintf("keep it elsewhere, and put what it becomes into the component: kompose convert -f %s", t.SourcePath(file)),
			"component %s: this is a compose file, which Kubernetes does not read", component)
	}
}

// roleFileOf is the file of rights that a component has, if only to say that there are none.
func roleFileOf(component schema.Component) string {
	if component.Operator == "" {
		return ""
	}
	return path.Join(component.Operator, "role.yaml")
}
