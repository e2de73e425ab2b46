package lint

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkBuildable reports refusals of a build that no other rule has reported.
func checkBuildable(_ context.Context, t *subject, r *reporter) {
	for _, refused := range t.Refusals {
		if t.reportedElsewhere(refused) {
			continue
		}
		at := target.Place{File: target.ProjectFile}
		if refused.File != "" {
			at = target.InFile(refused.File)
		}
		r.Report(at, strings.Join(report.Hints(refused.Err), "; "), "no archive can be built: %v", refused.Err)
	}
}

// reportedElsewhere reports whether a refusal is about a file of spec.files that is missing, or a chart that cannot be read.
func (t *subject) reportedElsewhere(refused target.Refusal) bool {
	if refused.File == "" {
		return slices.ContainsFunc(t.Charts(), func(c target.Chart) bool {
			return c.Err != nil && strings.HasPrefix(refused.Err.Error(), c.File+": ")
		})
	}
	_, err := fs.Stat(t.FS, refused.File)
	return err != nil && slices.ContainsFunc(t.Build.Spec.Files, func(f schema.BuildFile) bool { return f.Path == refused.File })
}

// Rules of package schema.
const (
	olderAnnotation      = "older-annotation"
	differentAnnotations = "different-annotation"
)

func checkManifest(_ context.Context, t *subject, r *reporter) {
	for _, f := range t.Problems {
		if f.Path == archive.ManifestFile && f.Rule != olderAnnotation && f.Rule != differentAnnotations {
			r.ReportAs(f.Severity, target.PlaceOf(f), f.Hint, "%s", f.Message)
		}
	}
}

func checkAnnotations(_ context.Context, t *subject, r *reporter) {
	for _, f := range t.Problems {
		if f.Rule == olderAnnotation || f.Rule == differentAnnotations {
			r.ReportAs(f.Severity, target.PlaceOf(f), f.Hint, "%s", f.Message)
		}
	}
	if t.Solution == nil {
		return
	}
	for key := range t.Solution.Metadata.Annotations {
		if _, both := t.Solution.Annotations[key]; !both && strings.HasPrefix(key, schema.AnnotationPrefix) {
			r.Report(t.ManifestPlace("metadata", "annotations", key), "write it to the top-level annotations as well", "MetalK8s does not look for annotations here")
		}
	}
}

func checkProject(_ context.Context, t *subject, r *reporter) {
	for _, f := range t.Problems {
		if f.Path == target.ProjectFile {
			r.ReportAs(f.Severity, target.PlaceOf(f), f.Hint, "%s", f.Message)
		}
	}
	if t.Build == nil {
		return
	}
	for i, file := range t.Build.Spec.Files {
		if info, err := fs.Stat(t.FS, file.Path); err != nil || !info.Mode().IsRegular() {
			r.Report(target.Place{File: target.ProjectFile, Object: fmt.Sprintf("spec.files[%d].source", i)},
				"correct the path; it is relative to the directory of solution.yaml", "there is no file %s", file.Source)
		}
	}
}

// places are the patterns of the files that something reads; # stands for one name.
var places = lazyregexp.New(`^(?:` + strings.Join([]string{
	`manifest\.yaml`, `registry-config\.inc\.j2`, `oci-layout`, `index\.json`,
	`operator/deploy/[^/]+\.ya?ml`, `operator/deploy/crds/.+`, `operator/cluster/[^/]+`,
	`operators/[^/]+/role\.yaml`, `operators/[^/]+/cluster/[^/]+`,
	`ui/[^/]+`, `charts/[^/]+\.(?:tgz|prov)`, `components/.+`, `sbom/.+`, `vex/[^/]+\.json`, `docs/.+`,
	`monitoring/[^/]+`, `monitoring/dashboards/[^/]+\.json`, `release-notes\.md`,
	`(?:[^/]+/)*(?i:README|LICEN[CS]E|CHANGELOG|NOTICE|AUTHORS|SHA256SUM)[^/]*`,
}, "|") + `)$`)

