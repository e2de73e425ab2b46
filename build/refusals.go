package build

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/iso"
)

// maxRefusals is how many names are looked for that an archive cannot hold: each is found by laying out the rest once more.
const maxRefusals = 50

// Refusal is why a project cannot be built.
type Refusal struct {
	Path string // in the archive; empty when it is about no single file
	Err  error
}

// Refusals returns the errors of a build about the project's name and files: unreadable files, names that an archive
// cannot hold, and invalid charts. It reads the project as [NewPlan] does, without images.
func (p *Project) Refusals(ctx context.Context) []Refusal {
	sources, _, err := p.files()
	if err != nil {
		return []Refusal{{Err: err}}
	}
	var refused []Refusal
	if _, err := volumeID(p.Build, p.Build.Solution(nil, epoch), ""); err != nil {
		refused = append(refused, Refusal{Err: err})
	}
	plan := &Plan{content: map[string]content{}}
	plan.addData(ManifestFile, nil)
	for _, source := range sources {
		if err := plan.addProjectFile(p, source); err != nil {
			refused = append(refused, Refusal{source.path, err})
		}
	}
	if _, err := plan.charts(ctx); err != nil {
		refused = append(refused, Refusal{Err: err})
	}
	plan.addData(registryConfigFile, nil)
	return append(refused, plan.namesRefused()...)
}

// namesRefused returns the files and directories that an image cannot hold.
func (p *Plan) namesRefused() []Refusal {
	var refused []Refusal
	files := p.files
	for range maxRefusals {
		_, err := iso.Layout(files, iso.Options{ModTime: epoch})
		if err == nil {
			break
		}
		failure, ok := errors.AsType[*iso.PathError](err)
		if !ok {
			return append(refused, Refusal{Err: err})
		}
		refused = append(refused, Refusal{failure.Path, err})
		files = slices.DeleteFunc(slices.Clone(files), func(f iso.File) bool {
			return f.Path == failure.Path || strings.HasPrefix(f.Path, path.Clean(failure.Path)+"/")
		})
	}
	return refused
}
