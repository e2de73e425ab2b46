package chart_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// hazards are rendered templates that parsers of YAML cut in other ways than Helm.
func hazards() map[string]string {
	return map[string]string{
		"empty":                       "",
		"only space":                  " \n\t\n",
		"only separators":             "---\n---\n\n--- \n",
		"comment behind it":           "--- # first\nkind: A\n--- # second\nkind: B\n",
		"comment without a space":     "---# first\nkind: A\n---# second\nkind: B\n",
		"text behind it":              "---kind: A\n---apiVersion: v1\nkind: B\n",
		"text behind spaces":          "--- kind: A\n--- {kind: B}\n",
		"carriage returns":            "---\r\nkind: A\r\n---\r\nkind: B\r\n",
		"within a block scalar":       "kind: A\ndata:\n  a: |\n    one\n    ---\n    two\n  b: |-\n    ----- BEGIN -----\n---\nkind: B\n",
		"tabs behind it":              "---\t\nkind: A\n---\t# x\nkind: B\n",
		"comments only":               "# one\n---\n# two\n---\nkind: A\n---\n# three\n",
		"indented":                    "\n  \n---\n\n\nkind: A\n\n ---\n",
		"space before the first line": "\n\n  kind: A\n",
		"without a last line break":   "kind: A\n---",
		"end of a document":           "kind: A\n...\n---\nkind: B\n",
	}
}

func ExampleSplit() {
	for _, d := range chart.Split("# Source\n---# first\nkind: A\n---\n\nkind: B\n") {
		fmt.Println(d)
	}
	// Output:
	// 1 "# Source\n"
	// 2 "# first\nkind: A\n"
	// 6 "kind: B\n"
}

func TestSplitIsHelms(t *testing.T) {
	for name, text := range hazards() {
		t.Run(name, func(t *testing.T) { checkSplit(t, text) })
	}
}

func FuzzSplit(f *testing.F) {
	for _, text := range hazards() {
		f.Add(text)
	}
	f.Fuzz(checkSplit)
}

var separator = regexp.MustCompile(`(?m)^---[ \t]*`) // Helm's

// checkSplit compares with Helm's result, and checks that every document begins at its reported line.
func checkSplit(t *testing.T, text string) {
	t.Helper()
	var want []string
	for _, piece := range separator.Split(strings.TrimLeftFunc(text, unicode.IsSpace), -1) {
		if piece = strings.TrimLeftFunc(piece, unicode.IsSpace); piece != "" {
			want = append(want, piece)
		}
	}
	var got []string
	lines := strings.SplitAfter(text, "\n")
	for _, d := range chart.Split(text) {
		got = append(got, d.Text)
		first, _, _ := strings.Cut(d.Text, "\n")
		if d.Line < 1 || d.Line > len(lines) || !strings.Contains(lines[d.Line-1], first) {
			t.Errorf("%q is not at line %d", d.Text, d.Line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The documents of rendered templates, including hooks, are the same as in Helm.
func TestDocumentsAreHelms(t *testing.T) {
	certificate := `{{- if .Values.enabled -}}
---
{{- if .Values.commented }}
# The comment of a template ends up behind the separator.
{{- end }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: a}
---
{{- with .Values.name -}}
# another
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ . }}
data:
  pem: |
    -----BEGIN CERTIFICATE-----
    ---
    -----END CERTIFICATE-----
{{- end }}
--- # hooks
apiVersion: batch/v1
kind: Job
metadata: {name: known, annotations: {helm.sh/hook: "pre-install, test-success"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: unknown, annotations: {helm.sh/hook: crd-install}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: half-known, annotations: {helm.sh/hook: "post-install,post-party"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: empty, annotations: {helm.sh/hook: ""}}
{{- end }}
`
	files := web()
	files["web/templates/certificate.yaml"] = certificate
	files["web/templates/OTHER-NOTES.txt"] = "no YAML: [\n"
	r := render(t, files, chart.Options{Values: map[string]any{"enabled": true, "commented": true, "name": "b"}})
	var got []string
	for _, line := range summary(r) {
		if rest, ok := strings.CutPrefix(line, "web/templates/certificate.yaml:"); ok {
			got = append(got, rest)
		}
	}
	if want := []string{"2 ServiceAccount a", "6 ConfigMap b", "16 Job known"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
