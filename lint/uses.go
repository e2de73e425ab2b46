package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// Use is one reason for an image to be in the archive: something that starts it, or may start it.
type Use struct {
	images.Use
	At target.Place
	// Ref is the image of the archive that is meant; the zero value when the archive does not have it.
	Ref schema.ImageRef
	// Elsewhere reports that the image is in the archive of another Solution, on which this one depends.
	Elsewhere bool
}

// Found reports whether the archive has the image.
func (u Use) Found() bool { return u.Ref != (schema.ImageRef{}) }

// fullName makes references comparable that mean the same image.
func fullName(text string) string {
	if r, ok := images.ParseReference(text); ok {
		return r.String()
	}
	return text
}

// imagesOf are the images in all objects.
var imagesOf = fact(func(_ context.Context, t *subject) map[*target.Object][]images.Use {
	found := map[*target.Object][]images.Use{}
	for _, o := range t.Objects() {
		if list := images.Find(o.Value); len(list) > 0 {
			found[o] = list
		}
	}
	return found
})

// uses finds the images in all objects that are applied, and in the samples that users copy.
var uses = fact(func(ctx context.Context, t *subject) []Use {
	r, found := newResolver(t), imagesOf(ctx, t)
	var uses []Use
	for _, o := range t.operators() {
		uses = append(uses, r.use(images.Use{
			Image: "{{ repository }}/" + o.image.String(), Object: "Deployment/" + o.name, Place: images.Container, Certain: true,
		}, t.ManifestPlace(o.setting...)))
	}
	for _, o := range t.Objects() {
		if o.Part == target.PartUnapplied {
			continue
		}
		for _, use := range found[o] {
			if o.Kind == "CustomResourceDefinition" && !isDefault(use.Path) {
				continue // a schema starts no images, except by its defaults
			}
			use.Certain = use.Certain && o.Part != target.PartSample || o.Part == target.PartChart && use.Pulled() // deploying refuses it
			use.Certain = use.Certain && !o.Test
			uses = append(uses, r.use(use, o.At(use.Path)))
		}
	}
	for _, c := range t.Charts() {
		for _, o := range c.ConditionalObjects(ctx) {
			for _, use := range images.Find(o.Value) {
				use.Certain = false // the cluster may lack the API
				uses = append(uses, r.use(use, o.At(use.Path)))
			}
		}
	}
	return uses
})

const operatorImageField = "spec.operator.image"

// isOperatorImage reports whether a field of the manifest names the image of an operator.
func isOperatorImage(field string) bool {
	return field == operatorImageField || strings.HasPrefix(field, "spec.components.") && strings.HasSuffix(field, ".image")
}

// hasOperator reports whether an operator would be deployed.
func (t *subject) hasOperator() bool {
	if t.Solution == nil {
		return false
	}
	ref, named := t.Solution.OperatorImage(), t.Solution.Spec.Operator != nil && t.Solution.Spec.Operator.Image != nil
	return named || archive.HasOperator(t.FS, t.image(ref).Ref == ref)
}

// operatorName is the name of the operator's Deployment, container and executable.
func (t *subject) operatorName() string { return t.Solution.Metadata.Name + "-operator" }

func isDefault(path string) bool {
	return slices.ContainsFunc(target.SplitPath(path), func(step string) bool { return step == "default" })
}

// resolver finds the image of the archive that a reference means.
type resolver struct {
	id      string
	foreign []string // names of the Solutions that this one depends on
	have    map[schema.ImageRef]bool
	origins map[string]schema.ImageRef // full name outside of the archive → image
}

