package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
)

// TestCorpus renders the charts in testdata: "want/…" has the expected texts of templates, "error" a part of the
// expected error, "given.yaml" values. Helm wrote the expectations: deployer/e2e/helm renders the same charts with it.
func TestCorpus(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, given, want, refusal := read(t, archive)
			got, err := render(t, files, given)
			switch {
			case refusal != "":
				if err == nil || !strings.Contains(err.Error(), refusal) {
					t.Errorf("err = %v, want %q", err, refusal)
				}
			case err != nil:
				t.Fatal(err)
			default:
				compare(t, got, want)
			}
		})
	}
}

// read takes a test apart.
func read(t *testing.T, archive *txtar.Archive) (files []engine.File, given map[string]any, want map[string]string, refusal string) {
	t.Helper()
	want = map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/"); ok {
			want[name] = string(f.Data)
			continue
		}
		switch f.Name {
		case "given.yaml":
			if err := yaml.Unmarshal(f.Data, &given); err != nil {
				t.Fatal(err)
			}
		case "error":
			refusal = strings.TrimSpace(string(f.Data))
		default:
			files = append(files, engine.File{Name: unpacked(f.Name), Data: []byte(strings.TrimPrefix(string(f.Data), "\ufeff"))})
		}
	}
	return files, given, want, refusal
}

// unpacked is where a file lies after [engine.Unpack]: packages are written as x.tgz/DIRECTORY/… in tests.
func unpacked(name string) string {
	_, name, _ = strings.Cut(name, "/")
	for {
		before, after, ok := strings.Cut(name, ".tgz/")
		if !ok {
			return name
		}
		_, after, _ = strings.Cut(after, "/")
		name = before + "/" + after
	}
}

func render(t *testing.T, files []engine.File, given map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := engine.Load(files)
	if err != nil {
		return nil, err
	}
	enabled, err := c.Enable(given)
	if err != nil {
		return nil, err
	}
	values, err := enabled.Complete(given)
	if err != nil {
		return nil, err
	}
	capabilities, err := engine.NewCapabilities("1.33.2-eks-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return enabled.Render(t.Context(), engine.Input{
		Values: values, Capabilities: capabilities, Release: engine.Release{Name: "rel", Namespace: "ns", Revision: 1},
	})
}

// compare takes a text that does not end with a line for one that does: archives of tests know no other.
func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range got {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if text != want[name] {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want[name])
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
