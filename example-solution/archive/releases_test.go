package archive

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/example-solution/serve"
)

// TestReleases checks how the manifests of the releases differ from those of 1.0.0, line by line: only where they must. Resource
// definitions and release notes are not compared.
func TestReleases(t *testing.T) {
	for version, want := range map[string][]string{
		"1.1.0": {
			"operator/cluster/webhook.yaml is new",
			"operator/deploy/crds/websites_cr.yaml: -apiVersion: example.solutionctl.io/v1alpha1",
			"operator/deploy/crds/websites_cr.yaml: -message: This page came out of a Solution archive.",
			"operator/deploy/crds/websites_cr.yaml: +apiVersion: example.solutionctl.io/v1beta1",
			"operator/deploy/crds/websites_cr.yaml: +text: This page came out of a Solution archive.",
		},
		"2.0.0": {
			"operator/deploy/crds/banners_cr.yaml is new",
			"operator/deploy/crds/websites_cr.yaml: -apiVersion: example.solutionctl.io/v1alpha1",
			"operator/deploy/crds/websites_cr.yaml: -message: This page came out of a Solution archive.",
			"operator/deploy/crds/websites_cr.yaml: +apiVersion: example.solutionctl.io/v1beta1",
			"operator/deploy/crds/websites_cr.yaml: +text: This page came out of a Solution archive.",
			"operator/deploy/role.yaml: -resources: [services]",
			"operator/deploy/role.yaml: -resources: [websites]",
			"operator/deploy/role.yaml: +resources: [services, configmaps]",
			"operator/deploy/role.yaml: +resources: [websites, banners]",
			"ui/ui.yaml: +resources: [banners]",
			"ui/ui.yaml: +verbs: [list]",
		},
	} {
		t.Run(version, func(t *testing.T) {
			before, after := manifests(t, "."), manifests(t, "../releases/"+version+"/archive")
			var got []string
			for file, text := range after {
				old, ok := before[file]
				if !ok {
					got = append(got, file+" is new")
					continue
				}
				for _, line := range missing(old, text) {
					got = append(got, file+": -"+line)
				}
				for _, line := range missing(text, old) {
					got = append(got, file+": +"+line)
				}
			}
			for file := range before {
				if _, ok := after[file]; !ok {
					got = append(got, file+" is gone")
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestGracePeriod: pods have the grace period that their program counts on, and no pause of their own before it.
func TestGracePeriod(t *testing.T) {
	want := fmt.Sprintf("\n      terminationGracePeriodSeconds: %d ", serve.GracePeriod/time.Second)
	for _, dir := range []string{".", "../releases/1.1.0/archive", "../releases/2.0.0/archive"} {
		for path, text := range manifests(t, dir) {
			if pods := strings.Count(text, "\nkind: Deployment\n"); strings.Count(text, want) != pods || strings.Contains(text, "preStop") {
				t.Errorf("%s/%s has %d Deployments, and not in each%s", dir, path, pods, want)
			}
		}
	}
}

// manifests returns the manifests of a release by path.
func manifests(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if path == "testdata" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_crd.yaml") {
			return err
		}
		files[path] = string(read(t, dir+"/"+path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// missing returns the lines of a that are not in b.
func missing(a, b string) []string {
	lines := strings.Split(b, "\n")
	var only []string
	for line := range strings.Lines(a) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(lines, line) {
			only = append(only, strings.TrimSpace(line))
		}
	}
	return only
}
