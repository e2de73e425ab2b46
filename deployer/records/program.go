package records

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ProgramImage returns the reference, with its digest, by which nodes pull the image of solutionctl that a Solution has brought.
// The version is as in [Catalog.Find], whose notice is passed on. [report.NotImported] and [report.NotFound] tell what is missing.
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
	host := schema.RegistryHostOwn
	registry, err := r.Registry(ctx)
	if err != nil {
		return "", "", err
	}
	if registry != nil {
		host = registry.Host
	}
	return host + "/" + found.ID() + "/" + images[at] + "@" + found.Images[images[at]], notice, nil
}
