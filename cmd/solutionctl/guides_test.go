package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/solutionctl/solutionctl/docs/guides"
)

// onCluster are the guides whose commands need a cluster: the tests of deployer/e2e run them.
var onCluster = []string{"console.md", "install.md", "loader.md", "metalk8s.md", "operate.md", "site-monitoring.md", "upgrade.md"}

// TestGuides does what the guides say, in a shell, and compares what is printed with what they show.
func TestGuides(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("guides are for a Unix shell")
	}
	names, err := guides.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		steps, err := guides.Steps(name)
		if err != nil {
			t.Error(err)
		}
		if len(steps) == 0 || slices.Contains(onCluster, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if (name == "own-registry.md" || name == "several-hosts.md") && runtime.GOOS != "linux" {
				t.Skip("archives are imported on the hosts of a cluster")
			}
			if _, err := exec.LookPath("promtool"); err != nil && name == "monitoring.md" && os.Getenv("CI") != "true" {
				t.Skip("promtool is missing: apt-get install prometheus")
			}
			followGuide(t, steps)
		})
	}
}

func followGuide(t *testing.T, steps []guides.Step) {
	t.Helper()
	home, output := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", guides.Shell(steps))
	cmd.Dir = home
	first, err := unusedAddress() // of the first of several hosts
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)))) // of the guide about the site's own
	defer site.Close()
	cmd.Env = append(os.Environ(), "REGISTRY="+strings.TrimPrefix(site.URL, "http://"), "FIRST="+first, "HOME="+home, "OUTPUT="+output, "SOLUTIONCTL_CONFIG="+os.DevNull)
	out, failure := cmd.CombinedOutput()
	for i, step := range steps {
		printed, err := os.ReadFile(filepath.Join(output, fmt.Sprintf("%d.out", i)))
		if step.File != "" {
			continue
		}
		if err != nil {
			break // the commands before it failed
		}
		t.Logf("line %d:\n%s%s", step.Line, step.Script, printed)
		if line, missing := step.Missing(string(printed)); missing && failure == nil {
			t.Errorf("line %d: this is not printed: %s", step.Line, line)
		}
	}
	if failure != nil {
		t.Fatalf("%v, after what the last line shows: %s", failure, strings.TrimSpace(string(out)))
	}
}
