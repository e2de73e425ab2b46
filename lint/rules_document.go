package lint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The rules whose findings do not come from a check of their own.
const (
	ruleManifest         = "SOL201"
	ruleProject          = "SOL202"
	ruleAnnotations      = "SOL203"
	ruleSuppressReason   = "SOL210"
	ruleSuppressUnused   = "SOL211"
	olderAnnotation      = "older-annotation" // rules of package schema
	differentAnnotations = "different-annotation"
)

func documentRules() []Rule {
	return []Rule{
		{
			ID: ruleManifest, Name: "manifest", Group: GroupDocuments, Severity: report.SeverityError,
			Summary: "manifest.yaml is a Solution by its JSON Schema.",
			Explanation: "The manifest is read by MetalK8s, by every command and by the operator's library. Fields that no version knows are warnings: " +
				"a newer tool may have written them. 'solutionctl schema Solution' prints the schema.",
			Bad: "spec:\n  version: \"1.0\"", Good: "spec:\n  version: 1.0.0",
			check: checkManifest,
		},
		{
			ID: ruleProject, Name: "project", Group: GroupDocuments, Severity: report.SeverityError,
			Summary: "solution.yaml is a SolutionBuild by its JSON Schema, and what it names is there.",
			Explanation: "A build refuses what this rule reports. Unknown fields are errors, since they are mostly misspelt. " +
				"'solutionctl schema SolutionBuild' prints the schema.",
			Bad: "spec:\n  dispayName: Demo", Good: "spec:\n  displayName: Demo",
			check: checkProject,
		},
		{
			ID: ruleAnnotations, Name: "annotation-placement", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary: "Annotations of the manifest stand at the top level, where MetalK8s reads them, and in metadata, where its specification puts them, with equal values.",
			Explanation: "The Salt code of MetalK8s reads top-level annotations only; the specification and everything else read metadata.annotations. " +
				"Archives made for MetalK8s alone have the former; that is a note.",
			Bad:   "annotations:\n  solutions.metalk8s.scality.com/display-name: Example",
			Good:  "annotations:\n  solutions.metalk8s.scality.com/display-name: Example\nmetadata:\n  annotations:\n    solutions.metalk8s.scality.com/display-name: Example",
			check: checkAnnotations,
		},
		{
			ID: "SOL204", Name: "layout", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary: "Every file lies where something reads it.",
			Explanation: "The archive has fixed places: operator/deploy/role.yaml, operator/deploy/crds/, operator/cluster/, ui/*.yaml, charts/*.tgz, components/, " +
				"monitoring/*.yaml, monitoring/dashboards/*.json, sbom/ and, for people, files named README, LICENSE, CHANGELOG or NOTICE and docs/. " +
				"What lies elsewhere in these directories is not applied, and mostly misplaced.",
			Bad: "operator/role.yaml\nui/manifests/ui.yaml", Good: "operator/deploy/role.yaml\nui/ui.yaml",
			check: checkLayout,
		},
		{
			ID: "SOL205", Name: "yaml", Group: GroupDocuments, Severity: report.SeverityError,
			Summary: "Every YAML file can be read: UTF-8, no duplicate keys, no tabs in the indentation, at most 4 MiB.",
			Explanation: "Parsers differ in what they make of a file that is not quite YAML: with a key that stands twice, one takes the first and another the last value. " +
				"Files with more than 400,000 keys and items, and aliases that expand to more than 500,000 values or 16 MiB, are refused.",
			Bad: "spec:\n  replicas: 1\n  replicas: 3", Good: "spec:\n  replicas: 3",
			check: checkYAML,
		},
		{
			ID: "SOL206", Name: "text-form", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary: "Text files have no byte order mark and Unix line ends.",
			Explanation: "A byte order mark ends up in the first key for some parsers, and Windows line ends in every multi-line string: in scripts of ConfigMaps they break the first line. " +
				"--fix removes both.",
			Bad: "\\ufeffapiVersion: v1\\r\\n", Good: "apiVersion: v1\\n",
			Fixable: true, check: checkTextForm,
		},
		{
			ID: "SOL207", Name: "file-extension", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary:     "Manifests are named *.yaml.",
			Explanation: "MetalK8s and solutionctl look for *.yaml; a file named *.yml, or *.YAML, is not applied. --fix renames it in a project.",
			Bad:         "ui/ui.yml", Good: "ui/ui.yaml",
			Fixable: true, check: checkExtensions,
		},
		{
			ID: "SOL208", Name: "not-applied", Group: GroupDocuments, Severity: report.SeverityNote,
			Summary: "There are no manifests that nothing applies.",
			Explanation: "Archives made after the old MetalK8s example carry operator.yaml, role_binding.yaml and service_account.yaml of the Operator SDK below operator/deploy, " +
				"and user interface objects in the namespace metalk8s-solutions. MetalK8s creates the former itself and the latter are deployed per environment. They do no harm; this only says that changing them changes nothing.",
			Bad: "operator/deploy/operator.yaml", Good: "operator/deploy/role.yaml",
			check: checkNotApplied,
		},
		{
			ID: "SOL209", Name: "no-object", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary:     "Every document of a manifest is a Kubernetes object: apiVersion, kind and a name.",
			Explanation: "A file that is empty, or a document that is a list or a text, is not applied. Mostly it lost its content on the way.",
			Bad:         "- apiVersion: v1\n  kind: Service", Good: "apiVersion: v1\nkind: Service\nmetadata: {name: web}",
			check: checkObjects,
		},
		{
			ID: ruleSuppressReason, Name: "suppression-reason", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary: "Whoever suppresses a finding says why.",
			Explanation: "The reason follows the identifiers, in a comment '# solutionctl:ignore SOL123 reason' on the line or above the field, or in the annotation " +
				"lint.solutionctl.io/ignore of the object: 'SOL123: reason', several separated by semicolons. Without a reason nothing is suppressed.",
			Bad: "# solutionctl:ignore SOL307", Good: "# solutionctl:ignore SOL307 the CRD of the cluster has another type",
			check: func(context.Context, *subject, *Reporter) {}, // found while suppressing
		},
		{
			ID: ruleSuppressUnused, Name: "suppression-unused", Group: GroupDocuments, Severity: report.SeverityWarning,
			Summary:     "Every suppression suppresses something.",
			Explanation: "What was once wrong was corrected, or the comment stands in the wrong place. A suppression that is left behind hides the next mistake.",
			Bad:         "# solutionctl:ignore SOL307 needed for 1.0\nreplicas: 3", Good: "replicas: 3",
			check: func(context.Context, *subject, *Reporter) {}, // found while suppressing
		},
		{
			ID: "SOL212", Name: "lint-settings", Group: GroupDocuments, Severity: report.SeverityError,
			Summary:     "The section lint of solution.yaml names rules, groups and a Kubernetes release that exist.",
			Explanation: "A misspelt identifier would leave a rule on, or off, unnoticed.",
			Bad:         "lint:\n  disable: [SOL999]", Good: "lint:\n  disable: [SOL106]",
			check: checkLintSettings,
		},
		{
			ID: "SOL213", Name: "component-files", Group: GroupDocuments, Severity: report.SeverityError,
			Summary:     "The charts, manifests, jobs and values that spec.components names are in the archive.",
			Explanation: "A component whose files are missing cannot be deployed. Paths start at the root of the archive.",
			Bad:         "components:\n  - name: database\n    chart: charts/db.tgz        # the file is db-1.0.0.tgz", Good: "components:\n  - name: database\n    chart: charts/db-1.0.0.tgz",
			check: checkComponentFiles,
		},
	}
}

