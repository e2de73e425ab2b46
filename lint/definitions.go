package lint

import (
	"bytes"
	"context"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

func checkCustomResources(ctx context.Context, t *subject, r *reporter) {
	for _, v := range verdicts(ctx, t) {
		hint := ""
		if v.object.Rendered() {
			hint = "write the value to a file, name it as 'values' of the component in solution.yaml, or make the project again with --values COMPONENT=FILE"
		}
		for _, invalid := range v.invalid {
			r.Report(v.object.At(invalid.Path), hint, "%s", invalid.Message)
		}
		if v.err != nil {
			r.Report(v.object.At(""), hint, "%v", v.err)
		}
	}
}

func checkDroppedFields(ctx context.Context, t *subject, r *reporter) {
	for _, v := range verdicts(ctx, t) {
		for _, lost := range v.lost {
			r.Report(v.object.AtKey(lost.Path), "correct the name of the field, or add it to the definition", "the API server drops %s: the definition has no such field", lost.Path)
		}
	}
}

func checkServedVersion(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.Objects() {
		definition := t.definitionFor(o)
		if definition == nil || !o.Judged() {
			continue
		}
		if served, versions := definition.Serves(o.Version()); !served {
			r.Report(o.AtKey("apiVersion"), "", "the definition does not serve %s; it serves %s", o.Version(), strings.Join(versions, ", "))
		}
	}
}

// verdict is the answer of an API server to a custom resource, foretold.
type verdict struct {
	object  *target.Object
	invalid []crd.Invalid
	lost    []crd.LostField
	err     error
}

// verdicts judges the objects whose definition is in the archive. Definitions that the API server refuses judge nothing.
var verdicts = fact(func(ctx context.Context, t *subject) []verdict {
	var all []verdict
	checkers := map[string]*crd.Checker{}
	for _, o := range t.Objects() {
		definition := t.definitionFor(o)
		if definition == nil || !o.Judged() {
			continue
		}
		if served, _ := definition.Serves(o.Version()); !served || o.Rendered() && definition.Part != target.PartCRD && definition.File != o.File {
			continue
		}
		key := definition.File + "\x00" + definition.Name
		checker, known := checkers[key]
		if !known {
			checker, _ = crd.NewChecker(definition.Definition) // the rule SOL325 reports why it fails
			checkers[key] = checker
		}
		if checker == nil {
			continue
		}
		v := verdict{object: o}
		v.invalid, v.lost, v.err = checker.Check(ctx, o.Version(), o.Value)
		all = append(all, v)
	}
	return all
})

// crdName makes the name of a file for a definition.
var crdName = lazyregexp.New(`[^a-z0-9-].*`)

func checkDefinitionFiles(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.Objects() {
		if !o.IsDefinition() || o.Part != target.PartSample && o.Part != target.PartUnapplied {
			continue
		}
		extension := path.Ext(o.File)
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(o.File, extension), "_cr"), "_crd")
		if o.Part == target.PartUnapplied {
			name = path.Join("operator/deploy/crds", path.Base(name))
		}
		found := r.Report(o.At(""), "name the file "+name+"_crd.yaml", "the definition is not applied: its file is not named operator/deploy/crds/**/*_crd.yaml")
		if documents, err := t.Documents(o.File); err == nil && len(documents) == 1 {
			if data, err := t.Text(o.File); err == nil {
				found.Fix(Edit{Path: name + "_crd.yaml", Data: data}, Edit{Path: o.File})
			}
		}
	}
}

func checkDefinitionDocuments(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.DefinitionFiles() {
		for _, problem := range t.DefinitionProblems(file) {
			switch problem.Reason {
			case crd.Documents:
				r.Report(target.Place{File: file, Line: problem.Line, Column: problem.Column}, problem.Hint, "%s", problem.Message).Fix(splitDocuments(t, file)...)
			case crd.WrongKind, crd.Unreadable:
				r.Report(t.problemPlace(file, problem), problem.Hint, "%s", problem.Message)
			}
		}
	}
}

var documentSeparator = lazyregexp.New(`(?m)^---(?:[ \t].*)?\r?\n`)

