package powers_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

var update = flag.Bool("update", false, "write golden files again")

// acme is the Solution that the tests are about: its namespaces are acme-system and acme, its group is acme.example.com.
func acme() powers.Owner {
	return powers.Owner{Solution: "acme", Namespaces: []string{"acme", "acme-system"}, Groups: []string{"acme.example.com"}}
}

// read decodes the objects of a YAML stream.
func read(tb testing.TB, file string, data []byte) []powers.Object {
	tb.Helper()
	var objects []powers.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			return objects
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			tb.Fatalf("%s: %v\n%s", file, err, document)
		}
		if object != nil {
			objects = append(objects, powers.Object{File: file, Unstructured: &unstructured.Unstructured{Object: object}})
		}
	}
}

// TestRows judges one archive for each power, and beside it a harmless twin that has none.
func TestRows(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var changed bool
			for i, f := range archive.Files {
				kind, isObjects := strings.CutSuffix(f.Name, ".yaml")
				if !isObjects {
					continue
				}
				got := powers.Judge(acme(), read(t, f.Name, f.Data))
				if strings.HasPrefix(kind, "harmless") {
					if len(got) > 0 {
						t.Errorf("%s has powers:\n%s", f.Name, describe(got))
					}
					continue
				}
				if len(got) == 0 {
					t.Errorf("%s has no power", f.Name)
				}
				if want := &archive.Files[i+1]; string(want.Data) != describe(got) {
					if want.Data, changed = []byte(describe(got)), true; !*update {
						t.Errorf("%s has the powers\n%s", f.Name, want.Data)
					}
				}
			}
			if changed && *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestRowsAreComplete requires a row with each power, in a file that has a harmless twin. The claim of a group is not made by an object:
// TestGroupsCannotBeClaimed has it.
func TestRowsAreComplete(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	paired := map[schema.PowerName]bool{schema.PowerClaimsGroup: true}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "harmless") }) {
			t.Errorf("%s has no harmless twin", file)
			continue
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				for _, p := range powers.Judge(acme(), read(t, f.Name, f.Data)) {
					paired[p.Name] = true
				}
			}
		}
	}
	for _, name := range schema.PowerNames() {
		if !paired[name] {
			t.Errorf("no row has the power %s", name)
		}
	}
}

// describe writes powers down, one a line.
func describe(list []schema.Power) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s %s %s", p.Name, p.Reach, p.Need)
		if p.Field != "" {
			fmt.Fprintf(&b, " %s", p.Field)
		}
		fmt.Fprintf(&b, " %q\n", p.Effects)
	}
	for _, line := range powers.Summarize(list) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// The same objects in another order, or in a list, have the same powers.
func TestOrderDoesNotMatter(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var objects []powers.Object
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				objects = append(objects, read(t, "all.yaml", f.Data)...)
			}
		}
	}
	want := describe(powers.Judge(acme(), objects))
	slices.Reverse(objects)
	if got := describe(powers.Judge(acme(), objects)); got != want {
		t.Errorf("in reverse order:\n%s\nwant\n%s", got, want)
	}
	var items []any
	for _, o := range objects {
		items = append(items, o.Object)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{map[string]any{"apiVersion": "v1", "kind": "List", "items": items}}}
	if got := describe(powers.Judge(acme(), []powers.Object{{File: "all.yaml", Unstructured: &unstructured.Unstructured{Object: list}}})); got != want {
		t.Errorf("in a list:\n%s\nwant\n%s", got, want)
	}
}