// newResolver knows each image by its name in the archive, and by its original name with its tag and its digests.
func newResolver(t *subject) *resolver {
	r := &resolver{have: map[schema.ImageRef]bool{}, origins: map[string]schema.ImageRef{}}
	if t.Solution != nil {
		r.id = t.Solution.ID()
		for _, dependency := range t.Solution.Spec.DependsOn {
			r.foreign = append(r.foreign, dependency.Solution)
		}
	}
	for _, image := range t.Images {
		r.have[image.Ref] = true
		origin, ok := originOf(t, image)
		if !ok {
			continue
		}
		r.origins[origin.String()] = image.Ref
		if origin.Digest != "" {
			r.origins[images.Reference{Registry: origin.Registry, Repository: origin.Repository, Digest: origin.Digest}.String()] = image.Ref
		}
		if image.Content == nil {
			continue
		}
		for _, manifest := range image.Content.Manifests {
			r.origins[images.Reference{Registry: origin.Registry, Repository: origin.Repository, Digest: manifest.Digest.String()}.String()] = image.Ref
		}
	}
	return r
}

func originOf(t *subject, image target.Image) (images.Reference, bool) {
	if t.Solution != nil {
		if origin := t.Solution.Spec.ImageOrigins[image.Ref]; origin != "" {
			return images.ParseReference(origin)
		}
	}
	if image.Content != nil {
		return images.ParseReference(image.Content.Origin)
	}
	return images.Reference{}, false
}

func (r *resolver) use(use images.Use, at target.Place) Use {
	found := Use{Use: use, At: at}
	found.Ref, found.Elsewhere = r.resolve(use.Image)
	if !r.have[found.Ref] {
		found.Ref = schema.ImageRef{}
	}
	return found
}

// repositoryPrefix is how a manifest names the registry that serves the archive: by MetalK8s' variable, or by the logical
// names of both registry modes.
var repositoryPrefix = lazyregexp.New(`^\{\{-?\s*repository\s*-?\}\}/(.+)$`)

var logicalRegistry = lazyregexp.New(`^(?:registry\.solutionctl\.invalid|metalk8s-registry-from-config\.invalid)/([^/]+)/(.+)$`)

// resolve returns the image that is meant, whether or not the archive has it.
func (r *resolver) resolve(text string) (ref schema.ImageRef, elsewhere bool) {
	if m := repositoryPrefix.FindStringSubmatch(text); m != nil {
		return archiveRef(m[1]), false
	}
	if m := logicalRegistry.FindStringSubmatch(text); m != nil {
		if m[1] == r.id {
			return archiveRef(m[2]), false
		}
		return schema.ImageRef{}, slices.ContainsFunc(r.foreign, func(name string) bool { return strings.HasPrefix(m[1], name+"-") })
	}
	reference, ok := images.ParseReference(text)
	if !ok {
		return schema.ImageRef{}, false
	}
	if reference.Digest == "" {
		return r.origins[reference.String()], false
	}
	reference.Tag = "" // the digest decides
	return r.origins[reference.String()], false
}

// archiveRef reads the reference of an image of the archive; a digest behind it is left out.
func archiveRef(text string) schema.ImageRef {
	text, _, _ = strings.Cut(text, "@")
	ref, err := schema.ParseImageRef(text)
	if err != nil {
		return schema.ImageRef{}
	}
	return ref
}

// wanted is one image that is asked for, and everything that asks for it.
type wanted struct {
	image string
	uses  []Use
}

// missing lists the images that the archive does not have, in the order of their first use. Certain ones have at least
// one certain use.
func missing(ctx context.Context, t *subject, certain bool) []wanted {
	var all []wanted
	known := map[string]int{}
	for _, use := range uses(ctx, t) {
		if use.Found() || use.Elsewhere || isOperatorImage(use.At.Object) { // that one has a rule of its own
			continue
		}
		name := fullName(use.Image)
		i, ok := known[name]
		if !ok {
			i = len(all)
			known[name] = i
			all = append(all, wanted{image: use.Image})
		}
		all[i].uses = append(all[i].uses, use)
	}
	return slices.DeleteFunc(all, func(w wanted) bool { return w.first() >= 0 != certain })
}

// first is the position of the first certain use, negative when there is none.
func (w wanted) first() int { return slices.IndexFunc(w.uses, func(u Use) bool { return u.Certain }) }

// others describes how many more places use the image.
func (w wanted) others() string {
	switch n := len(w.uses) - 1; n {
	case 0:
		return ""
	case 1:
		return ", as does one other place"
	default:
		return fmt.Sprintf(", as do %d other places", n)
	}
}
