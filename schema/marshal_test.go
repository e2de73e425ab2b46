package schema_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
)

// ambiguous are strings that one or the other YAML reader takes for something else when they stand without quotes.
var ambiguous = []string{
	"", "1.0", "1", "-1", "+1", "010", "0o10", "0x1f", "0b1", "1_000", "1e3", "1.5e+3", ".5", "1.", "1:30", "190:20:30", "1:30.5",
	"yes", "No", "on", "OFF", "y", "n", "true", "~", "null", "NULL", ".inf", "-.Inf", ".nan", "<<", "=", "2026-01-01",
	"2026-01-01T00:00:00Z", "2026-1-1 10:00:00", "2001-12-14t21:59:43.10-05:00", "1.0.0", "1.0.0-rc.1", "# no comment", "a # b",
	"a: b", "- a", "&a", "*a", "!a", "%a", "@a", "`a", "'a'", "\"a\"", "[a]", "{a}", "a,b", "?", "? a", "|", ">", "---", "...",
	"line\nbreak", "tab\there", " leading", "trailing ", "äöü", "日本", "😀", "\x07bell", "nel\u0085", "ls\u2028", "\ufeffbom", "*", "\\", "\r",
}

func ambiguousSolution() *schema.Solution {
	s := &schema.Solution{
		APIVersion: schema.APIVersion,
		Kind:       schema.KindSolution,
		Metadata:   schema.Metadata{Name: "123", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       schema.SolutionSpec{Version: "1.0.0", Operator: &schema.Operator{Image: &schema.ImageName{Name: "on", Tag: "1.0"}}},
	}
	for _, text := range ambiguous {
		s.Metadata.Labels[text] = "key"
		s.Metadata.Annotations["of "+text] = text
	}
	return s
}

func TestMarshalQuotes(t *testing.T) {
	checkRoundTrip(t, parsers["solution"], ambiguousSolution())
	data, err := ambiguousSolution().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, findings, err := schema.ParseSolution("x.yaml", data); err != nil || len(findings) > 0 {
		t.Errorf("what was written has findings: %v, %v", findings, err)
	}
}

// TestMarshalEscapes: what turns the direction of a text is seen, and is read again as it was.
func TestMarshalEscapes(t *testing.T) {
	p := &schema.Solution{Metadata: schema.Metadata{Annotations: map[string]string{"x": "a\u202eb \U000e0041 c"}}}
	data, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "\u202e") || !strings.Contains(text, `a\U0000202Eb \U000E0041 c`) {
		t.Errorf("written is %s", text)
	}
}

// TestMarshalIsReadBySalt reads the output with PyYAML, as Salt does.
func TestMarshalIsReadBySalt(t *testing.T) {
	written := []parsed{ambiguousSolution()}
	for _, path := range glob(t, "valid/*.yaml") {
		value, _, err := parserOf(t, path)(path, read(t, path))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, value)
	}
	for _, value := range written {
		data, err := value.Marshal()
		if err != nil {
			continue // the older form is not written
		}
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(readBySalt(t, data), generic(t, want)); diff != "" {
			t.Errorf("PyYAML reads it otherwise (-got +want):\n%s", diff)
		}
	}
}

func generic(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSolutionOfBuild(t *testing.T) {
	const path = manifests + "valid/build-full.yaml"
	b, err := schema.ParseSolutionBuild(path, read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	var images []schema.ImageRef
	for _, image := range b.Spec.Images {
		images = append(images, b.Spec.ImageRef(image))
	}
	zone := time.FixedZone("UTC+2", 2*60*60)
	data, err := b.Solution(images, time.Date(2026, 1, 1, 2, 0, 0, 0, zone)).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/manifest.golden.yaml"
	if *update {
		if err := os.WriteFile(golden, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(data), string(read(t, golden))); diff != "" {
		t.Errorf("manifest.yaml (-got +want); run go test -update to accept it:\n%s", diff)
	}
	if _, findings, err := schema.ParseSolution("manifest.yaml", data); err != nil || len(findings) > 0 {
		t.Errorf("the manifest has findings: %v, %v", findings, err)
	}
}
