package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Source is a public chart, manifest or kustomization.
type Source struct {
	Location `json:",inline"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	// Subcharts are the dependencies of a chart that a release has in its package, and the repository has elsewhere.
	Subcharts []Location `json:"subcharts,omitempty"`
	// Refused are the words with which the source is refused; empty if it has to be deployed.
	Refused []Refusal `json:"refused,omitempty"`
	// Unready names the objects that do not become ready where no program runs.
	Unready string `json:"unready,omitempty"`
	// Changes names a change that activating once more makes, as upgrading with Helm does.
	Changes string `json:"changes,omitempty"`
	// Needs names the Solution without which the source is packed and not deployed.
	Needs string `json:"needs,omitempty"`
	// Leaves are aggregated ClusterRoles: Kubernetes may create one again when the roles that it consists of are deleted with it.
	Leaves []string `json:"leaves,omitempty"`
	// Values are values without which the chart is refused.
	Values string `json:"values,omitempty"`
}

// Refusal is a command that refuses a source, and what it has to print.
type Refusal struct {
	Command string   `json:"command"` // init or build
	Prints  []string `json:"prints"`
}

// Location is a file or a directory in a commit of a repository.
type Location struct {
	Repository string `json:"repository"` // OWNER/NAME
	Commit     string `json:"commit"`
	Path       string `json:"path"`
	Tree       string `json:"tree,omitempty"` // the directory with everything that Path refers to
}

// ReadList reads the table of sources.
func ReadList(file string) ([]Source, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []Source
	return list, yaml.UnmarshalStrict(data, &list)
}

const host = "github.com"

// Fetch writes the files of a source below dir and returns the path of what Path names.
func (s *Source) Fetch(ctx context.Context, dir string) (string, error) {
	path, err := s.extract(ctx, dir)
	for _, sub := range s.Subcharts {
		if err != nil {
			break
		}
		err = sub.addTo(ctx, filepath.Join(path, "charts"))
	}
	return path, err
}

// addTo puts a subchart where "helm dependency build" would.
func (l *Location) addTo(ctx context.Context, charts string) error {
	temporary, err := os.MkdirTemp(filepath.Dir(filepath.Dir(charts)), "subchart-")
	if err != nil {
		return err
	}
	path, err := l.extract(ctx, temporary)
	if err == nil {
		err = os.MkdirAll(charts, 0o755)
	}
	if err == nil {
		err = os.Rename(path, filepath.Join(charts, filepath.Base(l.Path)))
	}
	return errors.Join(err, os.RemoveAll(temporary))
}

// extract writes the tree of a location below dir.
func (l *Location) extract(ctx context.Context, dir string) (string, error) {
	repository, err := l.clone(ctx)
	if err != nil {
		return "", err
	}
	tree := l.Tree
	if tree == "" {
		tree = l.Path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	const pipe = `set -o pipefail; git --git-dir="$1" archive "$2" -- "$3" | tar -x -C "$4"`
	if err := run(exec.CommandContext(ctx, "bash", "-c", pipe, "bash", repository, l.Commit, tree, dir)); err != nil {
		return "", fmt.Errorf("%s at %s: %w", l.Repository, l.Commit, err)
	}
	return filepath.Join(dir, filepath.FromSlash(l.Path)), nil
}

// clone returns the git directory with the commit: a clone below TEST_SOURCES, else one in the cache, fetched if need be.
func (l *Location) clone(ctx context.Context) (string, error) {
	name := filepath.Join(host, filepath.FromSlash(l.Repository))
	if clones := os.Getenv("TEST_SOURCES"); clones != "" {
		out, err := exec.CommandContext(ctx, "git", "-C", filepath.Join(clones, name), "rev-parse", "--absolute-git-dir").Output()
		if err != nil {
			return "", fmt.Errorf("TEST_SOURCES has no clone %s: %w", name, err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "solutionctl-sources", name)
	if exec.CommandContext(ctx, "git", "--git-dir="+dir, "cat-file", "-e", l.Commit+"^{tree}").Run() == nil {
		return dir, nil
	}
	if err := run(exec.CommandContext(ctx, "git", "init", "--quiet", "--bare", dir)); err != nil {
		return "", err
	}
	fetch := exec.CommandContext(ctx, "git", "--git-dir="+dir, "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30",
		"fetch", "--quiet", "--depth=1", "https://"+host+"/"+l.Repository+".git", l.Commit)
	fetch.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	return dir, run(fetch)
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
