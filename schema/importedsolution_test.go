package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// bySalt is a list as Salt's tojson writes it: keys sorted, a space behind separators, and the merged manifest.
const bySalt = `[{"active": true, "archive": "/archives/example-solution-1.0.0.iso", "id": "example-solution-1.0.0", ` +
	`"manifest": {"annotations": {"solutions.metalk8s.scality.com/display-name": "Example Solution"}, ` +
	`"apiVersion": "solutions.metalk8s.scality.com/v1alpha1", "kind": "Solution", "metadata": {"name": "example-solution"}, ` +
	`"spec": {"customApiGroups": [], "images": ["example-solution-operator:1.0.0"], ` +
	`"operator": {"image": {"name": "example-solution-operator", "tag": "1.0.0"}}, ` +
	`"ui": {"image": {"name": "example-solution-ui", "tag": "1.0.0"}}, "version": "1.0.0"}}, ` +
	`"mountpoint": "/srv/scality/example-solution-1.0.0", "name": "Example Solution", "version": "1.0.0"}, ` +
	`{"active": false, "archive": "/archives/b.iso", "id": "example-solution-1.1.0", "mountpoint": "/srv/scality/example-solution-1.1.0", ` +
	`"name": "Example Solution", "version": "1.1.0"}]`

func TestImportedSolutionsOfSalt(t *testing.T) {
	list, err := schema.ParseImportedSolutions(bySalt)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || !list[0].Active || list[1].Active {
		t.Fatalf("got %+v", list)
	}
	manifest, err := list[0].Solution()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := manifest.OperatorImage().String(), "example-solution-operator:1.0.0"; got != want {
		t.Errorf("operator image: got %s, want %s", got, want)
	}
	if got, want := manifest.DisplayName(), "Example Solution"; got != want {
		t.Errorf("display name: got %s, want %s", got, want)
	}
	if none, failure := list[1].Solution(); none != nil || failure != nil {
		t.Errorf("without a manifest: got %v, %v", none, failure)
	}
	written, err := schema.MarshalImportedSolutions(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(generic(t, []byte(written)), generic(t, []byte(bySalt))); diff != "" {
		t.Errorf("reading and writing changed it (-got +want):\n%s", diff)
	}
}

// TestImportedSolutionIsWritten compares every byte: other programs read it.
func TestImportedSolutionIsWritten(t *testing.T) {
	manifest, _, err := schema.ParseSolution("manifest.yaml", []byte(`apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata:
  name: db
  annotations: {solutions.metalk8s.scality.com/display-name: A & B}
spec:
  version: 1.10.0
`))
	if err != nil {
		t.Fatal(err)
	}
	var list []schema.ImportedSolution
	for _, version := range []string{"1.10.0", "1.9.0"} {
		manifest.Spec.Version = version
		entry, failure := schema.NewImportedSolution(manifest.Merged(nil), "/archives/db-"+version+".iso")
		if failure != nil {
			t.Fatal(failure)
		}
		list = append(list, entry)
	}
	list[0].Active = true
	got, err := schema.MarshalImportedSolutions(list)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(version, active string) string {
		return `{"name":"A & B","id":"db-` + version + `","version":"` + version + `","active":` + active + `,"archive":"/archives/db-` + version + `.iso",` +
			`"mountpoint":"/srv/scality/db-` + version + `","manifest":{"apiVersion":"solutions.metalk8s.scality.com/v1alpha1","kind":"Solution",` +
			`"metadata":{"name":"db","annotations":{"solutions.metalk8s.scality.com/display-name":"A & B"}},"spec":{"version":"` + version + `","images":[],` +
			`"operator":{"image":{"name":"db-operator","tag":"` + version + `"}},"ui":{"image":{"name":"db-ui","tag":"` + version + `"}},"customApiGroups":[]}}}`
	}
	if want := "[" + entry("1.9.0", "false") + "," + entry("1.10.0", "true") + "]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, err := schema.MarshalImportedSolutions(nil); got != "[]" || err != nil {
		t.Errorf("nothing: got %s, %v", got, err)
	}
}

