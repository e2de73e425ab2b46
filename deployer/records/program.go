package records

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ProgramImage returns the reference, with digest, by which nodes pull the image of solutionctl that a Solution has
// brought. [Catalog.Find] explains version and notice. The errors are [report.NotImported] and [report.NotFound].
func (r *Records) ProgramImage(ctx context.Context, solution, version string) (reference, notice string, err error) {
	catalog, err := r.Catalog(ctx)
	if err != nil {
		return "", "", err
	}
	found, notice, err := catalog.Find(solution, version)
	if err != nil {
		return "", "", err
	}
	images := slices.Sorted(maps.Keys(found.Images))
	at := slices.IndexFunc(images, func(image string) bool { return strings.HasPrefix(image, schema.ProgramImage+":") })
	if at < 0 {
		return "", "", report.Errorf(report.NotFound, "version %s of Solution %s has no image called %s", found.Version, found.Name, schema.ProgramImage).
			WithHint("import one that brings it, such as solutionctl-VERSION.iso")
	}
	host, err := r.registryHost(ctx)
	if err != nil {
		return "", "", err
	}
	return host + "/" + found.ID() + "/" + images[at] + "@" + found.Images[images[at]], notice, nil
}
