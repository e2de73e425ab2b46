package lint

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkForeignLayers finds layers that a container runtime looks for outside of the site, although the archive has them.
func checkForeignLayers(_ context.Context, t *subject, r *reporter) {
	for _, image := range t.Images {
		if image.Content == nil {
			continue
		}
		for _, layer := range image.Content.Blobs {
			if len(layer.URLs) > 0 {
				r.Report(t.imagePlace(image.Ref), "copy the image without the addresses of its layers: regctl image mod --external-urls-rm, or use another base image",
					"image %s: container runtimes ask %s for its layer %s before they ask the site's registry", image.Ref, hostOf(layer.URLs[0]), layer.Digest)
			}
		}
	}
}

// hostOf returns the part of an address that is safe to show.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address outside"
	}
	return u.Host
}

func checkMissing(ctx context.Context, t *subject, r *reporter) {
	if !t.ImagesKnown() {
		return
	}
	var lines []string
	var addable []*Found
	taken := t.imageNames()
	for _, w := range missing(ctx, t, true) {
		if hasVariable(w.image) {
			continue // SOL605
		}
		use := w.uses[w.first()]
		found := r.Report(use.At, t.remedy(w.image, taken), "image %s is not in the archive, and %s starts it%s", w.image, use.Object, w.others())
		if line, ok := strings.CutPrefix(found.Hint, addHint); ok { // nothing else can be meant
			lines, addable = append(lines, line), append(addable, found)
		}
	}
	for _, found := range addable {
		found.Fix(Edit{Path: target.ProjectFile, Images: slices.Compact(lines)})
	}
}

func checkMaybeMissing(ctx context.Context, t *subject, r *reporter) {
	if !t.ImagesKnown() {
		return
	}
	taken := t.imageNames()
	for _, w := range missing(ctx, t, false) {
		if hasVariable(w.image) {
			continue
		}
		use := w.uses[0]
		r.Report(use.At, t.remedy(w.image, taken), "%s looks like an image, which %s may start, and is not in the archive%s", w.image, use.Object, w.others())
	}
}

// addHint begins the hint that has the line to add.
const addHint = "add it in solution.yaml: "

// imageNames returns the names that images of the archive have.
func (t *subject) imageNames() map[schema.ImageRef]bool {
	taken := map[schema.ImageRef]bool{}
	for _, image := range t.Images {
		taken[image.Ref] = true
	}
	return taken
}

// remedy looks for images of the archive that could be meant: those of this name and those whose name is like it. A name that it gives to
// the missing image is taken then.
func (t *subject) remedy(image string, taken map[schema.ImageRef]bool) string {
	if own := repositoryPrefix.FindStringSubmatch(image); own != nil {
		if near := t.near(archiveRef(own[1])); near != "" {
			return fmt.Sprintf("the archive has %s", near)
		}
		return "write {{ repository }}/name:tag, with an image of the archive"
	}
	reference, ok := images.ParseReference(image)
	if !ok {
		return "write {{ repository }}/name:tag, with an image of the archive"
	}
	wanted := schema.ImageRef{Name: path.Base(reference.Repository), Tag: cmp.Or(reference.Tag, "latest")}
	for _, have := range t.Images {
		if wanted.Name == have.Ref.Name && (reference.Tag == have.Ref.Tag || reference.Tag == "") {
			return fmt.Sprintf("if the archive's %s is this image, say so in solution.yaml: origin: %q", have.Ref, image)
		}
	}
	name := reference.Name(taken)
	taken[name] = true
	add := addHint + reference.EntryAs(name)
	if near := t.near(wanted); near != "" {
		return fmt.Sprintf("the archive has %s; or %s", near, add)
	}
	return add
}

