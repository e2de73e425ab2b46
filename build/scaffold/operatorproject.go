package scaffold

import (
	"context"
	"io/fs"
	"path"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// placeholderImage is the image name in new projects of kubebuilder and the Operator SDK.
const placeholderImage = "docker.io/library/controller:latest"

// addOperatorProject makes components of the installed objects of a project of kubebuilder or the Operator SDK: of
// those built for distribution, else of its kustomization.
func (b *builder) addOperatorProject(ctx context.Context, s Source) error {
	below := func(name string) Source {
		return Source{Name: path.Join(s.Name, name), Files: s.Files, Path: path.Join(s.Path, name)}
	}
	name := s.projectName()
	switch {
	case s.has("dist/install.yaml"):
		return b.addManifests(below("dist/install.yaml"), KindOperatorProject, b.componentName(name))
	case s.has("dist/chart/Chart.yaml"):
		return b.addChart(ctx, below("dist/chart"))
	case s.has("config/default/kustomization.yaml"):
		return b.addKustomization(below("config/default"), KindOperatorProject, b.componentName(name))
	}
	return report.Errorf(report.Usage, "%s is the project of an operator, and has neither dist/install.yaml, dist/chart nor config/default", s.Name).
		WithHint("run in it: make build-installer IMG=REGISTRY/NAME:TAG")
}

// projectName is the name of the project in the file PROJECT, else the name of its directory.
func (s Source) projectName() string {
	data, err := fs.ReadFile(s.Files, path.Join(s.Path, "PROJECT"))
	if err == nil {
		if value, err := manifest.Value("PROJECT", data); err == nil {
			if name, ok := value["projectName"].(string); ok {
				return name
			}
		}
	}
	return path.Base(s.Path)
}
