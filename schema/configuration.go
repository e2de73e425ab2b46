package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ActiveLatest is the word that stands for the highest imported version in [SolutionsConfiguration.Active].
const ActiveLatest = "latest"

// SolutionsConfiguration is /etc/metalk8s/solutions.yaml: the archives to import and the versions to activate.
//
// Two forms exist. MetalK8s reads the flat form, Archives and Active, and only this form is written. The older form lists
// Solutions; it and the older API group are read only, and [SolutionsConfiguration.Flat] converts them.
type SolutionsConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Archives are the paths of the imported archives.
	Archives []string `json:"archives"`
	// Active maps the name of a Solution to its active version, or to "latest". Without an entry it is inactive.
	Active map[string]string `json:"active"`
	// Solutions is the older form. Archives and Active are empty where it is set.
	Solutions []SolutionArchives `json:"solutions,omitempty"`
}

// SolutionArchives is one Solution in the older form of [SolutionsConfiguration].
type SolutionArchives struct {
	Name     string   `json:"name"`
	Archives []string `json:"archives"`
	// ActiveVersion is the active version; the highest one of the archives when it is empty.
	ActiveVersion string `json:"activeVersion,omitempty"`
}

// NewSolutionsConfiguration returns an empty configuration in the flat form.
func NewSolutionsConfiguration() *SolutionsConfiguration {
	return &SolutionsConfiguration{
		APIVersion: APIVersion,
		Kind:       KindSolutionsConfiguration,
		Archives:   []string{},
		Active:     map[string]string{},
	}
}

// IsOlder reports whether the document was written in a form that MetalK8s refuses: the older API group, or a list of
// Solutions. Such a file has to be converted with [SolutionsConfiguration.Flat] before it is written.
func (c *SolutionsConfiguration) IsOlder() bool {
	return c.APIVersion == OlderAPIVersion || len(c.Solutions) > 0
}

// allArchives returns the paths of the archives of either form, in the order of the file.
func (c *SolutionsConfiguration) allArchives() []string {
	paths := slices.Clone(c.Archives)
	for _, s := range c.Solutions {
		paths = append(paths, s.Archives...)
	}
	return paths
}

// Flat returns the flat form. Names and versions are only in the archives, so the caller supplies them: identify returns the
// manifest of the archive with this path, and is called once per archive of the older form.
//
// In the older form the archives of a Solution must carry its name, its activeVersion must be the version of one of them,
// and where it is absent the highest version is active. The notes report these versions.
func (c *SolutionsConfiguration) Flat(identify func(path string) (*Solution, error)) (flat *SolutionsConfiguration, notes []string, err error) {
	flat = NewSolutionsConfiguration()
	flat.Archives = c.allArchives()
	maps.Copy(flat.Active, c.Active)
	var failures []error
	for _, s := range c.Solutions {
		version, note, err := s.active(identify)
		if err != nil {
			failures = append(failures, fmt.Errorf("convert %s: Solution %s: %w", KindSolutionsConfiguration, s.Name, err))
			continue
		}
		if note != "" {
			notes = append(notes, note)
		}
		flat.Active[s.Name] = version
	}
	if len(failures) > 0 {
		return nil, nil, errors.Join(failures...)
	}
	return flat, notes, nil
}

// active resolves the version that the older form makes active. The note names the version when the form left it open.
func (s *SolutionArchives) active(identify func(path string) (*Solution, error)) (version, note string, err error) {
	var versions []Version
	for _, path := range s.Archives {
		manifest, err := identify(path)
		if err != nil {
			return "", "", err
		}
		if manifest.Metadata.Name != s.Name {
			return "", "", report.Errorf(report.Invalid, "archive %s holds Solution %s", path, manifest.Metadata.Name).
				WithHint("list the archive under the name in its manifest")
		}
		v, err := ParseVersion(manifest.Spec.Version)
		if err != nil {
			return "", "", fmt.Errorf("archive %s: %w", path, err)
		}
		versions = append(versions, v)
	}
	if s.ActiveVersion != "" {
		if !slices.ContainsFunc(versions, func(v Version) bool { return v.String() == s.ActiveVersion }) {
			return "", "", report.Errorf(report.Invalid, "no archive holds activeVersion %s", s.ActiveVersion).
				WithHint("the archives hold %s", joinVersions(versions))
		}
		return s.ActiveVersion, "", nil
	}
	highest, notice, _ := Latest(versions, false)
	note = fmt.Sprintf("Solution %s: no activeVersion: %s is active", s.Name, highest)
	if notice != "" {
		note += "; " + notice
	}
	return highest.String(), note, nil
}

// OperatorConfig is the configuration file of an operator: the imported versions of its Solution and their registries.
//
// It lists every imported version, so that the operator can upgrade its components. Operators decode it strictly: a key
// that is not defined here breaks them.
type OperatorConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Repositories maps a version of the Solution to the places that have its images.
	Repositories map[string][]Repository `json:"repositories"`
}

// Repository is a place that has images: Endpoint/<image name>:<tag>.
type Repository struct {
	Endpoint string     `json:"endpoint"`
	Images   []ImageRef `json:"images"`
}
