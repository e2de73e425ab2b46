package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func ExampleParseYAML() {
	documents, err := schema.ParseYAML("role.yaml", []byte(`
kind: Role
rules:
- apiGroups: [""]
  resources: [pods, secrets]
---
kind: ClusterRole
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	line, column := documents[0].Lookup("rules", "0", "resources", "1")
	fmt.Println(len(documents), line, column)
	data, err := documents[1].JSON()
	fmt.Println(documents[1].File(), string(data), err)
	// Output:
	// 2 5 21
	// role.yaml {"kind":"ClusterRole"} <nil>
}

func ExampleValidate() {
	documents, _ := schema.ParseYAML("operator.yaml", []byte("{apiVersion: solutions.metalk8s.scality.com/v1alpha1, kind: OperatorConfig}"))
	for _, finding := range schema.Validate(schema.KindOperatorConfig, documents[0]) {
		fmt.Println(finding.Rule, finding)
	}
	// Output: missing-field operator.yaml:1:1: repositories: is missing
}

// TestParseKubernetesAt reads the end of a file: all positions refer to the file.
func TestParseKubernetesAt(t *testing.T) {
	documents, err := schema.ParseKubernetesAt("x.yaml", 10, []byte("a: {b: 1}\n---\nc: [1,\n  2]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		document int
		path     []string
		line     int
	}{{0, nil, 10}, {0, []string{"a", "b"}, 10}, {1, nil, 12}, {1, []string{"c", "1"}, 13}} {
		if line, _ := documents[test.document].Lookup(test.path...); line != test.line {
			t.Errorf("%d, %q: line %d, want %d", test.document, test.path, line, test.line)
		}
		if line, _ := documents[test.document].LookupKey(test.path...); line > test.line || line < 10 {
			t.Errorf("key of %d, %q: line %d", test.document, test.path, line)
		}
	}
	for text, want := range map[string]string{
		"\na: b: c":                      "x.yaml:11: not YAML",
		"a: 1\nb: 1\na: 2":               "x.yaml:12:1: key \"a\" stands on line 10 already",
		"a: \xff":                        "x.yaml:10: the file is not UTF-8",
		strings.Repeat("- a\n", 150_001): "x.yaml:150010: the file has more than",
	} {
		if _, err := schema.ParseKubernetesAt("x.yaml", 10, []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: err = %v, want %s", text, err, want)
		}
	}
}

func TestParseYAMLValues(t *testing.T) {
	documents, err := schema.ParseYAML("x.yaml", []byte("\ufeffa: 1\r\nb: [true, ~, 1.5, x, 2026-01-01, 0x10, \"1\"]\r\nc: |\r\n  one\r\n  two\r\n1: yes\r\n"+
		"d: &d {e: 1, f: 2}\r\ng: *d\r\nh: {<<: *d, e: 3}\r\ni: {<<: [{e: 4}, *d]}\r\n---\r\n---\r\n- x\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, d := range documents {
		got = append(got, d.Value())
	}
	want := []any{
		map[string]any{
			"a": 1, "b": []any{true, nil, 1.5, "x", "2026-01-01", 16, "1"}, "c": "one\ntwo\n", "1": "yes",
			"d": map[string]any{"e": 1, "f": 2}, "g": map[string]any{"e": 1, "f": 2},
			"h": map[string]any{"e": 3, "f": 2}, "i": map[string]any{"e": 4, "f": 2},
		},
		nil,
		[]any{"x"},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("values (-got +want):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	documents, err := schema.ParseYAML("x.yaml", []byte("a: &a\n  b: [1, {c: d}]\ne: *a\nf:\n  <<: *a\n  g: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, value, key string }{
		{"", "1:1", "1:1"},
		{"a b 1 c", "2:14", "2:11"},
		{"a b 1", "2:10", "2:10"},
		{"e b 0", "2:7", "2:7"},
		{"f b", "2:6", "2:3"},
		{"f g", "6:6", "6:3"},
		{"a x y", "1:4", "1:4"},
		{"a b 7", "2:6", "2:6"},
		{"a x", "1:4", "1:4"},
	} {
		path := strings.Fields(test.path)
		line, column := documents[0].Lookup(path...)
		if got := fmt.Sprintf("%d:%d", line, column); got != test.value {
			t.Errorf("Lookup(%s) = %s, want %s", test.path, got, test.value)
		}
		line, column = documents[0].LookupKey(path...)
		if got := fmt.Sprintf("%d:%d", line, column); got != test.key {
			t.Errorf("LookupKey(%s) = %s, want %s", test.path, got, test.key)
		}
	}
}

// laughs is the YAML form of an exponential entity expansion: each level repeats the level before it nine times.
func laughs() []byte {
	var b bytes.Buffer
	b.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	return b.Bytes()
}

func TestBombs(t *testing.T) {
	manifest := read(t, manifests+"valid/solution-minimal.yaml")
	for _, test := range []struct {
		name string
		data []byte
		rule string
	}{
		{"aliases of aliases", laughs(), "yaml-size"},
		{"alias of itself", []byte("a: &a [*a]"), "yaml-depth"},
		{"merge of itself", []byte("a: &a\n  <<: *a\n"), "yaml-depth"},
		{"five mebibytes", append(bytes.Clone(manifest), bytes.Repeat([]byte("# filler\n"), 5<<20/9)...), "yaml-size"},
		{"many values", append([]byte("a: ["), append(bytes.Repeat([]byte("1,"), 2<<20-8), ']')...), "yaml-size"},
		{"aliases in many documents", bytes.Repeat([]byte("---\na: &a ["+strings.Repeat("1, ", 999)+"]\nb: ["+strings.Repeat("*a, ", 300)+"]\n"), 3), "yaml-size"},
		{"aliases of long text", []byte("a: &a " + strings.Repeat("a", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 16) + "]\n"), "yaml-size"},
		{"aliases of long keys", []byte("a: &a {? " + strings.Repeat("a", 1<<20) + "}\nb: [" + strings.Repeat("*a, ", 16) + "]\n"), "yaml-size"},
		{"deep flow", []byte(strings.Repeat("[", 65) + strings.Repeat("]", 65)), "yaml-depth"},
		{"very deep flow", bytes.Repeat([]byte("["), 100_000), "yaml-syntax"},
		{"very deep mapping", bytes.Repeat([]byte("{a: "), 70_000), "yaml-syntax"},
		{"very deep block", bytes.Repeat([]byte("- "), 100_000), "yaml-syntax"},
		{"duplicate keys", []byte("a: 1\nb: 1\n\"a\": 1\n"), "yaml-duplicate-key"},
		{"duplicate keys deep inside", []byte("a: [{b: {c: 1, c: 1}}]\n"), "yaml-duplicate-key"},
		{"Latin-1", []byte("a: \xe4\n"), "yaml-encoding"},
		{"UTF-16", []byte("\xff\xfea\x00:\x00 \x001\x00"), "yaml-encoding"},
		{"a NUL byte", []byte("a: \x00\n"), "yaml-syntax"},
		{"a list as key", []byte("[a]: 1\n"), "yaml-key"},
		{"not a number", []byte("a: .nan\n"), "yaml-value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseYAML("bomb.yaml", test.data)
			problems := schema.Problems(err)
			if len(problems) != 1 || problems[0].Rule != test.rule {
				t.Fatalf("ParseYAML: got %v, want one problem of %s", err, test.rule)
			}
			for name, parse := range parsers {
				if len(test.data) > 1<<20 {
					continue // the parsers read YAML in the same way
				}
				if value, _, err := parse("bomb.yaml", test.data); err == nil || report.CodeOf(err) != report.Invalid {
					t.Errorf("%s: got %v, %v", name, value, err)
				}
			}
		})
	}
}

// hostile fills 4 MiB with what YAML libraries are slow at.
func hostile() map[string][]byte {
	fill := func(before, unit string) []byte {
		return append([]byte(before), bytes.Repeat([]byte(unit), (schema.MaxSize-len(before))/len(unit))...)
	}
	return map[string][]byte{
		"one key again":             fill("", "a:\n"),
		"complex keys":              fill("", "?\n"),
		"keys without text":         fill("", ":\n"),
		"items":                     fill("", "-\n"),
		"items in one line":         fill("", strings.Repeat("- ", 60)+"\n"),
		"items after Unicode's NEL": fill("", "-\u0085"),
		"items with comments":       fill("", "- a\n#\n\n"),
		"documents":                 fill("", "---\n"),
		"documents with an end":     fill("", "a\n...\n"),
		"a deep flow":               fill(strings.Repeat("[", 9000), "a,"),
		"numbers":                   fill("[", "1.5,"),
		"quoted pairs":              fill("{", "\"a\":1,"),
		"empty sequences":           fill("[", "[],"),
		"empty mappings":            fill("[", "{},"),
		"comments":                  fill("", "#\n"),
		"comments after values":     fill("", "- a #\n"),
	}
}

// TestManyMarks makes sure that what costs too much is refused before the YAML library sees it: none of the shapes is
// refused for another reason, as the library would, and each names the line.
func TestManyMarks(t *testing.T) {
	for name, data := range hostile() {
		_, err := schema.ParseYAML("x.yaml", data)
		problems := schema.Problems(err)
		if len(problems) != 1 || problems[0].Rule != "yaml-size" || problems[0].Line == 0 || problems[0].Hint == "" {
			t.Errorf("%s: got %v, want yaml-size with a line and a hint", name, err)
		}
	}
	for documents, refused := range map[int]bool{10_000: false, 25_000: true} {
		data := []byte(strings.Repeat("---\nkind: A\n", documents))
		if _, err := schema.ParseKubernetes("x.yaml", data); (err != nil) != refused {
			t.Errorf("%d documents: %v", documents, err)
		}
	}
	text := "a: |\n" + strings.Repeat("  {\"name\":\"a value as people write them\",\"on\":true}\n", 30_000)
	if _, err := schema.ParseYAML("x.yaml", []byte(text)); err != nil {
		t.Errorf("%d bytes of JSON in a text are refused: %v", len(text), err)
	}
}

func TestDepthLimit(t *testing.T) {
	deepest := strings.Repeat("[", schema.MaxDepth) + strings.Repeat("]", schema.MaxDepth)
	if _, err := schema.ParseYAML("x.yaml", []byte(deepest)); err != nil {
		t.Errorf("%d levels are refused: %v", schema.MaxDepth, err)
	}
}

// TestManyProblems makes sure that the first twenty problems come out and that the others are counted, not lost.
func TestManyProblems(t *testing.T) {
	data := []byte("apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: OperatorConfig\nrepositories:\n")
	for i := range 25 {
		data = fmt.Appendf(data, "  v%d: []\n", i)
	}
	_, err := schema.ParseOperatorConfig("operator.yaml", data)
	if got := len(schema.Problems(err)); got != 20 {
		t.Errorf("%d problems, want 20", got)
	}
	if !strings.HasSuffix(err.Error(), "\nand 30 more problems") {
		t.Errorf("the others are not counted: %v", err)
	}
	if schema.Problems(nil) != nil || schema.Problems(report.Errorf(report.Invalid, "x")) != nil {
		t.Error("problems without a refused document")
	}
}

// TestTolerance covers what editors on other systems leave in a file.
func TestTolerance(t *testing.T) {
	for _, path := range glob(t, "valid/*.yaml") {
		data := read(t, path)
		want, _, err := parserOf(t, path)("x.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		windows := append([]byte("\ufeff"), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))...)
		got, _, err := parserOf(t, path)("x.yaml", windows)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: a BOM and CRLF change the value (-got +want):\n%s", path, diff)
		}
	}
}