func checkLayout(_ context.Context, t *subject, r *reporter) {
	declared := map[string]bool{}
	if t.Build != nil {
		for _, file := range t.Build.Spec.Files {
			declared[path.Clean(file.Path)] = true
		}
	}
	unpacked, named := t.unpackedCharts(), t.namedCharts()
	for _, dir := range unpacked {
		if named[dir] {
			continue // SOL213
		}
		r.Report(target.InFile(dir), fmt.Sprintf("pack it, and keep its files elsewhere: helm package %s", report.ShellFile(path.Dir(t.SourcePath(dir+"/Chart.yaml")))),
			"the chart is not packed: nothing uses it, and its images are unknown")
	}
	if _, err := archive.ReleaseNotes(t.FS); err != nil {
		r.Report(target.InFile(archive.ReleaseNotesFile), "write a short text; the complete changes have their place in docs", "nothing shows them: %v", err)
	}
	for _, file := range t.Files() {
		if slices.ContainsFunc(unpacked, func(dir string) bool { return strings.HasPrefix(file.Path, dir+"/") }) {
			continue
		}
		top, _, nested := strings.Cut(file.Path, "/")
		known := slices.Contains([]string{"operator", "operators", "ui", "charts", "components", "monitoring", "sbom", "vex"}, top)
		switch {
		case places.MatchString(file.Path):
		case nested && known:
			r.Report(target.InFile(file.Path), "move the file; 'solutionctl lint --explain SOL204' lists the places", "nothing reads files here")
		case !declared[file.Path]:
			r.ReportAs(report.SeverityNote, target.InFile(file.Path), "", "the layout of archives does not know this file")
		}
	}
}

// namedCharts are the paths that components have for their charts; of a directory, its Chart.yaml may be named.
func (t *subject) namedCharts() map[string]bool {
	named := map[string]bool{}
	if t.Solution != nil {
		for _, component := range t.Solution.Spec.Components {
			name := path.Clean(component.Chart)
			named[name], named[strings.TrimSuffix(name, "/Chart.yaml")] = true, true
		}
	}
	return named
}

