package schema_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var update = flag.Bool("update", false, "write the golden files")

const manifests = "../testdata/manifests/"

// parsed is any document that writes itself.
type parsed interface{ Marshal() ([]byte, error) }

// parsers reads the documents of testdata/manifests by the first word of their names.
var parsers = map[string]func(file string, data []byte) (parsed, []report.Finding, error){
	"solution": func(file string, data []byte) (parsed, []report.Finding, error) {
		return schema.ParseSolution(file, data)
	},
	"build": func(file string, data []byte) (parsed, []report.Finding, error) {
		value, err := schema.ParseSolutionBuild(file, data)
		return value, nil, err
	},
	"configuration": func(file string, data []byte) (parsed, []report.Finding, error) {
		return schema.ParseSolutionsConfiguration(file, data)
	},
	"loader": func(file string, data []byte) (parsed, []report.Finding, error) {
		value, err := schema.ParseLoaderConfiguration(file, data)
		return value, nil, err
	},
	"environment": func(file string, data []byte) (parsed, []report.Finding, error) {
		value, err := schema.ParseEnvironmentConfiguration(file, data)
		return value, nil, err
	},
	"operator": func(file string, data []byte) (parsed, []report.Finding, error) {
		value, err := schema.ParseOperatorConfig(file, data)
		return value, nil, err
	},
}

func parserOf(tb testing.TB, path string) func(string, []byte) (parsed, []report.Finding, error) {
	tb.Helper()
	name, _, _ := strings.Cut(filepath.Base(path), "-")
	parse, ok := parsers[name]
	if !ok {
		tb.Fatalf("%s: the name does not start with a kind", path)
	}
	return parse
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	paths, err := filepath.Glob(manifests + pattern)
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no files match %s: %v", pattern, err)
	}
	return paths
}

// compareGolden compares findings with the golden file beside a document.
func compareGolden(t *testing.T, path string, findings []report.Finding) {
	t.Helper()
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s [%s] %s\n", f.Severity, f.Rule, f)
		if f.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", f.Hint)
		}
	}
	golden := strings.TrimSuffix(path, ".yaml") + ".golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(b.String(), string(read(t, golden))); diff != "" {
		t.Errorf("findings differ from %s (-got +want); run go test -update to accept them:\n%s", golden, diff)
	}
}

func TestValidDocuments(t *testing.T) {
	for _, path := range glob(t, "valid/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			value, findings, err := parserOf(t, path)(filepath.Base(path), read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, path, findings)
			if c, ok := value.(*schema.SolutionsConfiguration); ok && c.IsOlder() {
				if data, err := c.Marshal(); err == nil {
					t.Errorf("the older form was written: %s", data)
				}
				return
			}
			checkRoundTrip(t, parserOf(t, path), value)
		})
	}
}

// checkRoundTrip makes sure that a document that is written and read again is the same value and the same bytes.
func checkRoundTrip(t *testing.T, parse func(string, []byte) (parsed, []report.Finding, error), value parsed) {
	t.Helper()
	first, err := value.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := parse("again.yaml", first)
	if err != nil {
		t.Fatalf("what was written is refused: %v\n%s", err, first)
	}
	if diff := cmp.Diff(again, value, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read again (-got +want):\n%s\n%s", diff, first)
	}
	second, err := again.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(second), string(first)); diff != "" {
		t.Errorf("written again (-got +want):\n%s", diff)
	}
}

func TestInvalidDocuments(t *testing.T) {
	for _, path := range glob(t, "invalid/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			value, _, err := parserOf(t, path)(filepath.Base(path), read(t, path))
			if err == nil {
				t.Fatalf("no error, got %+v", value)
			}
			if code := report.CodeOf(err); code != report.Invalid {
				t.Errorf("code %q, want %q", code, report.Invalid)
			}
			if len(schema.Problems(err)) == 0 {
				t.Fatalf("Problems(%v) is empty", err)
			}
			compareGolden(t, path, schema.Problems(err))
		})
	}
}

// TestTooManyImages has one image more than an archive can list beside its payload. The project is refused before any image is read.
func TestTooManyImages(t *testing.T) {
	for _, test := range []struct {
		images int
		want   string
	}{{4999, ""}, {5000, "has 5000 items, more than 4999"}} {
		var b strings.Builder
		b.WriteString("apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: a}\nspec:\n  version: 1.0.0\n  images:\n")
		for i := range test.images {
			fmt.Fprintf(&b, "    - {name: image-%d, source: \"oci:images:image-%d\"}\n", i, i)
		}
		got := ""
		if _, err := schema.ParseSolutionBuild("solution.yaml", []byte(b.String())); err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%d images: got %q, want %q", test.images, got, test.want)
		}
	}
}
