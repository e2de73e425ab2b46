package schema_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// fuzzDocument feeds a parser with the examples and what comes of them. What it accepts it must write and read again;
// what it refuses it must refuse as invalid, with at least one problem.
func fuzzDocument(f *testing.F, kind string) {
	f.Helper()
	for _, pattern := range []string{"valid/", "invalid/"} {
		for _, path := range glob(f, pattern+kind+"-*.yaml") {
			f.Add(read(f, path))
		}
	}
	parse := parsers[kind]
	f.Fuzz(func(t *testing.T, data []byte) {
		value, findings, err := parse("x.yaml", data)
		if err != nil {
			if report.CodeOf(err) != report.Invalid || len(schema.Problems(err)) == 0 {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		if report.HasErrors(findings) {
			t.Fatalf("accepted with errors: %v", findings)
		}
		if c, ok := value.(*schema.SolutionsConfiguration); ok && c.IsOlder() {
			return
		}
		checkRoundTrip(t, parse, value)
	})
}

func FuzzParseSolution(f *testing.F)               { fuzzDocument(f, "solution") }
func FuzzParseSolutionBuild(f *testing.F)          { fuzzDocument(f, "build") }
func FuzzParseSolutionsConfiguration(f *testing.F) { fuzzDocument(f, "configuration") }
func FuzzParseOperatorConfig(f *testing.F)         { fuzzDocument(f, "operator") }

// FuzzParseYAML looks every value up again by its path.
func FuzzParseYAML(f *testing.F) {
	for _, path := range glob(f, "*/*.yaml") {
		f.Add(read(f, path))
	}
	f.Add([]byte("a: &a {b: 1}\nc: {<<: *a, d: [*a]}\n---\n- {<<: [{x: y}]}\n"))
	f.Add(laughs())
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := schema.ParseYAML("x.yaml", data)
		if err != nil && len(schema.Problems(err)) == 0 {
			t.Fatalf("not a refusal: %v", err)
		}
		for _, d := range documents {
			for _, kind := range schema.Kinds() {
				schema.Validate(kind, d)
			}
			if object, ok := d.Value().(map[string]any); ok {
				for key := range object {
					if line, column := d.LookupKey(key); line < 1 || column < 1 {
						t.Fatalf("key %q is at %d:%d", key, line, column)
					}
				}
			}
		}
	})
}

func FuzzParseImageRef(f *testing.F) {
	for _, text := range imageTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := schema.ParseImageRef(text)
		if err == nil && (ref.String() != text || filepath.Base(ref.Name) != ref.Name || filepath.Base(ref.Tag) != ref.Tag) {
			t.Errorf("%q was read as %+v", text, ref)
		}
	})
}

func FuzzParseSetting(f *testing.F) {
	for _, text := range []string{"spec.version=1.0.0", "spec.images[1].tag=2", `a\.b.c=`, "a[0][1]=x", "]=", `\=`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		setting, err := schema.ParseSetting("--set", text)
		if err != nil {
			if report.CodeOf(err) != report.Usage {
				t.Errorf("code of %v", err)
			}
			return
		}
		var path []string
		for _, step := range setting.Path {
			path = append(path, strings.NewReplacer(`\`, `\\`, ".", `\.`, "[", `\[`, "]", `\]`).Replace(step))
		}
		again, err := schema.ParseSetting("--set", strings.Join(path, ".")+"="+setting.Value)
		if diff := cmp.Diff(again, setting); err != nil || diff != "" {
			t.Errorf("%q is another setting when it is written: %v\n%s", text, err, diff)
		}
		if _, err := schema.ParseSolutionBuild("x.yaml", []byte(build), setting); report.CodeOf(err) == report.Failure {
			t.Errorf("no code: %v", err)
		}
	})
}
