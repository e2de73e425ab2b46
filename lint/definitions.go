package lint

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"strings"

	"github.com/solutionctl/solutionctl/lint/crd"
)

func checkCustomResources(ctx context.Context, t *Target, r *Reporter) {
	t.eachCustomResource(ctx, func(o *Object, c verdict) {
		for _, invalid := range c.invalid {
			r.Report(o.At(invalid.Path), "", "%s", invalid.Message)
		}
		if c.err != nil {
			r.Report(o.At(""), "", "%v", c.err)
		}
	})
}

func checkDroppedFields(ctx context.Context, t *Target, r *Reporter) {
	t.eachCustomResource(ctx, func(o *Object, c verdict) {
		for _, lost := range c.lost {
			r.Report(o.AtKey(lost.Path), "correct the name of the field, or add it to the definition", "the API server drops %s: the definition has no such field", lost.Path)
		}
	})
}

func checkServedVersion(_ context.Context, t *Target, r *Reporter) {
	for _, o := range t.Objects() {
		definition := t.definitionFor(o)
		if definition == nil || !o.judged() {
			continue
		}
		if served, versions := definition.serves(o.version()); !served {
			r.Report(o.AtKey("apiVersion"), "", "the definition does not serve %s; it serves %s", o.version(), strings.Join(versions, ", "))
		}
	}
}

func (o *Object) version() string {
	_, version, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		return o.APIVersion
	}
	return version
}

func (d Definition) serves(version string) (served bool, versions []string) {
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
			served = served || v.Name == version
		}
	}
	return served, versions
}

// verdict is what the API server would make of a custom resource.
type verdict struct {
	invalid []crd.Invalid
	lost    []crd.LostField
	err     error
}

// eachCustomResource judges the objects whose definition is in the archive. Definitions that the API server refuses
// judge nothing.
func (t *Target) eachCustomResource(ctx context.Context, visit func(*Object, verdict)) {
	checkers := map[string]*crd.Checker{}
	for _, o := range t.Objects() {
		definition := t.definitionFor(o)
		if definition == nil || !o.judged() {
			continue
		}
		if served, _ := definition.serves(o.version()); !served || o.template != "" && definition.Part != PartCRD && definition.File != o.File {
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
		var v verdict
		v.invalid, v.lost, v.err = checker.Check(ctx, o.version(), o.Value)
		visit(o, v)
	}
}

// crdName makes the name of a file for a definition.
var crdName = regexp.MustCompile(`[^a-z0-9-].*`)

func checkDefinitionFiles(_ context.Context, t *Target, r *Reporter) {
	for _, o := range t.Objects() {
		if !o.isDefinition() || o.Part != PartSample && o.Part != PartUnapplied {
			continue
		}
		extension := path.Ext(o.File)
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(o.File, extension), "_cr"), "_crd")
		if o.Part == PartUnapplied {
			name = path.Join("operator/deploy/crds", path.Base(name))
		}
		found := r.Report(o.At(""), "name the file "+name+"_crd.yaml", "the definition is not applied: its file is not named operator/deploy/crds/**/*_crd.yaml")
		if documents, err := t.Documents(o.File); err == nil && len(documents) == 1 {
			found.Fix(Edit{name + "_crd.yaml", t.parse(o.File).data}, Edit{o.File, nil})
		}
	}
}

func checkDefinitionDocuments(_ context.Context, t *Target, r *Reporter) {
	for _, file := range t.crdFiles() {
		for _, problem := range t.fileProblems(file) {
			switch problem.Reason {
			case crd.Documents:
				r.Report(Place{file, problem.Line, problem.Column, ""}, problem.Hint, "%s", problem.Message).Fix(splitDocuments(t, file)...)
			case crd.WrongKind, crd.Unreadable:
				r.Report(t.problemPlace(file, problem), problem.Hint, "%s", problem.Message)
			}
		}
	}
}

