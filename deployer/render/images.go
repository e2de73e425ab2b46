package render

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// repository returns the prefix of the images of a payload: HOST/<id>.
func (r *renderer) repository(p *Payload) string { return r.s.Registry + "/" + p.Solution.ID() }

// reference returns the reference by which nodes pull an image: its name, for people, and its digest, which decides.
func (r *renderer) reference(i Image) string {
	return r.repository(r.p) + "/" + i.Ref.String() + "@" + i.Digest
}

// pinner adds digests to the references of images of the archive.
type pinner struct {
	r       *renderer
	prefix  string
	pattern *regexp.Regexp
	origins map[string]Image // by their full name outside of the archive
}

func (r *renderer) newPinner() *pinner {
	p := &pinner{r: r, prefix: r.repository(r.p) + "/", origins: map[string]Image{}}
	p.pattern = regexp.MustCompile(regexp.QuoteMeta(p.prefix) + `([a-z0-9._-]+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})(@sha256:[0-9a-f]{64})?`)
	for _, image := range r.p.Images {
		if origin, ok := images.ParseReference(image.Origin); ok {
			p.origins[named(origin)] = image
			origin.Digest = image.Digest
			p.origins[named(origin)] = image
		}
	}
	return p
}

// named returns the part of a reference that identifies the image: its digest, or without one its tag.
func named(r images.Reference) string {
	if r.Digest != "" {
		r.Tag = ""
	}
	return r.String()
}

// pin changes an object. Any text that is an image of the archive by tag gets its digest; a container, a field, a variable or an argument
// with the original reference of such an image gets the one in the archive. An image that should be in the archive and is not is an
// error: its container would never start.
func (p *pinner) pin(o object) error {
	o.Object = p.value(o.Object).(map[string]any)
	images.Rewrite(o.Object, func(use images.Use) (string, bool) { // by short names, too, as redis:7
		reference, ok := images.ParseReference(use.Image)
		image, known := p.origins[named(reference)]
		return p.r.reference(image), ok && known && use.Pulled()
	})
	return eachImage(o.Object, nil, func(path []string, text string) (string, error) {
		rest, ours := strings.CutPrefix(text, p.prefix)
		switch {
		case ours && !strings.Contains(rest, "@"):
			return "", o.refuse(report.Invalid, path, "image %s is not in the archive", rest).
				WithHint("the archive has: %s", refList(p.r.p.Images))
		case ours:
			return text, nil
		}
		if reference, ok := images.ParseReference(text); ok {
			if image, ok := p.origins[named(reference)]; ok {
				return p.r.reference(image), nil
			}
		}
		return text, nil
	})
}

// has reports whether the archive has an image, by its original reference, as assembled from the parts of a field.
func (p *pinner) has(text string) bool {
	reference, ok := images.ParseReference(text)
	_, known := p.origins[named(reference)]
	return ok && known
}

func (p *pinner) value(value any) any {
	switch v := value.(type) {
	case string:
		return p.origin(p.pattern.ReplaceAllStringFunc(v, p.text))
	case []any:
		for i := range v {
			v[i] = p.value(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = p.value(v[key])
		}
	}
	return value
}

func (p *pinner) text(match string) string {
	m := p.pattern.FindStringSubmatch(match)
	if ref, err := schema.ParseImageRef(m[1]); err == nil && m[2] == "" {
		if image, ok := p.r.p.Image(ref); ok {
			return p.r.reference(image)
		}
	}
	return match
}

// reference matches a possible full reference in a text, as in --sidecar-image=quay.io/acme/sidecar:1.
var reference = lazyregexp.New(`[a-z0-9][A-Za-z0-9._:-]*/[a-z0-9][A-Za-z0-9._/:@-]*`)

// origin changes full references, with registry and tag or digest, to images that the archive has.
func (p *pinner) origin(text string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		parsed, ok := images.ParseReference(match)
		if !ok || parsed.Tag == "" && parsed.Digest == "" {
			return match
		}
		if image, ok := p.origins[named(parsed)]; ok {
			return p.r.reference(image)
		}
		return match
	})
}

// eachImage replaces the image of each container and image volume in an object of any kind.
func eachImage(value any, path []string, replace func(path []string, text string) (string, error)) error {
	switch v := value.(type) {
	case []any:
		for i := range v {
			if err := eachImage(v[i], append(slices.Clip(path), index(i)), replace); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := append(slices.Clip(path), key)
			if text, ok := v[key].(string); ok && isImageField(path, key) {
				replaced, err := replace(here, text)
				if err != nil {
					return err
				}
				v[key] = replaced
				continue
			}
			if err := eachImage(v[key], here, replace); err != nil {
				return err
			}
		}
	}
	return nil
}

// isImageField recognises containers[0].image, in the specification of pods of any object, and volumes[0].image.reference.
func isImageField(path []string, key string) bool {
	n := len(path)
	switch {
	case key == "image" && n >= 2:
		list := path[n-2]
		return list == "containers" || list == "initContainers" || list == "ephemeralContainers"
	case key == "reference" && n >= 3:
		return path[n-1] == "image" && path[n-3] == "volumes"
	}
	return false
}

// setForeign lists the images that objects and tasks of a chart would pull from elsewhere, each once.
func (p *pinner) setForeign(c *ChartObjects) {
	objects := slices.Clone(c.Objects)
	for _, t := range c.Tasks {
		objects = append(objects, t.Object)
	}
	seen := map[string]bool{}
	for _, o := range objects {
		for _, use := range images.Find(o.Object) {
			if !use.Pulled() || seen[use.Image] || strings.HasPrefix(use.Image, p.r.s.Registry+"/") {
				continue
			}
			seen[use.Image] = true
			if p.has(use.Image) {
				c.InParts = append(c.InParts, use)
			} else {
				c.Foreign = append(c.Foreign, use)
			}
		}
	}
}

func refList(list []Image) string {
	const few = 8
	var names []string
	for i, image := range list {
		if i == few {
			names = append(names, "…")
			break
		}
		names = append(names, image.Ref.String())
	}
	if len(names) == 0 {
		return "no images"
	}
	return strings.Join(names, ", ")
}
