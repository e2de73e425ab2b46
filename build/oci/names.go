package oci

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkRef makes sure that a name can be a directory and a part of the nginx configuration.
func checkRef(ref schema.ImageRef) error {
	if strings.Contains(ref.Name, "/") {
		return report.Errorf(report.Invalid, "image name %q has several components", ref.Name).
			WithHint("MetalK8s serves only images whose name has one component; use %q", strings.ReplaceAll(ref.Name, "/", "-"))
	}
	return checkName("image", ref)
}

// checkName makes sure that a name is one component of a repository and has a tag.
func checkName(kind string, ref schema.ImageRef) error {
	switch {
	case !schema.ValidImageName(ref.Name):
		return report.Errorf(report.Invalid, "%s name %.140q is not valid", kind, ref.Name).
			WithHint("use lower-case letters and digits, separated by '.', '_' or '-'")
	case !schema.ValidImageTag(ref.Tag):
		return report.Errorf(report.Invalid, "tag %.140q of %s %s is not valid", ref.Tag, kind, ref.Name).
			WithHint("use at most 128 letters, digits, '_', '.' and '-', the first one being no '.' or '-'")
	}
	return nil
}

// normalReference returns the full form of a reference that docker would accept ("nginx" is
// "docker.io/library/nginx:latest"), or "" when it is none.
func normalReference(s string) string {
	ref, err := name.ParseReference(s)
	if err != nil {
		return ""
	}
	return strings.Replace(ref.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// named gathers the image that ref names, or the only one when ref is empty.
func (l *layout) named(ctx context.Context, ref string, platforms []schema.Platform) (*Image, error) {
	d, origin, err := l.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	image, err := l.image(ctx, d, platforms)
	if isIncomplete(err) {
		image, err = l.sparse(ctx, d).take(ctx, platforms, err)
	}
	if err != nil {
		return nil, err
	}
	image.Origin = origin
	return image, nil
}

// find returns the entry of index.json that ref names, or the only one when ref is empty, and the origin in the entry.
// Entries that refer to others, such as signatures, are not images.
func (l *layout) find(ctx context.Context, ref string) (Descriptor, string, error) {
	listed, err := l.list()
	if err != nil {
		return Descriptor{}, "", err
	}
	found := listed.named(ref)
	if ref == "" {
		found = slices.Clone(listed.images)
	}
	found = uniqueDigests(found)
	if len(found) > 1 && ref == "" {
		if found, err = l.withoutReferrers(ctx, found); err != nil {
			return Descriptor{}, "", err
		}
	}
	if n := len(found); n != 1 {
		if ref != "" {
			found = listed.images
		}
		return Descriptor{}, "", notOne(n, ref, refNames(found))
	}
	return found[0], originOf(found[0]), nil
}

// originOf returns the image reference in an entry of index.json. A ref.name is one only when it has a registry.
func originOf(d Descriptor) string {
	for _, s := range []string{d.Annotations[fullName], d.Annotations[refName]} {
		if registry, _, ok := strings.Cut(s, "/"); ok && strings.ContainsAny(registry, ".:") {
			if origin := normalReference(s); origin != "" {
				return origin
			}
		}
	}
	return ""
}

func uniqueDigests(descriptors []Descriptor) []Descriptor {
	seen := map[Digest]bool{}
	return slices.DeleteFunc(descriptors, func(d Descriptor) bool {
		known := seen[d.Digest]
		seen[d.Digest] = true
		return known
	})
}

func (l *layout) withoutReferrers(ctx context.Context, descriptors []Descriptor) ([]Descriptor, error) {
	bySubject, err := l.findReferrers(ctx)
	refers := map[Digest]bool{}
	for _, referrers := range bySubject {
		for _, d := range referrers {
			refers[d.Digest] = true
		}
	}
	return slices.DeleteFunc(descriptors, func(d Descriptor) bool { return refers[d.Digest] }), err
}

// notOne is the error of a source in which n images instead of one have the name ref.
func notOne(n int, ref string, names []string) error {
	switch {
	case n == 0 && ref == "":
		return report.Errorf(report.Invalid, "it holds no image")
	case n == 0:
		return report.Errorf(report.Invalid, "it holds no image named %q", ref).WithHint("it holds %s", list(closest(ref, names)))
	case ref == "":
		return report.Errorf(report.Invalid, "it holds %d images", n).WithHint("append one of their names to the source: %s", list(names))
	default:
		return report.Errorf(report.Invalid, "it holds %d images named %q", n, ref).WithHint("name one by its tag or digest; it holds %s", list(closest(ref, names)))
	}
}

// list joins names for a hint: a few of them, and how many more there are.
func list(names []string) string {
	const few = 8
	switch {
	case len(names) == 0:
		return "no images"
	case len(names) <= few:
		return strings.Join(names, ", ")
	default:
		return strings.Join(names[:few], ", ") + ", …"
	}
}

// closest orders candidates by their similarity to want.
func closest(want string, candidates []string) []string {
	distances := make(map[string]int, len(candidates)) // sorting compares each many times
	for _, candidate := range candidates {
		distances[candidate] = report.EditDistance(beginning(want), beginning(candidate))
	}
	candidates = slices.Clone(candidates)
	slices.SortStableFunc(candidates, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return candidates
}

// beginning returns the first 64 bytes of a name, the part that is compared.
func beginning(name string) string { return name[:min(len(name), 64)] }

// digestInPath finds the digest in the last elements of a path such as "blobs/sha256/<hex>" or "<hex>.json".
func digestInPath(p string) (Digest, bool) {
	hex := strings.TrimSuffix(path.Base(p), ".json")
	d, err := v1.NewHash("sha256:" + hex)
	return d, err == nil
}
