package main

import (
	"context"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// imageUse is one reason for an image to be in an archive.
type imageUse struct {
	Target  string `json:"target"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Object  string `json:"object"`
	Field   string `json:"field,omitempty"`
	Image   string `json:"image"`        // as it is written
	Is      string `json:"is,omitempty"` // the image of the archive that is meant
	Certain bool   `json:"certain"`      // the place alone says that it is an image
}

// why prints what asks for an image.
func (a *app) why(ctx context.Context, paths []string, image string) error {
	uses := []imageUse{}
	for _, path := range paths {
		target, err := a.openLintTarget(ctx, path)
		if err != nil {
			return report.Errorf(report.CodeOf(err), "%s: %w", path, err)
		}
		for _, use := range target.Why(image) {
			uses = append(uses, useOf(path, target, use))
		}
		target.close()
	}
	if len(uses) == 0 {
		return report.Errorf(report.Findings, "nothing asks for image %s", image).
			WithHint("name it as the archive does, NAME:TAG, or as the manifest does")
	}
	return a.emitResult(uses, func(w *console.Stream) error {
		table := console.Table{Columns: []string{"FILE", "OBJECT", "CERTAIN", "IMAGE", "FIELD"}}
		for _, use := range uses {
			certain := "no"
			if use.Certain {
				certain = "yes"
			}
			place := report.Finding{Path: use.Path, Line: use.Line}
			table.Add(place.Position(), use.Object, certain, use.Image, use.Field)
		}
		return table.Print(w)
	})
}

func useOf(path string, target *lintTarget, use lint.Use) imageUse {
	found := imageUse{
		Target: path, Path: target.SourcePath(use.At.File), Line: use.At.Line, Object: use.Object, Field: use.Path,
		Image: use.Image, Certain: use.Certain,
	}
	if use.At.File == archive.ManifestFile && target.preview != nil {
		found.Line = 0 // of a manifest that is not written yet
	}
	if use.Found() {
		found.Is = use.Ref.String()
	}
	return found
}
