package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// mountRoot is the directory below which MetalK8s mounts every imported archive, in a directory named after its id.
const mountRoot = "/srv/scality"

// ImportedSolution is an imported version of a Solution: an entry of the lists in ConfigMap metalk8s-solutions, which has
// one for each Solution, and of the pillar.
//
// Two tools write these lists. Fields that are not known here are kept when an entry is read and written again.
type ImportedSolution struct {
	// Name is the display name.
	Name    string
	ID      string
	Version string
	Active  bool
	// Archive is the absolute path of the ISO file on the host that imported it.
	Archive string
	// Mountpoint is where the archive is mounted, or would be.
	Mountpoint string
	// Manifest is the manifest with its defaults filled in, see [Solution.Merged]; nil where the writer of the entry left it
	// out. [ImportedSolution.Solution] reads it.
	Manifest json.RawMessage

	others map[string]json.RawMessage
}

// NewImportedSolution describes the archive at this path, whose manifest has its defaults filled in, as inactive.
func NewImportedSolution(merged *Solution, archive string) (ImportedSolution, error) {
	manifest, err := compactJSON(merged)
	if err != nil {
		return ImportedSolution{}, fmt.Errorf("manifest of %s: %w", merged.ID(), err)
	}
	return ImportedSolution{
		Name:       merged.DisplayName(),
		ID:         merged.ID(),
		Version:    merged.Spec.Version,
		Archive:    archive,
		Mountpoint: mountRoot + "/" + merged.ID(),
		Manifest:   manifest,
	}, nil
}

// Solution is the manifest as far as it is understood: fields of other tools are passed over. An entry without a
// manifest has none, and no error either.
func (s *ImportedSolution) Solution() (*Solution, error) {
	if s.Manifest == nil {
		return nil, nil
	}
	manifest := new(Solution)
	if err := json.Unmarshal(s.Manifest, manifest); err != nil {
		return nil, report.Errorf(report.Invalid, "manifest of %s: %w", s.ID, err)
	}
	return manifest, nil
}

// ReplacedBy returns the other entry with the fields of this one that belong to other programs.
func (s ImportedSolution) ReplacedBy(other ImportedSolution) ImportedSolution {
	other.others = s.others
	return other
}

// ParseImportedSolutions reads the list of one Solution, as this tool or MetalK8s wrote it: a JSON list of objects, each
// with a version. Anything else is refused as invalid.
func ParseImportedSolutions(value string) ([]ImportedSolution, error) {
	var list []ImportedSolution
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	if err := decoder.Decode(&list); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, report.Errorf(report.Invalid, "want a JSON list, have nothing")
		}
		return nil, report.Errorf(report.Invalid, "want a JSON list of versions: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, report.Errorf(report.Invalid, "something follows the JSON list")
	}
	if list == nil {
		return nil, report.Errorf(report.Invalid, "want a JSON list, have null")
	}
	seen := map[string]bool{}
	for _, entry := range list {
		if seen[entry.Version] {
			return nil, report.Errorf(report.Invalid, "version %s is listed twice", entry.Version)
		}
		seen[entry.Version] = true
	}
	return list, nil
}

// MarshalImportedSolutions writes the list of one Solution, the lowest version first.
func MarshalImportedSolutions(list []ImportedSolution) (string, error) {
	sorted := append([]ImportedSolution{}, list...)
	slices.SortStableFunc(sorted, func(a, b ImportedSolution) int { return CompareVersions(a.Version, b.Version) })
	data, err := compactJSON(sorted)
	return string(data), err
}

// CompareVersions orders texts by their precedence as versions. A text that is not a version comes first, in byte order.
func CompareVersions(a, b string) int {
	va, aErr := ParseVersion(a)
	vb, bErr := ParseVersion(b)
	switch {
	case aErr == nil && bErr == nil:
		return va.Compare(vb)
	case aErr == nil:
		return 1
	case bErr == nil:
		return -1
	default:
		return bytes.Compare([]byte(a), []byte(b))
	}
}

// MarshalJSON writes every field, because MetalK8s looks for "active" in each entry, and then those that are not known,
// sorted by name.
func (s ImportedSolution) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	write := func(name string, value any) error {
		key, err := compactJSON(name)
		if err != nil {
			return err
		}
		data, err := compactJSON(value)
		if err != nil {
			return err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(data)
		return nil
	}
	for _, field := range s.fields() {
		if field.name == "manifest" && s.Manifest == nil {
			continue
		}
		if err := write(field.name, field.value); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		if err := write(name, s.others[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an entry. Only the version must be there.
func (s *ImportedSolution) UnmarshalJSON(data []byte) error {
	*s = ImportedSolution{}
	if err := json.Unmarshal(data, &s.others); err != nil {
		return err
	}
	for _, field := range s.fields() {
		raw, ok := s.others[field.name]
		delete(s.others, field.name)
		if !ok || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, field.value); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	if s.Version == "" {
		return errors.New("version is missing")
	}
	if s.Manifest != nil && s.Manifest[0] != '{' {
		return errors.New("manifest: want an object")
	}
	if len(s.others) == 0 {
		s.others = nil
	}
	return nil
}

// importedField is a field under the name that it has in JSON; value points to it.
type importedField struct {
	name  string
	value any
}

func (s *ImportedSolution) fields() []importedField {
	return []importedField{
		{"name", &s.Name},
		{"id", &s.ID},
		{"version", &s.Version},
		{"active", &s.Active},
		{"archive", &s.Archive},
		{"mountpoint", &s.Mountpoint},
		{"manifest", &s.Manifest},
	}
}

// compactJSON writes JSON for other programs: no line breaks, and no escapes for the sake of HTML.
func compactJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// SupportedUntil returns the day that the manifest names; empty if it names none, or is not there.
func (i *ImportedSolution) SupportedUntil() string {
	var manifest struct {
		Spec struct {
			SupportedUntil string `json:"supportedUntil"`
		} `json:"spec"`
	}
	if json.Unmarshal(i.Manifest, &manifest) != nil {
		return "" // its other readers report this
	}
	if _, err := time.Parse(time.DateOnly, manifest.Spec.SupportedUntil); err != nil {
		return ""
	}
	return manifest.Spec.SupportedUntil
}