// unpackedCharts lists the directories of charts/ that are charts; those of their subcharts are a part of them.
func (t *subject) unpackedCharts() []string {
	var dirs []string
	for _, file := range t.Files() {
		dir, base := path.Split(file.Path)
		inside := slices.ContainsFunc(dirs, func(chart string) bool { return strings.HasPrefix(dir, chart+"/") })
		if base == "Chart.yaml" && strings.HasPrefix(dir, "charts/") && dir != "charts/" && !inside {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

func checkYAML(_ context.Context, t *subject, r *reporter) {
	for _, name := range t.Manifests() {
		_, err := t.Documents(name)
		if err == nil {
			continue
		}
		problems := schema.Problems(err)
		for _, f := range problems {
			r.Report(target.PlaceOf(f), f.Hint, "%s", f.Message)
		}
		if len(problems) == 0 {
			r.Report(target.InFile(name), "", "%s", strings.TrimPrefix(err.Error(), name+" "))
		}
	}
}

func checkTextForm(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.Files() {
		extension := strings.ToLower(path.Ext(file.Path))
		if file.Path != registryConfigFile && !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) || file.Size > target.MaxText {
			continue
		}
		data, err := t.Text(file.Path)
		if err != nil {
			continue
		}
		fixed := bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
		if bytes.HasPrefix(data, []byte("\ufeff")) {
			r.Report(target.Place{File: file.Path, Line: 1, Column: 1}, "solutionctl lint --fix removes it", "the file starts with a byte order mark").
				Fix(Edit{Path: file.Path, Data: fixed})
		}
		if before, _, windows := bytes.Cut(data, []byte("\r\n")); windows {
			r.Report(target.Place{File: file.Path, Line: 1 + bytes.Count(before, []byte("\n"))}, "solutionctl lint --fix replaces them", "the file has Windows line ends").
				Fix(Edit{Path: file.Path, Data: fixed})
		}
	}
}

func checkExtensions(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.Files() {
		extension := path.Ext(file.Path)
		base := strings.TrimSuffix(file.Path, extension)
		if lower := strings.ToLower(extension); extension == ".yaml" || lower != ".yaml" && lower != ".yml" || target.PartOf(base+".yaml") == "" {
			continue
		}
		found := r.Report(target.InFile(file.Path), "rename it to "+path.Base(base)+".yaml", "files named *%s are not applied", extension)
		if data, err := t.Text(file.Path); err == nil {
			found.Fix(Edit{Path: base + ".yaml", Data: data}, Edit{Path: file.Path})
		}
	}
}

func checkNotApplied(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.Files() {
		name := path.Base(file.Path)
		switch part := target.PartOf(file.Path); {
		case part == target.PartUnapplied && path.Dir(file.Path) == "operator/deploy":
			r.Report(target.InFile(file.Path), "", "not applied: %s", unappliedReason(name))
		case part == target.PartSample && !strings.HasSuffix(name, "_cr.yaml") && !t.definesResource(file.Path):
			r.Report(target.InFile(file.Path), "name it *_cr.yaml when it is a sample", "not applied: neither a definition (*_crd.yaml) nor a sample (*_cr.yaml)")
		}
	}
	for _, o := range t.Objects() {
		if isMoved(o) {
			r.Report(o.At("metadata.namespace"), "leave the namespace out", "not applied in this namespace: the user interface is deployed into that of the environment")
		}
	}
}

func unappliedReason(name string) string {
	switch strings.TrimSuffix(name, path.Ext(name)) {
	case "operator":
		return "the Deployment of the operator is made from the manifest"
	case "role_binding":
		return "every role of role.yaml gets its RoleBinding"
	case "service_account":
		return "the ServiceAccount <solution>-operator is made"
	default:
		return "only role.yaml and crds/ are read here"
	}
}

// definesResource reports whether a file holds a CustomResourceDefinition.
func (t *subject) definesResource(file string) bool {
	return slices.ContainsFunc(t.Objects(), func(o *target.Object) bool { return o.File == file && o.Kind == "CustomResourceDefinition" })
}

func checkObjects(_ context.Context, t *subject, r *reporter) {
	for _, name := range t.Manifests() {
		documents, err := t.Documents(name)
		if err != nil || target.PartOf(name) == target.PartUnapplied {
			continue
		}
		objects := 0
		for _, document := range documents {
			line, column := document.Lookup()
			at := target.Place{File: name, Line: line, Column: column}
			switch value := document.Value().(type) {
			case nil:
				continue
			case map[string]any:
				if value["kind"] == nil || value["apiVersion"] == nil {
					r.Report(at, "write apiVersion and kind, or move the file out of the manifests", "not a Kubernetes object: apiVersion or kind is missing")
				}
			default:
				r.Report(at, "separate objects by lines with ---", "not a Kubernetes object")
			}
			objects++
		}
		if objects == 0 && target.PartOf(name) != target.PartRole { // where empty means: no rights
			r.Report(target.InFile(name), "remove the file", "the file holds no object")
		}
	}
}

func checkLintSettings(_ context.Context, t *subject, r *reporter) {
	if t.Build == nil || t.Build.Lint == nil {
		return
	}
	known, lists := ruleNames(), map[string][]string{"disable": t.Build.Lint.Disable, "enable": t.Build.Lint.Enable}
	for _, list := range []string{"disable", "enable"} {
		for i, name := range lists[list] {
			if !known[name] {
				r.Report(target.Place{File: target.ProjectFile, Object: fmt.Sprintf("lint.%s[%d]", list, i)}, "'solutionctl lint --rules' lists them", "there is no rule or group %q", name)
			}
		}
	}
	if version := t.Build.Lint.KubernetesVersion; version != "" {
		if err := t.KnowsKubernetes(version); err != nil {
			r.Report(target.Place{File: target.ProjectFile, Object: "lint.kubernetesVersion"}, strings.Join(report.Hints(err), "; "), "%v", err)
		}
	}
}
