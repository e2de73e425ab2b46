package build_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

// provenanceOf plans a project and returns how its archive would be made.
func provenanceOf(t *testing.T, dir string, o build.Overrides) *schema.ProvenanceStatement {
	t.Helper()
	project, err := build.Load(dir, o)
	check(t, err)
	defer project.Close() //nolint:errcheck // read only
	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	defer resolver.Close() //nolint:errcheck // read only
	plan, err := build.NewPlan(t.Context(), project, resolver, build.Options{})
	check(t, err)
	made, err := plan.Provenance(project, o, "1.2.3")
	check(t, err)
	return made
}

// TestProvenance lists images, files and options. The same project in another directory has the same statement, with the same images from elsewhere.
func TestProvenance(t *testing.T) {
	dir := newProject(t, 4096)
	made := provenanceOf(t, dir, build.Overrides{})
	names := map[string]schema.ResourceDescriptor{}
	for _, d := range made.Predicate.BuildDefinition.ResolvedDependencies {
		if names[d.Name].Name != "" || len(d.Digest["sha256"]) != 64 {
			t.Errorf("%+v is listed twice, or has no digest", d)
		}
		names[d.Name] = d
	}
	for _, name := range []string{"image demo-operator:1.0.0", "image demo-ui:1.0.0", "file solution.yaml", "file operator/deploy/role.yaml", "file charts/demo-1.0.0.tgz"} {
		if names[name].Name == "" {
			t.Errorf("%s is not listed", name)
		}
	}
	if _, hidden := names["file operator/deploy/.env"]; hidden {
		t.Error("a file is listed that the archive does not have")
	}
	if got, want := encoded(t, made), encoded(t, provenanceOf(t, dir, build.Overrides{})); got != want {
		t.Errorf("two statements of one project differ:\n%s\n%s", got, want)
	}
	elsewhere := filepath.Join(dir, "images")
	with := provenanceOf(t, dir, build.Overrides{
		Version: "1.0.0", Images: []string{"demo-ui=oci:" + elsewhere + ":ui"},
		Set: []string{"spec.annotations.origin=https://user:secret@git.example/demo"},
	})
	text := encoded(t, with)
	const source, whole = "spec.images[0].source", "spec.images[1]"
	set := provenanceOf(t, dir, build.Overrides{Set: []string{source + "=oci:" + elsewhere + ":operator", whole + "={name: demo-ui, source: 'oci:" + elsewhere + ":ui'}"}})
	text += encoded(t, set)
	for _, hidden := range []string{dir, "secret"} {
		if strings.Contains(text, hidden) {
			t.Errorf("the statement has %q: %s", hidden, text)
		}
	}
	for _, want := range []string{`"images":["demo-ui=oci"]`, `"version":"1.0.0"`, `"set":["spec.annotations.origin=https://git.example/demo"]`, `"` + source + `=oci","` + whole + `=…"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the statement lacks %s: %s", want, text)
		}
	}
}

func encoded(t *testing.T, s *schema.ProvenanceStatement) string {
	t.Helper()
	data, err := json.Marshal(s)
	check(t, err)
	return string(data)
}
