package scaffold

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// kustomizationFiles are the names that kustomize reads in a directory.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// addKustomization makes components of the output of kustomize for a directory.
func (b *builder) addKustomization(s Source, kind Kind, name string) error {
	if slices.Contains(kustomizationFiles, path.Base(s.Path)) {
		s.Path = path.Dir(s.Path)
	}
	if err := (&localCheck{source: s, seen: map[string]bool{}}).directory(s.Path); err != nil {
		return err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(kustomizeFS{filesys.MakeFsInMemory(), s.Files}, absolute(s.Path))
	if err != nil {
		return s.errKustomize(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		return s.errKustomize(err)
	}
	documents, err := b.read(s.Name, name+".yaml", text)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return s.errUnknown("the kustomization makes no object")
	}
	return b.addObjects(s, kind, name, documents)
}

func (s Source) errKustomize(err error) error {
	failure := report.Errorf(report.Invalid, "%s cannot be built by kustomize: %w", s.Name, err)
	if strings.Contains(err.Error(), "enable-helm") {
		return failure.WithHint("name the chart with one more --from, or run: kubectl kustomize --enable-helm %s > all.yaml, and name all.yaml", report.ShellFile(s.Name))
	}
	return failure.WithHint("try it: kubectl kustomize %s", report.ShellFile(s.Name))
}

func absolute(name string) string { return string(filepath.Separator) + filepath.FromSlash(name) }

// localCheck refuses kustomizations that refer to the network, which kustomize would fetch, or to missing files.
type localCheck struct {
	source Source
	seen   map[string]bool
}

// entries are the fields of a kustomization that list files and directories.
var entries = []string{"resources", "bases", "components", "crds", "generators", "transformers", "validators", "configurations", "patchesStrategicMerge"}

func (c *localCheck) directory(dir string) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	i := slices.IndexFunc(kustomizationFiles, func(name string) bool { _, err := fs.Stat(c.source.Files, path.Join(dir, name)); return err == nil })
	if i < 0 {
		return report.Errorf(report.Invalid, "%s has no kustomization.yaml", c.source.shown(dir)).WithHint("try it: kubectl kustomize %s", report.ShellFile(c.source.Name))
	}
	file := path.Join(dir, kustomizationFiles[i])
	data, err := fs.ReadFile(c.source.Files, file)
	if err != nil {
		return err
	}
	value, err := manifest.Value(c.source.shown(file), data)
	if err != nil {
		return report.Errorf(report.Invalid, "%w", err).WithHint("correct the file")
	}
	for _, field := range entries {
		list, _ := value[field].([]any)
		for _, entry := range list {
			if text, ok := entry.(string); ok && !strings.Contains(text, "\n") {
				if err := c.entry(file, dir, text); err != nil {
					return err
				}
			}
		}
	}
	if remote := remoteFile(value); remote != "" {
		return c.errRemote(file, remote)
	}
	return nil
}

// entry checks a file or a directory that a kustomization names.
func (c *localCheck) entry(file, dir, text string) error {
	name := path.Join(dir, text)
	info, err := fs.Stat(c.source.Files, name)
	switch {
	case err == nil && info.IsDir():
		return c.directory(name)
	case err == nil:
		return nil
	case isRemote(text):
		return c.errRemote(file, text)
	default:
		return report.Errorf(report.Invalid, "%s names %s, which does not exist", c.source.shown(file), text).WithHint("try it: kubectl kustomize %s", report.ShellFile(c.source.Name))
	}
}

func (c *localCheck) errRemote(file, text string) error {
	return report.Errorf(report.Invalid, "%s names %s, which is not fetched", c.source.shown(file), text).
		WithHint("run: kubectl kustomize %s > all.yaml, and name all.yaml", report.ShellFile(c.source.Name))
}

// isRemote reports references that kustomize would fetch: URLs and repositories such as github.com/org/repo.
func isRemote(text string) bool {
	host, _, below := strings.Cut(text, "/")
	return strings.Contains(text, "://") || strings.Contains(text, "git@") || strings.Contains(text, "::") || strings.Contains(text, "?ref=") ||
		below && strings.Contains(strings.Trim(host, "."), ".")
}

// remoteFile returns the URL of a file that a kustomization names: of a patch, a generator, an OpenAPI document.
func remoteFile(value any) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			for _, name := range fileNames(key, v[key]) {
				if _, file, found := strings.Cut(name, "="); found {
					name = file
				}
				if strings.Contains(name, "://") {
					return name
				}
			}
			if remote := remoteFile(v[key]); remote != "" {
				return remote
			}
		}
	case []any:
		for _, item := range v {
			if remote := remoteFile(item); remote != "" {
				return remote
			}
		}
	}
	return ""
}

// fileNames are the values of a field that names files.
func fileNames(key string, value any) []string {
	if !slices.Contains([]string{"path", "files", "env", "envs"}, key) {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var names []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			names = append(names, text)
		}
	}
	return names
}

// kustomizeFS lets kustomize read files, and keeps its writes in memory.
type kustomizeFS struct {
	filesys.FileSystem
	files fs.FS
}

// relative is the name in files of a path as kustomize has it.
func (kustomizeFS) relative(name string) string {
	return cmp.Or(strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "/"), ".")
}

func (k kustomizeFS) stat(name string) (fs.FileInfo, error) {
	return fs.Stat(k.files, k.relative(name))
}

// IsDir reports whether a path is a directory.
func (k kustomizeFS) IsDir(name string) bool {
	info, err := k.stat(name)
	return err == nil && info.IsDir()
}

// Exists reports whether there is something at a path.
func (k kustomizeFS) Exists(name string) bool {
	_, err := k.stat(name)
	return err == nil
}

// CleanedAbs splits a path into its directory and the name of a file in it, "" for a directory.
func (k kustomizeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	info, err := k.stat(name)
	if err != nil {
		return "", "", err
	}
	clean := absolute(k.relative(name))
	if info.IsDir() {
		return filesys.ConfirmedDir(filepath.Clean(clean)), "", nil
	}
	return filesys.ConfirmedDir(filepath.Dir(clean)), filepath.Base(clean), nil
}

// ReadFile returns the content of a file.
func (k kustomizeFS) ReadFile(name string) ([]byte, error) {
	info, err := k.stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSource {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, maxSource>>20)
	}
	return fs.ReadFile(k.files, k.relative(name))
}

// ReadDir lists the names in a directory.
func (k kustomizeFS) ReadDir(name string) ([]string, error) {
	entries, err := fs.ReadDir(k.files, k.relative(name))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// Glob lists the paths that match a pattern.
func (k kustomizeFS) Glob(pattern string) ([]string, error) {
	found, err := fs.Glob(k.files, k.relative(pattern))
	for i := range found {
		found[i] = absolute(found[i])
	}
	return found, err
}
