package powers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/solutionctl/solutionctl/kube/powers"
)

// TestOperators summarizes the powers of operators in the shape of public ones, each in at most twelve lines.
func TestOperators(t *testing.T) {
	files, err := filepath.Glob("testdata/operators/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 3 {
				t.Fatalf("want definitions, objects.yaml and want: %v", err)
			}
			definitions, objects, want := archive.Files[0], archive.Files[1], &archive.Files[2]
			owner := powers.Owner{Solution: "acme", Namespaces: []string{"acme-system"}}
			for name := range strings.FieldsSeq(string(definitions.Data)) {
				plural, group, _ := strings.Cut(name, ".")
				owner.Groups = append(owner.Groups, group)
				owner.Definitions = append(owner.Definitions, powers.Definition{Group: group, Plural: plural})
			}
			lines := powers.Summarize(powers.Judge(owner, read(t, objects.Name, objects.Data)))
			if len(lines) == 0 || len(lines) > 12 {
				t.Errorf("%d lines, want 1 to 12", len(lines))
			}
			got := strings.Join(lines, "\n") + "\n"
			if got == string(want.Data) {
				return
			}
			if !*update {
				t.Errorf("got\n%swant\n%s", got, want.Data)
				return
			}
			want.Data = []byte(got)
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}
