// Generate writes the resource definitions of every release. Controller-gen makes them of the Go types; this program sets
// which versions a release serves, adds how they are converted, and gives the files the names that an archive wants.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// releases are the releases of the Solution, by the directory of their solution.yaml.
var releases = []release{
	{dir: ".", versions: []string{"v1alpha1"}, resources: []string{"websites"}},
	{dir: "releases/1.1.0", versions: []string{"v1alpha1", "v1beta1"}, resources: []string{"websites"}, converted: true},
	{dir: "releases/2.0.0", versions: []string{"v1beta1"}, resources: []string{"websites", "banners"}},
}

type release struct {
	dir       string
	versions  []string // that the API server serves; objects are stored in the last
	resources []string
	converted bool // by the webhook in archive/operator/cluster
}

const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0"

// conversion names the webhook that the API server calls. Solutionctl adds the certificate when the release is activated.
const conversion = `  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: example-solution-webhook
          namespace: example-solution-system
          path: /convert
      conversionReviewVersions:
      - v1
`

func main() {
	root := flag.String("root", ".", "directory of the module")
	flag.Parse()
	if err := run(context.Background(), *root, *root); err != nil {
		fmt.Fprintln(os.Stderr, "generate: error:", err)
		os.Exit(1)
	}
}

// run reads the types of the module at root and writes the definitions below out.
func run(ctx context.Context, root, out string) error {
	for _, r := range releases {
		if err := r.generate(ctx, root, filepath.Join(out, r.dir, "archive/operator/deploy/crds")); err != nil {
			return fmt.Errorf("%s: %w", r.dir, err)
		}
	}
	return nil
}

func (r release) generate(ctx context.Context, root, out string) error {
	made, err := os.MkdirTemp("", "crds-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	command := exec.CommandContext(ctx, "go", "run", controllerGen, "crd",
		"paths=./api/"+strings.Join(r.versions, ";./api/"), "output:crd:dir="+made)
	command.Dir, command.Stderr = root, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("controller-gen: %w", err)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	for _, resource := range r.resources {
		data, err := os.ReadFile(filepath.Join(made, "example.solutionctl.io_"+resource+".yaml"))
		if err != nil {
			return err
		}
		text := string(data)
		if r.converted {
			text = strings.Replace(text, "\nspec:\n", "\nspec:\n"+conversion, 1)
		}
		if err := os.WriteFile(filepath.Join(out, resource+"_crd.yaml"), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
