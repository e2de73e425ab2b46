package scaffold

import (
	"cmp"
	"strings"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// images are the entries of solution.yaml for everything that the objects start.
func (b *builder) images() ([]schema.BuildImage, error) {
	needed := b.needed()
	if len(needed) == 0 && !b.options.Operator {
		return nil, b.errNoImage()
	}
	var list []schema.BuildImage
	var missing, toSave []string
	taken := map[schema.ImageRef]bool{}
	for _, r := range needed {
		b.project.Images = append(b.project.Images, r.String())
		if r.String() == placeholderImage && b.options.Images == nil {
			b.remark("image controller:latest is the placeholder of an operator project: build it with make build-installer IMG=REGISTRY/NAME:TAG, or give --images")
		}
		image, ok := b.source(r)
		if !ok {
			missing = append(missing, r.String())
			if r.Tag != "" {
				r.Digest = "" // docker saves no name with a digest
			}
			toSave = append(toSave, r.String())
			continue
		}
		ref := r.Name(taken)
		taken[ref] = true
		image.Name, image.Tag = ref.Name, ref.Tag
		list = append(list, image)
	}
	if len(missing) > 0 {
		return nil, report.Errorf(report.Invalid, "--images lacks %s: %s", report.Count(len(missing), "image"), strings.Join(missing, ", ")).
			WithHint("save them as well: docker save --output images.tar %s", strings.Join(toSave, " "))
	}
	if b.options.Operator {
		list = append(list, schema.BuildImage{Name: b.options.Solution + "-operator", Source: "oci:images/placeholder:operator"})
	}
	return list, nil
}

// source returns the source of an image: among those on this host, if there are any, else its registry.
func (b *builder) source(r images.Reference) (schema.BuildImage, bool) {
	if b.options.Images == nil {
		return schema.BuildImage{Source: "docker://" + r.String()}, true
	}
	for _, available := range b.options.Images {
		origin, ok := images.ParseReference(available.Origin)
		if ok && same(origin, r) {
			return schema.BuildImage{Source: available.Source, Origin: r.String()}, true
		}
	}
	return schema.BuildImage{}, false
}

// same compares references: by their digests where both have one, else by their tags.
func same(a, b images.Reference) bool {
	if a.Registry != b.Registry || a.Repository != b.Repository {
		return false
	}
	if a.Digest != "" && b.Digest != "" {
		return a.Digest == b.Digest
	}
	return cmp.Or(a.Tag, "latest") == cmp.Or(b.Tag, "latest")
}
