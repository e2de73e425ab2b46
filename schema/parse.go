package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// document is one row of the table of kinds.
type document struct {
	kind        string
	schema      func() compiled
	apiVersions []string
	// foreign documents come from other tools: unknown fields and aliases are not errors in them.
	foreign bool
	// salt documents are read by MetalK8s too, whose YAML reader follows YAML 1.1.
	salt  bool
	check func(*checker) // judges what a JSON Schema cannot express
}

var documents = []document{
	{
		kind: KindSolution, schema: compile(KindSolution), apiVersions: []string{APIVersion},
		foreign: true, salt: true, check: checkSolution,
	},
	{
		kind: KindSolutionBuild, schema: compile(KindSolutionBuild), apiVersions: []string{ownAPIVersion},
		check: checkSolutionBuild,
	},
	{
		kind: KindSolutionsConfiguration, schema: compile(KindSolutionsConfiguration), apiVersions: []string{APIVersion, OlderAPIVersion},
		salt: true, check: checkSolutionsConfiguration,
	},
	{
		kind: KindOperatorConfig, schema: compile(KindOperatorConfig), apiVersions: []string{APIVersion},
		check: checkOperatorConfig,
	},
	{
		kind: KindLoaderConfiguration, schema: compile(KindLoaderConfiguration), apiVersions: []string{ownAPIVersion},
		check: checkLoaderConfiguration,
	},
	{
		kind: KindEnvironmentConfiguration, schema: compile(KindEnvironmentConfiguration), apiVersions: []string{ownAPIVersion},
		check: checkEnvironmentConfiguration,
	},
}

func documentOf(kind string) (document, bool) {
	i := slices.IndexFunc(documents, func(d document) bool { return d.kind == kind })
	if i < 0 {
		return document{}, false
	}
	return documents[i], true
}

// ParseSolution reads manifest.yaml of an archive; file is its name in messages. Fields that it does not know are
// warnings, because other tools may have written the archive.
func ParseSolution(file string, data []byte) (*Solution, []report.Finding, error) {
	return parse[Solution](KindSolution, file, data)
}

// ParseSolutionBuild reads solution.yaml, the input of a build. Settings replace values of the file, in their order, and
// are judged together with the rest.
func ParseSolutionBuild(file string, data []byte, settings ...Setting) (*SolutionBuild, error) {
	build, _, err := parse[SolutionBuild](KindSolutionBuild, file, data, settings...)
	return build, err
}

// ParseSolutionsConfiguration reads either form of a SolutionsConfiguration. The older form comes back as it is, with a
// warning that it has to be converted with [SolutionsConfiguration.Flat].
func ParseSolutionsConfiguration(file string, data []byte) (*SolutionsConfiguration, []report.Finding, error) {
	c, findings, err := parse[SolutionsConfiguration](KindSolutionsConfiguration, file, data)
	if err != nil {
		return nil, nil, err
	}
	if c.Archives == nil {
		c.Archives = []string{}
	}
	if c.Active == nil {
		c.Active = map[string]string{}
	}
	return c, findings, nil
}

// ParseOperatorConfig reads the configuration of an operator.
func ParseOperatorConfig(file string, data []byte) (*OperatorConfig, error) {
	config, _, err := parse[OperatorConfig](KindOperatorConfig, file, data)
	return config, err
}

// ParseLoaderConfiguration reads loader.yaml; file is its name in messages.
func ParseLoaderConfiguration(file string, data []byte) (*LoaderConfiguration, error) {
	c, _, err := parse[LoaderConfiguration](KindLoaderConfiguration, file, data)
	return c, err
}

// ParseEnvironmentConfiguration reads what an environment is to have; file is its name in messages.
func ParseEnvironmentConfiguration(file string, data []byte) (*EnvironmentConfiguration, error) {
	c, _, err := parse[EnvironmentConfiguration](KindEnvironmentConfiguration, file, data)
	return c, err
}

// Prepare begins to compile the schema of a kind, for a caller that is about to read such a document. It returns at once.
func Prepare(kind string) {
	if row, ok := documentOf(kind); ok {
		go row.schema()
	}
}

// KindOf returns the kind of the document in a file, "" when it has none. It is for callers that accept several kinds and
// checks nothing else.
func KindOf(file string, data []byte) (string, error) {
	read, err := ParseYAML(file, data)
	if err != nil || len(read) == 0 {
		return "", err
	}
	object, _ := read[0].Value().(map[string]any)
	kind, _ := object["kind"].(string)
	return kind, nil
}

// Validate judges one document as being of a kind. The findings, errors and others, come in the order of the file. It
// panics when [Kinds] does not list the kind.
func Validate(kind string, d *Document) []report.Finding {
	row, ok := documentOf(kind)
	if !ok {
		panic(fmt.Sprintf("schema: no document is of kind %q", kind))
	}
	c := &checker{doc: d, row: row}
	c.run()
	return c.findings
}

// parse reads the one document of a file, judges it and decodes it.
func parse[T any](kind, file string, data []byte, settings ...Setting) (*T, []report.Finding, error) {
	row, _ := documentOf(kind)
	read, err := parseYAML(data, &yamlReader{file: file, strict: !row.foreign, maxDepth: MaxDepth})
	if err != nil {
		return nil, nil, err
	}
	d, err := single(kind, file, read)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range settings {
		if err := d.apply(s, row.schema().root); err != nil {
			return nil, nil, err
		}
	}
	c := &checker{doc: d, row: row}
	c.run()
	if report.HasErrors(c.findings) {
		notError := func(f report.Finding) bool { return f.Severity != report.SeverityError }
		return nil, nil, newInvalid(slices.DeleteFunc(c.findings, notError))
	}
	value := new(T)
	if err := c.decode(value); err != nil {
		return nil, nil, report.Errorf(report.Invalid, "%s: %w", file, err)
	}
	return value, c.findings, nil
}

// single returns the only document of a file.
func single(kind, file string, read []*Document) (*Document, error) {
	problem := report.Finding{Rule: "yaml-documents", Severity: report.SeverityError, Path: file}
	switch {
	case len(read) == 0, len(read) == 1 && read[0].Value() == nil:
		problem.Message, problem.Hint = "the file is empty", "write a document of kind "+kind
	case len(read) > 1:
		problem.Line, problem.Column = read[1].Lookup()
		problem.Message, problem.Hint = "a second document", "keep one document in the file"
	default:
		return read[0], nil
	}
	return nil, newInvalid([]report.Finding{problem})
}

// decode fills the typed value from what the checks left of the document: known fields without nulls.
func (c *checker) decode(into any) error {
	data, err := json.Marshal(c.pruned)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
