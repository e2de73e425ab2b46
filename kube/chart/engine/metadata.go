package engine

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// Metadata is Chart.yaml; as JSON it is the form that Helm writes into registries. Templates see the fields as .Chart.
type Metadata struct {
	Name         string            `json:"name,omitempty"`
	Home         string            `json:"home,omitempty"`
	Sources      []string          `json:"sources,omitempty"`
	Version      string            `json:"version,omitempty"`
	Description  string            `json:"description,omitempty"`
	Keywords     []string          `json:"keywords,omitempty"`
	Maintainers  []*Maintainer     `json:"maintainers,omitempty"`
	Icon         string            `json:"icon,omitempty"`
	APIVersion   string            `json:"apiVersion,omitempty"`
	Condition    string            `json:"condition,omitempty"`
	Tags         string            `json:"tags,omitempty"`
	AppVersion   string            `json:"appVersion,omitempty"`
	Deprecated   bool              `json:"deprecated,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	KubeVersion  string            `json:"kubeVersion,omitempty"`
	Dependencies []*Dependency     `json:"dependencies,omitempty"` // nil: whatever is in charts/
	Type         string            `json:"type,omitempty"`
}

// Maintainer is a maintainer of a chart.
type Maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	URL   string `json:"url,omitempty"`
}

// Dependency is a subchart that a chart names. After [Chart.Enable], one with an alias is called by it.
type Dependency struct {
	Name         string   `json:"name"`
	Version      string   `json:"version,omitempty"`
	Repository   string   `json:"repository"`
	Condition    string   `json:"condition,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Enabled      bool     `json:"enabled,omitempty"`
	ImportValues []any    `json:"import-values,omitempty"`
	Alias        string   `json:"alias,omitempty"`
}

const chartFile = "Chart.yaml"

// read reads Chart.yaml and, where dependencies were before apiVersion v2, requirements.yaml.
func (m *Metadata) read(files []File, left *parsing) error {
	documents := map[string][]byte{}
	for _, f := range files {
		documents[f.Name] = f.Data
	}
	main, ok := documents[chartFile]
	if !ok {
		return errors.New("there is no Chart.yaml")
	}
	if err := left.unmarshal(chartFile, main, m); err != nil {
		return fmt.Errorf("%s: %w", chartFile, err)
	}
	m.APIVersion = cmp.Or(m.APIVersion, "v1") // there was no other
	if err := left.unmarshal("requirements.yaml", documents["requirements.yaml"], m); err != nil {
		return fmt.Errorf("requirements.yaml: %w", err)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%s: %w", chartFile, err)
	}
	return nil
}

// check refuses the same as Helm, and makes texts one printable line.
func (m *Metadata) check() error {
	for _, text := range []*string{&m.Name, &m.Description, &m.Home, &m.Icon, &m.Condition, &m.Tags, &m.AppVersion, &m.KubeVersion} {
		*text = printable(*text)
	}
	printables(m.Sources)
	printables(m.Keywords)
	if m.Name == "" || m.Name == "." || m.Name == ".." || m.Name != path.Base(m.Name) {
		return fmt.Errorf("%q is not a name", m.Name)
	}
	if _, err := semver.NewVersion(m.Version); err != nil {
		return fmt.Errorf("version %q: %w", m.Version, err)
	}
	if m.Type != "" && m.Type != "application" && m.Type != "library" {
		return fmt.Errorf("type %q is neither application nor library", m.Type)
	}
	for _, person := range m.Maintainers {
		if person == nil {
			return errors.New("an entry of maintainers is empty")
		}
		person.Name, person.Email, person.URL = printable(person.Name), printable(person.Email), printable(person.URL)
	}
	return m.checkDependencies()
}

var validAlias = lazyregexp.New(`^[a-zA-Z0-9_-]*$`)

func (m *Metadata) checkDependencies() error {
	names := map[string]bool{}
	for _, d := range m.Dependencies {
		if d == nil {
			return errors.New("an entry of dependencies is empty")
		}
		for _, text := range []*string{&d.Name, &d.Version, &d.Repository, &d.Condition} {
			*text = printable(*text)
		}
		printables(d.Tags)
		if !validAlias.MatchString(d.Alias) {
			return fmt.Errorf("alias %q of dependency %s has characters other than letters, digits, _ and -", d.Alias, d.Name)
		}
		name := d.localName()
		if names[name] {
			return fmt.Errorf("two dependencies have the name or alias %q", name)
		}
		names[name] = true
	}
	return nil
}

func printables(texts []string) {
	for i, text := range texts {
		texts[i] = printable(text)
	}
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
}

// template returns the value of .Chart in templates.
func (m *Metadata) template(root bool) map[string]any {
	return map[string]any{
		"APIVersion": m.APIVersion, "Name": m.Name, "Version": m.Version, "AppVersion": m.AppVersion, "KubeVersion": m.KubeVersion,
		"Type": m.Type, "Description": m.Description, "Home": m.Home, "Icon": m.Icon, "Condition": m.Condition, "Tags": m.Tags,
		"Sources": list(m.Sources, same), "Keywords": list(m.Keywords, same), "Deprecated": m.Deprecated, "Annotations": m.Annotations,
		"Maintainers": list(m.Maintainers, func(p *Maintainer) any {
			return map[string]any{"Name": p.Name, "Email": p.Email, "URL": p.URL}
		}),
		"Dependencies": list(m.Dependencies, func(d *Dependency) any {
			return map[string]any{
				"Name": d.Name, "Version": d.Version, "Repository": d.Repository, "Condition": d.Condition, "Alias": d.Alias,
				"Tags": list(d.Tags, same), "Enabled": d.Enabled, "ImportValues": append([]any{}, d.ImportValues...),
			}
		}),
		"IsRoot": root,
	}
}

func list[T any](items []T, item func(T) any) []any {
	result := make([]any, len(items))
	for i := range items {
		result[i] = item(items[i])
	}
	return result
}

func same(text string) any { return text }

// Satisfies reports whether a version satisfies a constraint; false for invalid ones.
func Satisfies(version, constraint string) bool {
	ok, err := NewVersions().Satisfies(version, constraint)
	return ok && err == nil
}

// Versions compares versions with constraints, and parses each of them once. Too many comparisons are refused as [report.Invalid].
type Versions struct {
	versions    map[string]*semver.Version     // nil: invalid
	constraints map[string]*semver.Constraints // nil: invalid
	left        int
}

// NewVersions returns Versions for one chart.
func NewVersions() *Versions {
	return &Versions{map[string]*semver.Version{}, map[string]*semver.Constraints{}, maxCompared}
}

// Satisfies reports whether a version satisfies a constraint; false for invalid ones.
func (v *Versions) Satisfies(version, constraint string) (bool, error) {
	if v.left--; v.left < 0 {
		return false, tooMuch("more than %d versions of subcharts are compared with those of dependencies", maxCompared)
	}
	parsed, known := v.versions[version]
	if !known {
		parsed, _ = semver.NewVersion(version)
		v.versions[version] = parsed
	}
	wanted, known := v.constraints[constraint]
	if !known {
		wanted, _ = semver.NewConstraint(constraint)
		v.constraints[constraint] = wanted
	}
	return parsed != nil && wanted != nil && wanted.Check(parsed), nil
}
