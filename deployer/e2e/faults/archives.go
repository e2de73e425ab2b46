//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// The Solution of a lane. Version 1.1.0 has a field and an object that 1.0.0 has not, and no longer two objects and the kind
// Gadget.
const (
	solution = "demo"
	oldest   = "1.0.0"
	newest   = "1.1.0"
	broken   = "1.2.0" // never becomes ready
	group    = "demo.example.com"
)

func archiveOf(version string) string { return "archives/" + solution + "-" + version + ".iso" }

const userInterface = `apiVersion: v1
kind: ConfigMap
metadata: {name: demo-pages}
data: {index: "<h1>demo</h1>"}
---
apiVersion: v1
kind: Service
metadata: {name: demo-ui}
spec:
  selector: {app: demo-ui}
  ports: [{port: 80}]
`

// wanted is the input of "apply -f".
const wanted = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: SolutionsConfiguration
archives: [archives/demo-1.0.0.iso, archives/demo-1.1.0.iso]
active: {demo: 1.0.0}
`

const newInterface = `apiVersion: v1
kind: ConfigMap
metadata: {name: demo-colors}
data: {index: "<h1 style='color: red'>demo</h1>"}
`

// fewer is a configuration that neither has the newer version nor makes any active.
const fewer = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: SolutionsConfiguration
archives: [archives/demo-1.0.0.iso]
`

// parts are optional components: the second needs the first, and the last is a chart. Later versions have another one
// in place of the second, and no chart.
const (
	parts = `  components:
    - {name: first, manifests: components/first.yaml, select: optional}
    - {name: second, manifests: components/second.yaml, select: optional, dependsOn: [{component: first}]}
    - {name: db, chart: charts/db-1.0.0.tgz, select: optional}
`
	otherParts = `  components:
    - {name: first, manifests: components/first.yaml, select: optional}
    - {name: third, manifests: components/third.yaml, select: optional, dependsOn: [{component: first}]}
`
)

// part returns the content of a component.
func part(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {part: %s}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: %[1]s}\n"+
		"spec: {selector: {app: %[1]s}, ports: [{port: 80}]}\n", name, data)
}

// nowhere is a Deployment for whose pods there is no node.
const nowhere = `apiVersion: apps/v1
kind: Deployment
metadata: {name: demo-nowhere}
spec:
  selector: {matchLabels: {app: demo-nowhere}}
  template:
    metadata: {labels: {app: demo-nowhere}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: demo-operator, image: "{{ repository }}/demo-operator:1.2.0"}]
`

// definition is that of a custom resource whose spec has these fields.
func definition(kind string, fields ...string) string {
	plural := strings.ToLower(kind) + "s"
	var properties strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&properties, "                %s: {type: string, description: \"A word.\"}\n", field)
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]s, singular: %[4]s}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.readyReplicas}}
      schema:
        openAPIV3Schema:
          description: One instance.
          type: object
          required: [spec]
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              description: What it should be.
              type: object
              properties:
                replicas: {type: integer, minimum: 0, default: 1, description: How many run.}
%[5]s            status:
              description: What was observed.
              type: object
              properties:
                readyReplicas: {type: integer, description: How many are ready.}
`, plural, group, kind, strings.ToLower(kind), properties.String())
}

// packArchives makes and signs the archives of the Solution, and the trust store that accepts them.
func (l *Lane) packArchives(ctx context.Context) error {
	for _, args := range [][]string{{"keygen", "acme"}, {"trust", "add", "acme", "acme.pub"}} {
		if err := l.must(ctx, args...); err != nil {
			return err
		}
	}
	configuration := filepath.Join(l.dir, "configuration.yaml")
	if err := errors.Join(os.Mkdir(filepath.Join(l.dir, "archives"), 0o755), os.WriteFile(configuration, []byte(wanted), 0o644)); err != nil {
		return err
	}
	chart, err := deployertest.PackChart(charted, chartFiles)
	if err != nil {
		return err
	}
	for version, files := range map[string]map[string]string{
		oldest: {
			"charts/db-1.0.0.tgz":   chart,
			"components/first.yaml": part("first", "one"), "components/second.yaml": part("second", "one"), "solution.yaml": parts,
			"operator/deploy/crds/demos_crd.yaml": definition("Demo", "title"), "operator/deploy/crds/gadgets_crd.yaml": definition("Gadget", "size"),
			"ui/ui.yaml": userInterface,
		},
		newest: {
			"components/first.yaml": part("first", "two"), "components/third.yaml": part("third", "two"), "solution.yaml": otherParts,
			"operator/deploy/crds/demos_crd.yaml": definition("Demo", "title", "color"), "ui/ui.yaml": newInterface,
		},
		broken: {
			"operator/deploy/crds/demos_crd.yaml": definition("Demo", "title", "color"), "ui/ui.yaml": nowhere,
		},
	} {
		if err := l.pack(ctx, version, files); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lane) pack(ctx context.Context, version string, files map[string]string) error {
	project := filepath.Join("projects", version, solution)
	if err := l.must(ctx, "init", project); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(l.dir, project, name)
		before, err := os.ReadFile(path) // what a manifest has more follows what it has
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if name != "solution.yaml" {
			before = nil
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(before, text...), 0o644)); err != nil {
			return err
		}
	}
	return l.must(ctx, "build", project, "--version", version, "--to", "archives/", "--sign-key", "acme.key")
}
