package schema

import (
	"maps"
	"slices"
	"strings"
)

// Types of the statement about how an archive was made: in-toto's statement with SLSA's predicate.
const (
	StatementType    = "https://in-toto.io/Statement/v1"
	ProvenanceType   = "https://slsa.dev/provenance/v1"
	ArchiveBuildType = "https://solutionctl.io/build/v1"            // what the parameters mean
	ArchiveBuilderID = "https://solutionctl.io/builder/solutionctl" // this program, on any machine
)

// ProvenanceStatement is an in-toto statement of how archives were made, in the form of SLSA 1.0.
type ProvenanceStatement struct {
	Type          string               `json:"_type"`
	Subject       []ResourceDescriptor `json:"subject"`
	PredicateType string               `json:"predicateType"`
	Predicate     Provenance           `json:"predicate"`
}

// Provenance is the predicate: what was made of which inputs, and by which program.
type Provenance struct {
	BuildDefinition ProvenanceDefinition `json:"buildDefinition"`
	RunDetails      ProvenanceRun        `json:"runDetails"`
}

// ProvenanceDefinition has everything that decides about the result.
type ProvenanceDefinition struct {
	BuildType string `json:"buildType"`
	// ExternalParameters hold the options of the user.
	ExternalParameters map[string]any `json:"externalParameters"`
	// InternalParameters follow from the inputs.
	InternalParameters map[string]any `json:"internalParameters,omitempty"`
	// ResolvedDependencies are the inputs: images, and files of the project.
	ResolvedDependencies []ResourceDescriptor `json:"resolvedDependencies,omitempty"`
}

// ProvenanceRun names the program that made the archive.
type ProvenanceRun struct {
	Builder ProvenanceBuilderInfo `json:"builder"`
}

// ProvenanceBuilderInfo is the program, and its version by its name.
type ProvenanceBuilderInfo struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version,omitempty"`
}

// ResourceDescriptor is in-toto's description of a file or an image.
type ResourceDescriptor struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// DigestText shows the digests as "sha256:…"; most inputs have one.
func (d *ResourceDescriptor) DigestText() string {
	var list []string
	for _, algorithm := range slices.Sorted(maps.Keys(d.Digest)) {
		list = append(list, algorithm+":"+d.Digest[algorithm])
	}
	return strings.Join(list, " ")
}
