// Package schema is the vocabulary of the toolchain: every document that crosses the boundary of the process.
//
// A document is a Go type, a strict parser and a JSON Schema (draft 2020-12) that agree with each other; a test proves
// it. The schemas of what the program writes itself are generated from the types. The documents that people write are [Solution]
// (manifest.yaml of an archive), [SolutionBuild] (solution.yaml, the input of a build), [SolutionsConfiguration]
// (/etc/metalk8s/solutions.yaml), [LoaderConfiguration] (/etc/solutionctl/loader.yaml), [EnvironmentConfiguration] and [OperatorConfig]
// (what an operator is started with). Start with [ParseSolution] or its siblings; [Problems] takes a refusal apart. Documents of other
// kinds, such as the Kubernetes objects in an archive, are read with [ParseYAML], which keeps the position of everything it reads.
//
// Input is untrusted: size, depth and aliases are bounded, duplicate keys and anything but UTF-8 are refused. The types
// carry JSON tags only; [Solution.Marshal] and its siblings write the canonical YAML form, the same bytes for the same
// value, which YAML 1.1 readers understand in the same way.
//
// Package schema never opens a file and never looks at a clock.
package schema

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// API versions of the documents.
const (
	// APIVersion is the group and version of every document that is shared with MetalK8s.
	APIVersion = "solutions.metalk8s.scality.com/v1alpha1"
	// OlderAPIVersion is the apiVersion of early SolutionsConfiguration files. It is read and never written.
	OlderAPIVersion = "metalk8s.scality.com/v1alpha1"
	// ownAPIVersion is the group and version of the documents that only this toolchain reads.
	ownAPIVersion = "solutionctl.io/v1alpha1"
)

// The kinds of documents, as they stand in the field kind.
const (
	KindSolution               = "Solution"
	KindSolutionBuild          = "SolutionBuild"
	KindSolutionsConfiguration = "SolutionsConfiguration"
	KindOperatorConfig         = "OperatorConfig"
	KindLoaderConfiguration    = "LoaderConfiguration"
	// KindEnvironmentConfiguration is that of what 'deploy apply' takes for one environment.
	KindEnvironmentConfiguration = "EnvironmentConfiguration"
)

// Annotations of a Solution.
const (
	AnnotationPrefix             = "solutions.metalk8s.scality.com/"
	AnnotationDisplayName        = AnnotationPrefix + "display-name"
	annotationBuildTimestamp     = AnnotationPrefix + "build-timestamp"
	annotationGitRevision        = AnnotationPrefix + "git-revision"
	annotationDevelopmentRelease = AnnotationPrefix + "development-release"
)

// Files holds the JSON Schemas: <name>.schema.json for documents, each complete in itself for the sake of editors, and
// output/<name>.schema.json for what commands print, which may refer to each other by file name, and
// stored/<name>.schema.json for what is kept in a cluster.
//
//go:embed *.schema.json output/*.schema.json stored/*.schema.json
var Files embed.FS

// Kinds returns the kinds of documents that have a JSON Schema, sorted.
func Kinds() []string {
	var kinds []string
	for _, d := range documents {
		kinds = append(kinds, d.kind)
	}
	slices.Sort(kinds)
	return kinds
}

// JSONSchema returns the JSON Schema of a kind of document, nil for a kind that [Kinds] does not list.
func JSONSchema(kind string) []byte {
	if _, ok := documentOf(kind); !ok {
		return nil
	}
	data, err := Files.ReadFile(schemaFile(kind))
	if err != nil {
		panic(fmt.Sprintf("schema: embedded file is missing: %v", err)) // the table and the embedded files are one binary
	}
	return data
}

// schemaFile is the name of the JSON Schema of a kind in [Files].
func schemaFile(kind string) string { return strings.ToLower(kind) + ".schema.json" }

// Outputs returns the names of the documents that commands print and that have a JSON Schema, sorted.
func Outputs() []string {
	names, err := fs.Glob(Files, "output/*.schema.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(path.Base(name), ".schema.json")
	}
	return names
}

// OutputSchema returns the JSON Schema of a document that a command prints, nil for a name that [Outputs] does not list.
func OutputSchema(name string) []byte {
	data, err := Files.ReadFile("output/" + name + ".schema.json")
	if err != nil {
		return nil
	}
	return data
}

// ValidateOutput checks a JSON document that a command printed against the schema of this name. It is for the tests of
// the commands: what they print is an interface.
func ValidateOutput(name string, data []byte) error {
	if OutputSchema(name) == nil {
		return fmt.Errorf("validate output: no schema is called %s", name)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("validate output: %w", err)
	}
	if err := mustCompile("output/" + name + ".schema.json").Validate(document); err != nil {
		return fmt.Errorf("validate output: %w", err)
	}
	return nil
}
