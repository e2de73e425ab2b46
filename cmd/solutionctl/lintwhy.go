package main

import (
	"context"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// why prints what asks for an image.
func (a *app) why(ctx context.Context, paths []string, image string) error {
	uses, err := lint.Why(ctx, paths, image)
	if err != nil {
		return err
	}
	return a.EmitResult(uses, func(w *console.Stream) {
		table := console.Table{Columns: []string{"FILE", "OBJECT", "CERTAIN", "IMAGE", "FIELD"}}
		for _, use := range uses {
			certain := "no"
			if use.Certain {
				certain = "yes"
			}
			place := report.Finding{Path: use.Path, Line: use.Line}
			table.Add(place.Position(), use.Object, certain, use.Image, use.Field)
		}
		table.Print(w)
	})
}
