package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/solutionctl/solutionctl"

// layers is the import policy, the lowest layer first: a package may import packages of lower layers only, not its
// neighbours. What lies in an internal directory belongs to the package above that directory. Changing this table needs
// a record of the decision (docs/adr/0003-layers-and-codes.md).
var layers = [][]string{
	{"build/sbom/versions", "build/oci/ocitest", "docs/guides", "docs/language", "durable", "durable/trace", "schema/lazyregexp", "schema/report", "deployer/cluster/clustertest"},
	{"durable/powercut"},
	{"schema", "schema/report/scripttest"},
	{"kube/chart/engine"},
	{"build/iso", "build/oci", "build/recompress", "build/tardiff", "deployer/components", "deployer/helm", "deployer/metrics", "deployer/prometheus", "kube/chart", "kube/crd", "kube/images", "kube/manifest", "kube/pods", "kube/promql", "kube/rbac", "kube/schemas"},
	{"build/media", "build/sbom", "build/scaffold", "kube/powers"},
	{"build/archive"},
	{"build/layout"},
	{"build/layout/layouttest"},
	{"sign/chunk", "sign/key", "sign/strictjson"},
	{"sign/bundle", "sign/key/keytest"},
	{"sign/trust"},
	{
		"build", "build/delta", "lint/target", "sign", "deployer/cluster", "deployer/apps/form", "deployer/health", "deployer/render",
		"deployer/host/authority", "deployer/host/cri", "deployer/host/monitoring", "deployer/host/node", "deployer/host/registry", "deployer/host/service", "deployer/host/store",
	},
	{"build/artifact", "deployer/engine/diff", "deployer/engine/record"},
	{"lint", "deployer/engine", "deployer/metalk8s", "deployer/host/serve", "deployer/console/page", "deployer/console/upload"},
	{"deployer/console/page/pagetest", "deployer/console/session", "deployer/records"},
	{"deployer/definitions", "deployer/dependencies", "deployer/preflight"},
	{"deployer/apps", "deployer/rights", "deployer/survey"},
	{"deployer/site"},
	{"deployer/plan"},
	{"deployer/rebuild"},
	{"deployer/environments"},
	{"deployer", "deployer/console/live", "deployer/logs"},
	{"deployer/deployertest", "deployer/host", "deployer/loader", "deployer/preload"},
	{"deployer/console/web", "deployer/deployertest/vendortest", "deployer/install", "deployer/support/bundle", "deployer/support/doctor", "deployer/support/notify"},
	{"deployer/hostd"},
	{"deployer/console/archives"},
	{"deployer/console"},
	{"cmd/solutionctl/internal/console", "cmd/solutionctl/internal/settings", "cmd/solutionctl/internal/start"},
	{"cmd/solutionctl/internal/cli", "cmd/solutionctl/internal/manual"},
	{"cmd/solutionctl/deploy"},
	{"cmd/solutionctl", "cmd/image", "cmd/release"},
}

func TestLayers(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"/...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	ghosts := map[string]bool{}
	for _, name := range slices.Concat(layers...) {
		if ghosts[name] {
			t.Errorf("%s is in the table twice", name)
		}
		ghosts[name] = true
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, problem := range judge(fields[0], fields[1:]) {
			t.Error(problem)
		}
		delete(ghosts, strings.TrimPrefix(fields[0], module+"/"))
	}
	for name := range ghosts {
		t.Errorf("the table has %s, which does not exist", name)
	}
}

// judge returns what the policy has against a package that imports others.
func judge(importer string, imports []string) []string {
	from, owner := layerOf(importer)
	if from < 0 {
		return []string{importer + " is in no layer: add it to the table"}
	}
	var problems []string
	for _, path := range imports {
		if !strings.HasPrefix(path, module) {
			continue
		}
		to, imported := layerOf(path)
		if to >= from && imported != owner {
			problems = append(problems, importer+" must not import "+path+": it is not in a lower layer")
		}
	}
	return problems
}

// layerOf returns the number of the layer of a package and the package of the table that it belongs to.
func layerOf(path string) (layer int, owner string) {
	name := strings.TrimPrefix(path, module+"/")
	for {
		for i, layer := range layers {
			if slices.Contains(layer, name) {
				return i, name
			}
		}
		i := strings.LastIndex("/"+name, "/internal/")
		if i < 1 {
			return -1, ""
		}
		name = name[:i-1]
	}
}

func TestLayerPolicy(t *testing.T) {
	for _, test := range []struct {
		name, importer, imported string
		allowed                  bool
	}{
		{"downwards", "build", "schema/report", true},
		{"upwards", "schema/report", "schema", false},
		{"neighbour", "build", "lint/target", false},
		{"own internal package", "build/iso", "build/iso/internal/dirrecord", true},
		{"between its internal packages", "build/iso/internal/a", "build/iso/internal/b", true},
		{"internal package of a neighbour", "build/oci", "build/iso/internal/a", false},
		{"internal package keeps its owner's place", "schema/internal/a", "build/iso", false},
		{"library", "schema/report", "../../github.com/google/go-cmp", true},
		{"unknown importer", "util", "schema", false},
		{"command", "cmd/solutionctl", "cmd/solutionctl/internal/console", true},
		{"internal package of the command", "cmd/solutionctl/internal/console", "cmd/solutionctl/internal/settings", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			imported := module + "/" + test.imported
			if outside, ok := strings.CutPrefix(test.imported, "../../"); ok {
				imported = outside
			}
			problems := judge(module+"/"+test.importer, []string{imported})
			if allowed := len(problems) == 0; allowed != test.allowed {
				t.Errorf("allowed: %v, want %v: %q", allowed, test.allowed, problems)
			}
		})
	}
}