var documentSeparator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?\n`)

// splitDocuments writes each definition of a file to a file of its own. It gives up where documents cannot be told
// apart by their separators, or hold anything else.
func splitDocuments(t *Target, file string) []Edit {
	var edits []Edit
	names := map[string]bool{}
	for _, text := range documentSeparator.Split(string(t.parse(file).data), -1) {
		definition, _ := crd.Parse([]byte(text))
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case definition == nil:
			return nil
		}
		name := path.Join(path.Dir(file), crdName.ReplaceAllString(definition.Spec.Names.Plural, "")+"_crd.yaml")
		if names[name] || name != file && t.has(name) {
			return nil
		}
		names[name] = true
		edits = append(edits, Edit{name, bytes.TrimLeft([]byte(text), "\r\n")})
	}
	if len(edits) < 2 {
		return nil
	}
	if !names[file] {
		edits = append(edits, Edit{file, nil})
	}
	return edits
}

func (t *Target) has(name string) bool {
	for _, file := range t.Files() {
		if file.Path == name {
			return true
		}
	}
	return false
}

// checkDefinitionText reports what is wrong with definitions as files.
func checkDefinitionText(reason crd.Reason) func(context.Context, *Target, *Reporter) {
	return func(_ context.Context, t *Target, r *Reporter) {
		for _, file := range t.crdFiles() {
			for _, problem := range t.fileProblems(file) {
				if problem.Reason == reason {
					r.Report(t.problemPlace(file, problem), problem.Hint, "%s", problem.Message)
				}
			}
		}
		if reason != crd.OldAPI {
			return
		}
		for _, d := range t.Definitions() { // of charts and other parts
			if d.Converted && d.Part != PartCRD && d.Part.Applied() {
				r.Report(d.Object.AtKey("apiVersion"), "write apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22")
			}
		}
	}
}

// checkDefinition reports what the API server would have against definitions.
func checkDefinition(reason crd.Reason) func(context.Context, *Target, *Reporter) {
	return func(ctx context.Context, t *Target, r *Reporter) {
		for _, file := range t.crdFiles() { // those that cannot even be decoded
			for _, problem := range t.fileProblems(file) {
				if problem.Reason == reason {
					r.Report(t.problemPlace(file, problem), problem.Hint, "%s", problem.Message)
				}
			}
		}
		for i, d := range t.Definitions() {
			if d.Converted && reason == crd.Refused {
				continue // it was written for other rules; SOL323 says so
			}
			for _, problem := range t.judgement(ctx, i) {
				if problem.Reason == reason && d.Part.Applied() {
					at := InFile(d.File)
					if d.Object != nil {
						at = d.Object.At(problem.Path)
					}
					r.Report(at, problem.Hint, "%s", brief(problem.Message))
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

// fileProblems is what is wrong with a definition as a file; nothing where it is not even YAML.
func (t *Target) fileProblems(file string) []crd.Problem {
	t.Definitions() // reads them
	return t.crdProblems[file]
}

// problemPlace is the place of a problem with a file of one definition.
func (t *Target) problemPlace(file string, problem crd.Problem) Place {
	if o := t.firstObject(file); o != nil && problem.Line == 0 {
		return o.At(problem.Path)
	}
	return Place{file, problem.Line, problem.Column, ""}
}

func checkDefinitionsTwice(_ context.Context, t *Target, r *Reporter) {
	first := map[string]string{}
	for _, d := range t.Definitions() {
		if !d.Part.Applied() || d.Part == PartChart {
			continue
		}
		if earlier, twice := first[d.Name]; twice {
			at := InFile(d.File)
			if d.Object != nil {
				at = d.Object.At("metadata.name")
			}
			r.Report(at, "keep one of them", "%s is defined in %s already", d.Name, t.SourcePath(earlier))
			continue
		}
		first[d.Name] = d.File
	}
}

// judgement is what the API server's validation says about a definition.
func (t *Target) judgement(ctx context.Context, i int) []crd.Problem {
	t.judging.Lock()
	defer t.judging.Unlock()
	if problems, known := t.judgements[i]; known {
		return problems
	}
	problems := t.Definitions()[i].Judge(ctx)
	t.judgements[i] = problems
	return problems
}