// near lists the images of the archive that are called like one that is missing: the same name with other tags, else
// names that one may have meant.
func (t *subject) near(wanted schema.ImageRef) string {
	const few = 3
	var same, alike []schema.ImageRef
	for _, have := range t.Images {
		switch {
		case have.Ref.Name == wanted.Name:
			same = append(same, have.Ref)
		case have.Ref.Tag == wanted.Tag && report.EditDistance(have.Ref.Name, wanted.Name) <= len(wanted.Name)/4:
			alike = append(alike, have.Ref)
		}
	}
	slices.SortStableFunc(same, func(a, b schema.ImageRef) int {
		return cmp.Compare(report.EditDistance(a.Tag, wanted.Tag), report.EditDistance(b.Tag, wanted.Tag))
	})
	names := schema.Strings(append(same, alike...))
	return strings.Join(names[:min(few, len(names))], ", ")
}

// hasVariable reports text with a placeholder that has to be replaced first; {{ repository }} is replaced
// automatically.
func hasVariable(image string) bool {
	if m := repositoryPrefix.FindStringSubmatch(image); m != nil {
		image = m[1]
	}
	return strings.ContainsAny(image, "${}")
}

func checkReadable(ctx context.Context, t *subject, r *reporter) {
	for _, c := range t.Charts() {
		if c.Rendering == nil {
			r.Report(target.InFile(c.File), "", "the images of this chart are unknown: it cannot be rendered")
		}
	}
	for _, w := range append(missing(ctx, t, true), missing(ctx, t, false)...) {
		if hasVariable(w.image) {
			r.Report(w.uses[0].At, "write the reference out", "image %s has a variable that is not filled in%s", w.image, w.others())
		}
	}
}

func checkPlatforms(_ context.Context, t *subject, r *reporter) {
	wanted, severity := t.platforms()
	for _, image := range t.Images {
		if image.Content == nil {
			continue
		}
		have := image.Content.Platforms()
		if len(have) == 0 {
			continue // an artifact, which runs nowhere
		}
		var lacking []string
		for _, platform := range wanted {
			if !slices.ContainsFunc(have, platform.Matches) {
				lacking = append(lacking, platform.String())
			}
		}
		if len(lacking) > 0 {
			r.ReportAs(severity, t.imagePlace(image.Ref), "build the image for it, or take the platform out of the Solution",
				"image %s cannot run on %s", image.Ref, strings.Join(lacking, ", "))
		}
	}
}

// platforms returns the platforms of the Solution, and the severity of a missing one.
func (t *subject) platforms() ([]schema.Platform, report.Severity) {
	if t.Build != nil && len(t.Build.Spec.Platforms) > 0 {
		return t.Build.Spec.Platforms, report.SeverityError
	}
	if operator := t.image(t.Solution.OperatorImage()); t.hasOperator() && operator.Content != nil {
		return operator.Content.Platforms(), report.SeverityWarning
	}
	return nil, report.SeverityWarning
}

// image returns an image of the archive, or the zero value.
func (t *subject) image(ref schema.ImageRef) target.Image {
	for _, image := range t.Images {
		if image.Ref == ref {
			return image
		}
	}
	return target.Image{}
}

// imagePlace is where an image is to be found.
func (t *subject) imagePlace(ref schema.ImageRef) target.Place {
	return target.Place{File: path.Join("images", ref.Name, ref.Tag), Object: ref.String()}
}

func checkUnused(ctx context.Context, t *subject, r *reporter) {
	if t.hasOperator() && t.operatorStartsWorkloads() {
		return
	}
	used := map[schema.ImageRef]bool{}
	for _, use := range uses(ctx, t) {
		used[use.Ref] = true
	}
	for _, image := range t.Images {
		if !used[image.Ref] && image.Ref.Name != schema.ProgramImage {
			r.Report(t.imagePlace(image.Ref), "leave it out, or use it", "nothing in the archive starts image %s", image.Ref)
		}
	}
}

// operatorStartsWorkloads reports whether the operator has permission to create anything with containers.
func (t *subject) operatorStartsWorkloads() bool {
	rules := t.grantedRules(true)
	for group, resources := range workloads {
		if slices.ContainsFunc(resources, func(resource string) bool { return permits(rules, group, resource, "create") }) {
			return true
		}
	}
	return false
}

// permits reports whether the rules allow a verb on every object of a resource.
func permits(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	missing, err := rbac.Missing(rules, []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}})
	return err == nil && len(missing) == 0
}
