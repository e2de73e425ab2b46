package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestFactsAreBounded summarizes a provenance and a list of packages that are as large as they can be: the rest is counted.
func TestFactsAreBounded(t *testing.T) {
	s, list := &schema.ProvenanceStatement{}, &schema.PackageList{}
	long := strings.Repeat("ü", 100_000)
	s.Predicate.RunDetails.Builder = schema.ProvenanceBuilderInfo{ID: long, Version: map[string]string{}}
	s.Predicate.BuildDefinition.ExternalParameters = map[string]any{}
	for i := range 1000 {
		name := fmt.Sprint(i)
		s.Predicate.RunDetails.Builder.Version[name] = long
		s.Predicate.BuildDefinition.ExternalParameters[name] = long
		s.Predicate.BuildDefinition.ResolvedDependencies = append(s.Predicate.BuildDefinition.ResolvedDependencies,
			schema.ResourceDescriptor{Name: name, URI: long, Digest: map[string]string{"sha256": long}}, schema.ResourceDescriptor{Name: "file " + name})
		list.Images = append(list.Images, schema.ImagePackages{Image: name, Packages: make([]schema.Package, 3)})
	}
	f := &schema.ArchiveFacts{Provenance: s.Facts(), Packages: list.Facts()}
	if f.Provenance.MoreMaterials != 800 || f.Provenance.Files != 1000 || len(f.Provenance.Options) != 20 {
		t.Errorf("%d more, %d files, %d options", f.Provenance.MoreMaterials, f.Provenance.Files, len(f.Provenance.Options))
	}
	if len(f.Packages.Packages) != 500 || f.Packages.More != 2500 || len(f.Packages.Images) != 100 || f.Packages.MoreImages != 900 {
		t.Errorf("%d packages, %d more", len(f.Packages.Packages), f.Packages.More)
	}
	if data, err := json.Marshal(f); err != nil || len(data) > 1<<20 {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}
