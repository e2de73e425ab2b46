package lint

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// foreignGroups are API groups that many clusters have and few Solutions bring.
var foreignGroups = []string{
	"monitoring.coreos.com", "cert-manager.io", "acme.cert-manager.io", "snapshot.storage.k8s.io", "gateway.networking.k8s.io", "metrics.k8s.io",
	"networking.istio.io", "security.istio.io", "traefik.io", "traefik.containo.us", "projectcontour.io", "k8s.cni.cncf.io",
	"policy.networking.k8s.io", "route.openshift.io", "security.openshift.io", "operators.coreos.com", "cilium.io",
	"keda.sh", "external-secrets.io", "grafana.integreatly.org", "autoscaling.k8s.io", "node.k8s.io", "resource.k8s.io",
}

func gvk(o *target.Object) runtimeschema.GroupVersionKind {
	return runtimeschema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

func checkKinds(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.Objects() {
		if !o.Judged() || o.IsDefinition() || t.serves(o) {
			continue
		}
		group := o.Group()
		switch {
		case isKubernetesGroup(group):
			r.Report(o.AtKey("kind"), "correct apiVersion or kind", "Kubernetes has no kind %s in %s", o.Kind, o.APIVersion)
		case t.ownGroup(group):
			r.Report(o.AtKey("kind"), "correct the kind, or add its definition", "no definition of the archive has the kind %s in %s", o.Kind, group)
		case group == "kustomize.config.k8s.io": // SOL213
		case !t.expects(o):
			r.ReportAs(report.SeverityNote, o.AtKey("kind"), "name its CustomResourceDefinition in spec.operator.requiresCRDs",
				"nothing in the archive defines %s; the object is skipped where the cluster does not have it", group)
		}
	}
}

// serves reports whether some release, or the archive itself, has the kind; other rules check the version.
func (t *subject) serves(o *target.Object) bool {
	return t.definitionFor(o) != nil || slices.ContainsFunc(t.Releases(), func(release *schemas.Release) bool {
		availability, _ := release.Availability(gvk(o))
		return availability != schemas.NotCore
	})
}

// isKubernetesGroup reports whether only Kubernetes itself defines kinds in a group.
func isKubernetesGroup(group string) bool {
	return (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")) && !slices.Contains(foreignGroups, group) &&
		strings.Count(strings.TrimSuffix(group, ".k8s.io"), ".") == 0
}

func (t *subject) ownGroup(group string) bool {
	return slices.ContainsFunc(t.Definitions(), func(d target.Definition) bool { return d.Spec.Group == group })
}

// expects reports whether the cluster can be expected to have a kind of a foreign group.
func (t *subject) expects(o *target.Object) bool {
	group := o.Group()
	if slices.Contains(foreignGroups, group) {
		return true
	}
	if t.Solution == nil || t.Solution.Spec.Operator == nil {
		return false
	}
	return slices.ContainsFunc(t.Solution.Spec.Operator.RequiresCRDs, func(required schema.CRDRequirement) bool {
		_, of, _ := strings.Cut(required.Name, ".")
		return of == group
	})
}

// checkAvailability reports objects with the given availability in the oldest or newest release that matters.
func checkAvailability(wanted schemas.Availability) func(context.Context, *subject, *reporter) {
	return func(_ context.Context, t *subject, r *reporter) {
		for _, o := range t.Objects() {
			if !o.Judged() || o.IsDefinition() && o.Part != target.PartSample || t.definitionFor(o) != nil {
				continue
			}
			for _, release := range t.Releases() {
				if availability, reason := release.Availability(gvk(o)); availability == wanted && !t.worse(o, wanted) {
					r.Report(o.AtKey("apiVersion"), "", "%s", reason)
					break
				}
			}
		}
	}
}

// worse reports whether an API that is deprecated in one release is removed in another one.
func (t *subject) worse(o *target.Object, than schemas.Availability) bool {
	if than != schemas.Deprecated {
		return false
	}
	return slices.ContainsFunc(t.Releases(), func(release *schemas.Release) bool {
		availability, _ := release.Availability(gvk(o))
		return availability == schemas.Removed
	})
}

// checkProblems reports the findings of package schemas about objects.
func checkProblems(reason schemas.Reason) func(context.Context, *subject, *reporter) {
	return func(ctx context.Context, t *subject, r *reporter) {
		problems := validated(ctx, t)
		for _, o := range t.Objects() {
			if !o.Judged() || o.IsDefinition() && reason != schemas.UnknownField {
				continue
			}
			for _, p := range problems[o] {
				if p.Reason != reason {
					continue
				}
				at := o.At(p.Path)
				if reason == schemas.UnknownField {
					at = o.AtKey(p.Path)
				}
				hint := ""
				if p.Unquoted {
					hint = "write it in quotes"
					if written := o.Written(p.Path); written != "" {
						hint = fmt.Sprintf("write %q in quotes", written)
					}
				}
				r.Report(at, hint, "%s", p.Message)
			}
		}
	}
}

func checkDuplicateObjects(_ context.Context, t *subject, r *reporter) {
	first := map[string]*target.Object{}
	for _, o := range t.Objects() {
		if !o.Judged() || !o.Part.Applied() || o.Name == "" || o.IsDefinition() || o.Part == target.PartChart {
			continue
		}
		scope := string(o.Part)
		if o.Part == target.PartComponent { // two components are two releases
			scope += o.File
		}
		key := strings.Join([]string{scope, o.Group(), o.Kind, o.Namespace, o.Name}, "\x00")
		if earlier := first[key]; earlier != nil {
			place := earlier.At("")
			r.Report(o.At("metadata.name"), "remove one of them", "the object is in %s already, line %d", t.SourcePath(place.File), place.Line)
			continue
		}
		first[key] = o
	}
}

func checkCharts(_ context.Context, t *subject, r *reporter) {
	for _, c := range t.Charts() {
		if c.Err == nil {
			continue
		}
		at := target.InFile(c.File)
		if c.Component != "" {
			at.Object = "component " + c.Component
		}
		hint := "try it: helm template " + c.File
		if hints := report.Hints(c.Err); len(hints) > 0 {
			hint = hints[0]
		}
		r.Report(at, hint, "the chart cannot be rendered: %v", c.Err)
	}
}

// checkHooks names annotations that Helm ignores silently. A chart of several components is checked for each: values
// decide.
func checkHooks(_ context.Context, t *subject, r *reporter) {
	for _, c := range t.Charts() {
		if c.Rendering == nil {
			continue
		}
		for _, m := range c.Misread {
			at := target.InFile(c.File)
			at.Object = fmt.Sprintf("%s (%s:%d)", m.Object, m.Template, m.Line)
			r.Report(at, m.Hint, "%s", m.Message)
		}
	}
}

// checkChartFiles finds charts that a build refuses, because no registry can hold them.
func checkChartFiles(_ context.Context, t *subject, r *reporter) {
	files := map[string]string{} // of each chart in a version
	for _, c := range t.Charts() {
		if c.Chart == nil {
			continue
		}
		at, id := target.InFile(c.File), c.Name+" "+c.Version
		other := cmp.Or(files[id], c.File)
		files[id] = other
		err := c.CheckFile(c.File)
		switch {
		case err != nil:
			r.Report(at, strings.Join(report.Hints(err), "; "), "%v", err)
		case !schema.ValidImageName(c.Name):
			r.Report(at, "use lower-case letters and digits, separated by '.', '_' or '-'", "no registry can have a chart that is called %s", c.Name)
		case other != c.File:
			r.Report(at, "remove one of the two files", "chart %s in version %s is in %s already", c.Name, c.Version, other)
		}
	}
}

func checkTemplates(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.Manifests() {
		if target.PartOf(file) != target.PartUI {
			continue
		}
		data, err := t.Text(file)
		if err != nil || !bytes.Contains(data, []byte("{")) {
			continue
		}
		for at, found := range templatesIn(file, string(data)) {
			if !target.IsRepository(found) {
				r.Report(at, "write {{ repository }} or a literal value", "%s is not filled in", found)
			}
		}
	}
}

// beginsTemplate matches the beginning of text that Jinja interprets.
var beginsTemplate = lazyregexp.New(`\{[{%#]`)

// templatesIn returns the text of a file that Jinja interprets: variables, and the beginning of anything else.
func templatesIn(file, text string) iter.Seq2[target.Place, string] {
	return func(yield func(target.Place, string) bool) {
		at := target.Place{File: file}
		for line := range strings.SplitSeq(text, "\n") {
			at.Line++
			rest := line
			for match := beginsTemplate.FindStringIndex(rest); match != nil; match = beginsTemplate.FindStringIndex(rest) {
				rest = rest[match[0]:]
				at.Column = len(line) - len(rest) + 1
				found := variableAt(rest)
				if !yield(at, found) {
					return
				}
				rest = rest[len(found):]
			}
		}
	}
}

// variableAt returns the variable at the beginning of a line, or two characters if it is too long or something else.
func variableAt(line string) string {
	const longest = 160
	if end := strings.Index(line[:min(len(line), longest)], "}}"); end >= 0 && line[1] == '{' {
		return line[:end+len("}}")]
	}
	return line[:2]
}

// definitionFor finds the archive's own definition of an object's kind.
func (t *subject) definitionFor(o *target.Object) *target.Definition {
	definitions := t.Definitions()
	i := slices.IndexFunc(definitions, func(d target.Definition) bool {
		return d.Spec.Group == o.Group() && d.Spec.Names.Kind == o.Kind
	})
	if i < 0 {
		return nil
	}
	return &definitions[i]
}