func checkManifest(_ context.Context, t *subject, r *Reporter) {
	for _, f := range t.Problems {
		if f.Path == archive.ManifestFile && f.Rule != olderAnnotation && f.Rule != differentAnnotations {
			r.ReportAs(f.Severity, target.PlaceOf(f), f.Hint, "%s", f.Message)
		}
	}
}

func checkAnnotations(_ context.Context, t *subject, r *Reporter) {
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

func checkProject(_ context.Context, t *subject, r *Reporter) {
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
var places = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`manifest\.yaml`, `registry-config\.inc\.j2`, `oci-layout`, `index\.json`,
	`operator/deploy/[^/]+\.ya?ml`, `operator/deploy/crds/.+`, `operator/cluster/[^/]+`,
	`ui/[^/]+`, `charts/[^/]+\.(?:tgz|prov)`, `components/.+`, `sbom/.+`, `docs/.+`,
	`monitoring/[^/]+`, `monitoring/dashboards/[^/]+\.json`,
	`(?:[^/]+/)*(?i:README|LICEN[CS]E|CHANGELOG|NOTICE|AUTHORS|SHA256SUM)[^/]*`,
}, "|") + `)$`)

func checkLayout(_ context.Context, t *subject, r *Reporter) {
	declared := map[string]bool{}
	if t.Build != nil {
		for _, file := range t.Build.Spec.Files {
			declared[path.Clean(file.Path)] = true
		}
	}
	unpacked := t.unpackedCharts()
	for _, dir := range unpacked {
		r.Report(target.InFile(dir), fmt.Sprintf("pack it, and keep its files elsewhere: helm package %s", path.Dir(t.SourcePath(dir+"/Chart.yaml"))),
			"the chart is not packed: nothing uses it, and nobody can tell which images it needs")
	}
	for _, file := range t.Files() {
		if slices.ContainsFunc(unpacked, func(dir string) bool { return strings.HasPrefix(file.Path, dir+"/") }) {
			continue
		}
		top, _, nested := strings.Cut(file.Path, "/")
		known := slices.Contains([]string{"operator", "ui", "charts", "components", "monitoring", "sbom"}, top)
		switch {
		case places.MatchString(file.Path):
		case nested && known:
			r.Report(target.InFile(file.Path), "move the file; 'solutionctl lint --explain SOL204' lists the places", "nothing reads files here")
		case !declared[file.Path]:
			r.ReportAs(report.SeverityNote, target.InFile(file.Path), "", "the layout of archives does not know this file")
		}
	}
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

func checkYAML(_ context.Context, t *subject, r *Reporter) {
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

func checkTextForm(_ context.Context, t *subject, r *Reporter) {
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
				Fix(Edit{file.Path, fixed})
		}
		if before, _, windows := bytes.Cut(data, []byte("\r\n")); windows {
			r.Report(target.Place{File: file.Path, Line: 1 + bytes.Count(before, []byte("\n"))}, "solutionctl lint --fix replaces them", "the file has Windows line ends").
				Fix(Edit{file.Path, fixed})
		}
	}
}

