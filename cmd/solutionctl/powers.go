package main

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// powersOf judges what an archive can do to a cluster.
func (a *app) powersOf(ctx context.Context, opened *archive.Archive) (*schema.Powers, error) {
	payload, err := render.FromArchive(opened)
	if err != nil {
		return nil, err
	}
	return render.Powers(ctx, payload, a.Now())
}

func printPowersOf(w *console.Stream, p *schema.Powers) {
	switch {
	case len(p.Summary) > 0:
		fmt.Fprintf(w, "%s %s can\n", p.Solution, p.Version)
	case len(p.Unjudged) > 0:
		fmt.Fprintf(w, "%s %s was judged in part, and that part asks for nothing beyond what every Solution may do\n", p.Solution, p.Version)
	default:
		fmt.Fprintf(w, "%s %s asks for nothing beyond what every Solution may do\n", p.Solution, p.Version)
	}
	printLines(w, p.Summary)
	if len(p.Unjudged) > 0 {
		fmt.Fprintln(w, "\nnot judged, as it cannot be rendered, at least not without a cluster or the values of a site:")
		printLines(w, p.Unjudged)
	}
}

func printLines(w *console.Stream, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", console.Clean(line))
	}
}