func TestImportedSolutionsOfOthers(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{
			"unknown fields stay", `[{"version":"1.0.0","zone":{"b":1e3,"a":[null]},"checksum":"x"}]`,
			`[{"name":"","id":"","version":"1.0.0","active":false,"archive":"","mountpoint":"","checksum":"x","zone":{"b":1e3,"a":[null]}}]`,
		},
		{
			"null is nothing", `[{"version":"1.0.0","active":null,"manifest":null,"name":null}]`,
			`[{"name":"","id":"","version":"1.0.0","active":false,"archive":"","mountpoint":""}]`,
		},
		{"no version at all", `[]`, `[]`},
		{
			"versions that are none", `[{"version":"2.4.0"},{"version":"2.4"},{"version":"1.0-dev"}]`,
			`[{"name":"","id":"","version":"1.0-dev","active":false,"archive":"","mountpoint":""},` +
				`{"name":"","id":"","version":"2.4","active":false,"archive":"","mountpoint":""},` +
				`{"name":"","id":"","version":"2.4.0","active":false,"archive":"","mountpoint":""}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			list, err := schema.ParseImportedSolutions(test.value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schema.MarshalImportedSolutions(list)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestImportedSolutionsRefused(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"empty", ``, "have nothing"},
		{"null", `null`, "have null"},
		{"an object", `{"version":"1.0.0"}`, "want a JSON list"},
		{"YAML", `- version: 1.0.0`, "want a JSON list"},
		{"not objects", `["1.0.0"]`, "want a JSON list"},
		{"no version", `[{"id":"x-1.0.0","active":true}]`, "version is missing"},
		{"version is a number", `[{"version":1}]`, "version: "},
		{"active is a word", `[{"version":"1.0.0","active":"yes"}]`, "active: "},
		{"manifest is a string", `[{"version":"1.0.0","manifest":"x"}]`, "manifest: want an object"},
		{"the same version twice", `[{"version":"1.0.0"},{"version":"1.0.0"}]`, "listed twice"},
		{"more behind it", `[] []`, "follows"},
		{"cut off", `[{"version":"1.0.0"`, "unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseImportedSolutions(test.value)
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// FuzzParseImportedSolutions makes sure that what is accepted is written in a form that is read as the same.
func FuzzParseImportedSolutions(f *testing.F) {
	f.Add(bySalt)
	f.Add(`[{"version":"1.0.0","zone":{"b":1e3},"manifest":{"kind":"Solution","spec":{"images":["a:1"]}}}]`)
	f.Add(`[{"version":"1","Version":"2","version":"3"},null]`)
	f.Fuzz(func(t *testing.T, value string) {
		list, err := schema.ParseImportedSolutions(value)
		if err != nil {
			if report.CodeOf(err) != report.Invalid {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		for _, entry := range list {
			_, _ = entry.Solution() // any error will do, a panic will not
		}
		written, err := schema.MarshalImportedSolutions(list)
		if err != nil {
			t.Fatal(err)
		}
		again, err := schema.ParseImportedSolutions(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if rewritten, err := schema.MarshalImportedSolutions(again); rewritten != written || err != nil {
			t.Fatalf("%v: written once %s\nand again %s", err, written, rewritten)
		}
		if _, err := (&schema.Pillar{Available: map[string][]schema.ImportedSolution{"x": list}}).Marshal(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPillar(t *testing.T) {
	list, err := schema.ParseImportedSolutions(bySalt)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := schema.ParseImportedSolutions(`[{"version":"1.0","yes":1e3,"n":-2.5E-3,"d":"2026-01-01","i":12,"j":1.5e10}]`)
	if err != nil {
		t.Fatal(err)
	}
	config, _, err := schema.ParseSolutionsConfiguration("solutions.yaml", []byte("apiVersion: solutions.metalk8s.scality.com/v1alpha1\n"+
		"kind: SolutionsConfiguration\narchives: [/archives/a.iso]\nactive: {example-solution: latest}\n"))
	if err != nil {
		t.Fatal(err)
	}
	description := "For tests: \"yes\"\n"
	full := &schema.Pillar{
		Available: map[string][]schema.ImportedSolution{"example-solution": list, "1e3": numbers},
		Config:    config,
		Environments: map[string]schema.PillarEnvironment{"Test 1": {
			Name: "Test 1", Description: &description,
			Namespaces: map[string]schema.PillarNamespace{"a": {Config: map[string]string{"example-solution": "1.0.0"}}, "b": {}},
		}},
	}
	for _, test := range []struct {
		name   string
		pillar *schema.Pillar
		want   string
	}{
		{"full", full, `{"available": {"example-solution": ` + bySalt + `, "1e3": [{"name":"","id":"","version":"1.0","active":false,"archive":"",
			"mountpoint":"","yes":1e3,"n":-2.5E-3,"d":"2026-01-01","i":12,"j":1.5e10}]}, "config": {"apiVersion": "solutions.metalk8s.scality.com/v1alpha1",
			"kind": "SolutionsConfiguration", "archives": ["/archives/a.iso"], "active": {"example-solution": "latest"}}, "environments": {"Test 1": {
			"name": "Test 1", "description": "For tests: \"yes\"\n", "namespaces": {"a": {"config": {"example-solution": "1.0.0"}}, "b": {"config": null}}}}}`},
		{"empty", &schema.Pillar{}, `{"available": {}, "config": {"apiVersion": "solutions.metalk8s.scality.com/v1alpha1",
			"kind": "SolutionsConfiguration", "archives": [], "active": {}}, "environments": {}}`},
		{"errors", &schema.Pillar{Errors: schema.PillarErrors{Available: []string{"a"}, Environments: []string{"b"}}}, `{"_errors": ["a", "b"],
			"available": {"_errors": ["a"]}, "config": {"apiVersion": "solutions.metalk8s.scality.com/v1alpha1",
			"kind": "SolutionsConfiguration", "archives": [], "active": {}}, "environments": {"_errors": ["b"]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := test.pillar.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			want := generic(t, []byte(`{"metalk8s": {"solutions": `+test.want+`}}`))
			if diff := cmp.Diff(readBySalt(t, data), want); diff != "" {
				t.Errorf("PyYAML reads (-got +want):\n%s\nof\n%s", diff, data)
			}
			inJSON, err := json.Marshal(test.pillar)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(generic(t, inJSON), generic(t, []byte(test.want))); diff != "" {
				t.Errorf("JSON (-got +want):\n%s", diff)
			}
		})
	}
}

// readBySalt reads YAML with PyYAML, as Salt does.
func readBySalt(t *testing.T, data []byte) any {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import yaml").Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs PyYAML: apt-get install python3-yaml")
		}
		t.Skip("needs PyYAML: apt-get install python3-yaml")
	}
	command := exec.Command(python, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)")
	command.Stdin, command.Stderr = bytes.NewReader(data), os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return generic(t, output)
}
