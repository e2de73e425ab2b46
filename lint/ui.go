package lint

import (
	"context"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

func checkUIService(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		if p.object.Part != target.PartUI || !p.running {
			continue
		}
		found := false
		for _, service := range t.named("", "Service") {
			selector, _ := lookup(service.Value, "spec", "selector").(map[string]any)
			found = found || service.Part == target.PartUI && len(selector) > 0 && subset(selector, pods.Labels(p.object.Value))
		}
		if !found {
			r.Report(p.object.At(""), "add a Service whose selector has the labels of the pods", "no Service of ui/ selects the pods of %s", p.object)
		}
	}
}

func checkUIProbes(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		if p.running && p.object.Part == target.PartUI {
			reportProbes(r, p)
		}
	}
}

func checkUIRights(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.Objects() {
		if o.Part == target.PartUI && o.Group() == "rbac.authorization.k8s.io" && strings.HasPrefix(o.Kind, "Cluster") {
			r.Report(o.At(""), "use Role and RoleBinding", "%s gives the user interface rights on the whole cluster", o)
		}
	}
}

func checkUIImages(ctx context.Context, t *subject, r *reporter) {
	known, found := newResolver(t), imagesOf(ctx, t)
	for _, o := range t.Objects() {
		if o.Part != target.PartUI {
			continue
		}
		for _, use := range found[o] {
			if use.Place != images.Container && use.Place != images.Volume || repositoryPrefix.MatchString(use.Image) {
				continue
			}
			severity, hint := report.SeverityError, "write {{ repository }}/name:tag, with an image of the archive"
			if ref, _ := known.resolve(use.Image); known.have[ref] {
				severity, hint = report.SeverityWarning, fmt.Sprintf("write {{ repository }}/%s", ref)
			}
			r.ReportAs(severity, o.At(use.Path), hint, "image %s does not begin with {{ repository }}", use.Image)
		}
	}
}