func checkExtensions(_ context.Context, t *subject, r *Reporter) {
	for _, file := range t.Files() {
		extension := path.Ext(file.Path)
		base := strings.TrimSuffix(file.Path, extension)
		if lower := strings.ToLower(extension); extension == ".yaml" || lower != ".yaml" && lower != ".yml" || target.PartOf(base+".yaml") == "" {
			continue
		}
		found := r.Report(target.InFile(file.Path), "rename it to "+path.Base(base)+".yaml", "files named *%s are not applied", extension)
		if data, err := t.Text(file.Path); err == nil {
			found.Fix(Edit{base + ".yaml", data}, Edit{file.Path, nil})
		}
	}
}

func checkNotApplied(_ context.Context, t *subject, r *Reporter) {
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
		if o.Part == target.PartUI && o.Namespace == "metalk8s-solutions" {
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

// definesResource tells whether a file holds a CustomResourceDefinition.
func (t *subject) definesResource(file string) bool {
	return slices.ContainsFunc(t.Objects(), func(o *target.Object) bool { return o.File == file && o.Kind == "CustomResourceDefinition" })
}

func checkObjects(_ context.Context, t *subject, r *Reporter) {
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
		if objects == 0 && name != archive.RoleFile { // where empty means: no rights
			r.Report(target.InFile(name), "remove the file", "the file holds no object")
		}
	}
}

func checkLintSettings(_ context.Context, t *subject, r *Reporter) {
	if t.Build == nil || t.Build.Lint == nil {
		return
	}
	lists := map[string][]string{"disable": t.Build.Lint.Disable, "enable": t.Build.Lint.Enable}
	for _, list := range []string{"disable", "enable"} {
		for i, name := range lists[list] {
			if !known(name) {
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

func checkComponentFiles(_ context.Context, t *subject, r *Reporter) {
	if t.Solution == nil {
		return
	}
	for i, component := range t.Solution.Spec.Components {
		for _, file := range []struct{ field, name string }{
			{"chart", component.Chart}, {"manifests", component.Manifests}, {"job", component.Job}, {"values", component.Values},
		} {
			if file.name == "" {
				continue
			}
			if _, err := fs.Stat(t.FS, path.Clean(file.name)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
				r.Report(t.ManifestPlace("spec", "components", fmt.Sprint(i), file.field), "paths start at the root of the archive",
					"component %s: there is no %s", component.Name, file.name)
			}
		}
	}
}