// splitDocuments writes each definition of a file to a file of its own. It does nothing if documents cannot be
// separated by their separators, or have other content.
func splitDocuments(t *subject, file string) []Edit {
	data, err := t.Text(file)
	if err != nil {
		return nil
	}
	var edits []Edit
	names := map[string]bool{}
	for _, text := range documentSeparator.Split(string(data), -1) {
		definition, _ := crd.Parse([]byte(text))
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case definition == nil:
			return nil
		}
		name := path.Join(path.Dir(file), crdName.ReplaceAllString(definition.Spec.Names.Plural, "")+"_crd.yaml")
		if names[name] || name != file && t.Has(name) {
			return nil
		}
		names[name] = true
		edits = append(edits, Edit{Path: name, Data: bytes.TrimLeft([]byte(text), "\r\n")})
	}
	if len(edits) < 2 {
		return nil
	}
	if !names[file] {
		edits = append(edits, Edit{Path: file})
	}
	return edits
}

// checkDefinitionText reports faults of definitions as files.
func checkDefinitionText(reason crd.Reason) func(context.Context, *subject, *reporter) {
	return func(_ context.Context, t *subject, r *reporter) {
		t.reportFiles(r, reason)
		if reason != crd.OldAPI {
			return
		}
		for _, d := range t.Definitions() { // of charts and other parts
			if d.Converted && d.Part != target.PartCRD && d.Part.Applied() {
				r.Report(d.Object.AtKey("apiVersion"), "write apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22")
			}
		}
	}
}

func (t *subject) reportFiles(r *reporter, reason crd.Reason) {
	for _, file := range t.DefinitionFiles() {
		for _, problem := range t.DefinitionProblems(file) {
			if problem.Reason == reason {
				r.Report(t.problemPlace(file, problem), problem.Hint, "%s", problem.Message)
			}
		}
	}
}

// checkDefinition reports the API server's errors about definitions.
func checkDefinition(reason crd.Reason) func(context.Context, *subject, *reporter) {
	return func(ctx context.Context, t *subject, r *reporter) {
		t.reportFiles(r, reason) // those that cannot even be decoded
		for i, d := range t.Definitions() {
			if d.Converted && reason == crd.Refused {
				continue // it was written for other rules, which SOL323 reports
			}
			for _, problem := range judgements(ctx, t)[i] {
				if problem.Reason == reason && d.Part.Applied() {
					r.Report(d.At(problem.Path), problem.Hint, "%s", brief(problem.Message))
				}
			}
		}
	}
}

// brief leaves out the value that the API server quotes when it is a whole schema.
func brief(message string) string {
	const most = 200
	last := strings.LastIndex(message, ": ")
	if len(message) <= most || last < 0 {
		return message
	}
	kind, _, _ := strings.Cut(message, ":")
	return kind + message[last:]
}

// problemPlace is the place of a problem with a file of one definition.
func (t *subject) problemPlace(file string, problem crd.Problem) target.Place {
	if o := t.FirstObject(file); o != nil && problem.Line == 0 {
		return o.At(problem.Path)
	}
	return target.Place{File: file, Line: problem.Line, Column: problem.Column}
}

func checkDefinitionsTwice(_ context.Context, t *subject, r *reporter) {
	first := map[string]string{}
	for _, d := range t.Definitions() {
		if !d.Part.Applied() {
			continue
		}
		earlier, twice := first[d.Name]
		switch {
		case !twice:
			first[d.Name] = d.File
		case d.Part != target.PartChart:
			r.Report(d.At("metadata.name"), "keep one of them", "%s is defined in %s already", d.Name, t.SourcePath(earlier))
		case d.File != earlier: // else it is one chart, for several components
			r.ReportAs(report.SeverityWarning, d.At("metadata.name"), "let one of them bring it, by the values of the charts", "%s is defined in %s already", d.Name, t.SourcePath(earlier))
		}
	}
}

// judgements are the errors of the API server's validation, by definition.
var judgements = fact(func(ctx context.Context, t *subject) [][]crd.Problem {
	all := make([][]crd.Problem, len(t.Definitions()))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, definition := range t.Definitions() {
		group.Go(func() error {
			all[i] = definition.Judge(ctx)
			return nil
		})
	}
	_ = group.Wait() // nothing fails
	return all
})
