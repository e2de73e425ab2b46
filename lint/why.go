package lint

import (
	"context"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ImageUse is one reason for an image to be in an archive.
type ImageUse struct {
	Target  string `json:"target"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Object  string `json:"object"`
	Field   string `json:"field,omitempty"`
	Image   string `json:"image"`        // as it is written
	Is      string `json:"is,omitempty"` // the image of the archive that is meant
	Certain bool   `json:"certain"`      // the place alone proves that it is an image
}

// Why returns the uses of an image at each path, as [Judge] takes them; it fails when there are none.
func Why(ctx context.Context, paths []string, image string) ([]ImageUse, error) {
	var all []ImageUse
	for _, path := range paths {
		o, err := open(ctx, path, Request{})
		if err != nil {
			return nil, err
		}
		for _, use := range Uses(ctx, o.Target, image) {
			all = append(all, o.imageUse(use))
		}
		o.close()
	}
	if len(all) == 0 {
		return nil, report.Errorf(report.Findings, "nothing asks for image %s", image).
			WithHint("name it as the archive does, NAME:TAG, or as the manifest does")
	}
	return all, nil
}

// Uses returns everything that starts an image or may start it. The image is one of the archive (name:tag), or any
// reference as a manifest writes it.
func Uses(ctx context.Context, t *target.Target, image string) []Use {
	wanted := fullName(image)
	var found []Use
	for _, use := range uses(ctx, &subject{Target: t}) {
		if use.Found() && use.Ref.String() == image || fullName(use.Image) == wanted {
			found = append(found, use)
		}
	}
	return found
}

func (o *opened) imageUse(use Use) ImageUse {
	found := ImageUse{
		Target: o.path, Path: o.SourcePath(use.At.File), Line: use.At.Line, Object: use.Object, Field: use.Path,
		Image: use.Image, Certain: use.Certain,
	}
	if use.At.File == archive.ManifestFile && o.preview != nil {
		found.Line = 0 // of a manifest that is not written yet
	}
	if use.Found() {
		found.Is = use.Ref.String()
	}
	return found
}
