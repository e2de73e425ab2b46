package scaffold

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	KindChart           Kind = "chart"
	KindManifests       Kind = "manifests"
	KindKustomization   Kind = "kustomization"
	KindOperatorProject Kind = "operator project" // of kubebuilder or the Operator SDK
	KindCompose         Kind = "compose file"
)

// sourceKinds lists the kinds of sources, for hints.
const sourceKinds = "name a chart (a directory with Chart.yaml, a .tgz or oci://HOST/CHART:VERSION), Kubernetes manifests (*.yaml), " +
	"a directory with kustomization.yaml, the project of an operator (with PROJECT), or a compose.yaml"

// maxSource bounds a file of a source.
const maxSource = 64 << 20

// detect detects the kind of a source by its content.
func detect(s Source) (Kind, error) {
	if s.Chart != nil {
		return KindChart, nil
	}
	info, err := fs.Stat(s.Files, s.Path)
	if err != nil {
		return "", report.Errorf(report.NotFound, "there is no %s", s.Name).WithHint("%s", sourceKinds)
	}
	if info.IsDir() {
		return s.detectDirectory()
	}
	return s.detectFile(info)
}

func (s Source) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		info, err := fs.Stat(s.Files, path.Join(s.Path, name))
		return err == nil && info.Mode().IsRegular()
	})
}

func (s Source) detectDirectory() (Kind, error) {
	switch {
	case s.has("Chart.yaml"):
		return KindChart, nil
	case s.has("solution.yaml"):
		return "", report.Errorf(report.Usage, "%s is the project of a Solution already", s.Name).WithHint("run: solutionctl build %s", report.ShellFile(s.Name))
	}
	if s.has("PROJECT") && s.isOperatorProject() {
		return KindOperatorProject, nil
	}
	if s.has(kustomizationFiles...) {
		return KindKustomization, nil
	}
	if s.has(composeFiles...) {
		return KindCompose, nil
	}
	files, err := s.yamlFiles()
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", s.errUnknown("no Chart.yaml and no *.yaml file is in it")
	}
	return KindManifests, nil
}

// isOperatorProject reports whether PROJECT has the form of kubebuilder and the Operator SDK.
func (s Source) isOperatorProject() bool {
	data, err := fs.ReadFile(s.Files, path.Join(s.Path, "PROJECT"))
	if err != nil {
		return false
	}
	value, err := manifest.Value("PROJECT", data)
	return err == nil && (value["layout"] != nil || value["projectName"] != nil || value["domain"] != nil)
}

func (s Source) detectFile(info fs.FileInfo) (Kind, error) {
	switch {
	case !info.Mode().IsRegular():
		return "", s.errUnknown("it is not a file")
	case info.Size() > maxSource:
		return "", s.errUnknown("it is too large")
	}
	data, err := fs.ReadFile(s.Files, s.Path)
	switch {
	case err != nil:
		return "", err
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		return KindChart, nil
	case path.Base(s.Path) == "Chart.yaml":
		return KindChart, nil
	case slices.Contains(kustomizationFiles, path.Base(s.Path)):
		return KindKustomization, nil
	case !isYAMLName(s.Path):
		return "", s.errUnknown("its name does not end in .yaml, .json or .tgz")
	}
	if value, err := manifest.Value(s.Name, data); err == nil && isCompose(value) {
		return KindCompose, nil
	}
	return KindManifests, nil
}

// errUnknown refuses a source that is none of the kinds.
func (s Source) errUnknown(why string) error {
	return report.Errorf(report.Usage, "no component can be made of %s: %s", s.Name, why).WithHint("%s", sourceKinds)
}

func isYAMLName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name)))
}

// maxFiles bounds the files of a directory of manifests.
const maxFiles = 5000

// yamlFiles lists the manifests of a source, sorted. Names with a leading dot are left out.
func (s Source) yamlFiles() ([]string, error) {
	var names []string
	err := fs.WalkDir(s.Files, s.Path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != s.Path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || name != s.Path && !isYAMLName(name):
			return nil
		}
		if names = append(names, name); len(names) > maxFiles {
			return report.Errorf(report.Usage, "%s has more than %d files", s.Name, maxFiles).WithHint("name the directory with the manifests")
		}
		return nil
	})
	if errors.Is(err, fs.ErrPermission) {
		err = report.Errorf(report.Failure, "%s: %w", s.Name, err)
	}
	return names, err
}

// shown is the path of a file as the user names it.
func (s Source) shown(file string) string {
	if file == s.Path {
		return s.Name
	}
	relative, err := filepath.Rel(filepath.FromSlash(s.Path), filepath.FromSlash(file)) // it may be a base beside it
	if err != nil {
		return file
	}
	return path.Join(s.Name, filepath.ToSlash(relative))
}

// relative is the path of a file below the source, in one name.
func (s Source) relative(file string) string {
	name := path.Base(file)
	if file != s.Path {
		name = strings.ReplaceAll(strings.TrimPrefix(file, s.Path+"/"), "/", "-")
	}
	return strings.TrimSuffix(name, path.Ext(name)) + ".yaml"
}
