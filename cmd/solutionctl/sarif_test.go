package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/schema"
)

// lintOutput lints a project with findings of every kind: with and without a position, and a suppressed one.
func lintOutput(t *testing.T, format string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a project")
	for name, text := range map[string]string{
		"solution.yaml": "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: demo}\nspec:\n  version: 1.0.0\n" +
			"  images:\n    - {name: demo-operator, source: \"oci:images:operator\"}\n",
		"operator/deploy/operator.yaml": "kind: Deployment\n",
		"ui/ui.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: ui}\nspec:\n  colour: blue\n" +
			"  size: large # solutionctl:ignore SOL305 only a test\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	getenv := func(name string) string { return map[string]string{"SOLUTIONCTL_CONFIG": os.DevNull}[name] }
	a := &app{cli.New(strings.NewReader(""), &out, &errs, getenv, func() time.Time { return time.Unix(0, 0) }, "1.2.3")}
	if status := a.Execute(t.Context(), newRootCommand(a), []string{"lint", dir, "-o", format}); status != 3 {
		t.Fatalf("exit status %d: %s", status, &errs)
	}
	return out.Bytes()
}

// TestSARIF validates the output against the schema that OASIS publishes.
func TestSARIF(t *testing.T) {
	data := lintOutput(t, "sarif")
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiled, err := compiler.Compile("../../testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(document); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	rules, positions, suppressed := map[string]bool{}, 0, 0
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		rules[rule.ID] = true
	}
	for _, result := range log.Runs[0].Results {
		if !rules[result.RuleID] {
			t.Errorf("the rule %s is not described", result.RuleID)
		}
		if place := result.Locations[0].Physical; place.Region != nil {
			positions++
			if !strings.Contains(place.Artifact.URI, "a%20project/") {
				t.Errorf("%q is not a URI of the project", place.Artifact.URI)
			}
		}
		suppressed += len(result.Suppressions)
	}
	if positions == 0 || suppressed != 1 {
		t.Errorf("%d results have a position and %d are suppressed:\n%s", positions, suppressed, data)
	}
}

// TestLintJSON holds the output to its schema.
func TestLintJSON(t *testing.T) {
	if err := schema.ValidateOutput("lint", lintOutput(t, "json")); err != nil {
		t.Error(err)
	}
}
