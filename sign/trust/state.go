package trust

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

const stateFormat = 1

// State holds the highest serials and versions that were accepted before: /var/lib/solutionctl/state.json. A nil State is
// empty.
type State struct {
	FormatVersion int `json:"formatVersion"`
	// Serials are the highest serials of revocation lists, by the ID of the root key.
	Serials map[string]int64 `json:"revocationSerials,omitempty"`
	// Issued are the highest serials of the lists that were issued here, by the ID of the root key. Hosts on the same machine, which do not have
	// such a list yet, are not concerned.
	Issued map[string]int64 `json:"issuedSerials,omitempty"`
	// Floors are the highest imported versions, by Solution and signer. They are kept apart by signer so that a
	// stolen key that has signed an absurdly high version loses its effect when the key is revoked.
	Floors map[string]map[string]Floor `json:"floors,omitempty"`
}

// Floor is a version that was imported.
type Floor struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// LoadState reads a state file. A file that does not exist is an empty state.
func LoadState(path string) (*State, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &State{FormatVersion: stateFormat}, checkAbsent(path)
	}
	if err != nil {
		return nil, err
	}
	var head struct {
		FormatVersion int `json:"formatVersion"`
	}
	if err = json.Unmarshal(data, &head); err == nil && head.FormatVersion > stateFormat {
		return nil, report.Errorf(report.Refused, "%s has format %d, this program reads up to %d", path, head.FormatVersion, stateFormat).
			WithHint("use a newer solutionctl")
	}
	var s State
	err = strictjson.Decode(data, &s)
	if err == nil && s.FormatVersion != stateFormat {
		err = errors.New("it does not say its formatVersion")
	}
	if err != nil {
		return nil, report.Errorf(report.TrustStore, "%s is not a state file of format %d: %w", path, stateFormat, err).
			WithHint("restore it from a backup; without it older versions are not recognized")
	}
	return &s, nil
}

// UpdateState changes a state file, which need not exist. Others who change it wait for each other; a reader sees the old
// or the new file, never a part.
func UpdateState(path string, change func(*State) error) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := durable.Create(path)
	if err != nil {
		return err
	}
	if err = rewrite(f, path, change); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(0o644)
}

func rewrite(f *durable.File, path string, change func(*State) error) error {
	s, err := LoadState(path)
	if err == nil {
		err = change(s)
	}
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		_, err = f.Write(append(data, '\n'))
	}
	return err
}

// Record records the import of an archive.
func (s *State) Record(solution bundle.Solution, sha256 string, signers []string, store *Store) {
	s.RecordSerials(store)
	if !readable(solution.Version) {
		return // nothing can be compared with it
	}
	if s.Floors == nil {
		s.Floors = map[string]map[string]Floor{}
	}
	floors := s.Floors[solution.Name]
	if floors == nil {
		floors = map[string]Floor{}
		s.Floors[solution.Name] = floors
	}
	for _, signer := range signers {
		if have, ok := floors[signer]; !ok || !lower(solution.Version, have.Version) {
			floors[signer] = Floor{Version: solution.Version, SHA256: sha256}
		}
	}
}

func readable(version string) bool {
	_, err := semver.StrictNewVersion(version)
	return err == nil
}

// prerelease reports whether a version is a pre-release: it may be built again with other content.
func prerelease(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && v.Prerelease() != ""
}

// RecordSerials notes how new the revocations of the store are.
func (s *State) RecordSerials(store *Store) {
	s.FormatVersion = stateFormat
	if s.Serials == nil {
		s.Serials = map[string]int64{}
	}
	for id, serial := range store.serials {
		s.Serials[id] = max(serial, s.Serials[id])
	}
}

func (s *State) checkSerials(serials map[string]int64) error {
	if s == nil {
		return nil
	}
	for id, serial := range serials {
		if seen := s.Serials[id]; serial < seen {
			return report.Errorf(report.TrustStore, "revocations.json has serial %d, but %d was seen before", serial, seen).
				WithHint("get the newest list, with its signature, from a host that has it or from the holder of the root key")
		}
	}
	return nil
}

// checkPresent refuses the present list of a root key as the one before the next when a later one was seen or issued.
func (s *State) checkPresent(root string, serial int64) error {
	if s == nil {
		return nil
	}
	if seen := max(s.Serials[root], s.Issued[root]); serial < seen {
		return report.Errorf(report.TrustStore, "revocations.json has serial %d, but %d was seen or issued before", serial, seen).
			WithHint("import the newest list into this trust store with 'solutionctl trust import', or name the state of another one with --state")
	}
	return nil
}

// Check refuses a version below the highest one that was imported (report.Downgrade), and other content under the
// same version (report.Replaced), unless that is a pre-release. Versions that only revoked keys vouched for do not count.
func (s *State) Check(solution bundle.Solution, sha256 string, revoked []string) error {
	if s == nil {
		return nil
	}
	floors := s.Floors[solution.Name]
	for _, signer := range slices.Sorted(maps.Keys(floors)) {
		floor := floors[signer]
		switch {
		case slices.Contains(revoked, signer):
		case !readable(floor.Version):
			return report.Errorf(report.TrustStore, "the state names version %q of %s, which cannot be read", floor.Version, solution.Name).
				WithHint("restore the state file from a backup; without it older versions are not recognized")
		case lower(solution.Version, floor.Version):
			return report.Errorf(report.Downgrade, "%s is older than version %s, which was imported before", solution, floor.Version).
				WithHint("if the older version is really wanted, add --allow-downgrade")
		case !lower(floor.Version, solution.Version) && floor.SHA256 != sha256 && !prerelease(solution.Version):
			return report.Errorf(report.Replaced, "%s was imported before with other content (sha256:%s)", solution, floor.SHA256).
				WithHint("a released version never changes: ask the vendor which of the two is genuine")
		}
	}
	return nil
}

// Knows reports whether this version was imported before.
func (s *State) Knows(solution bundle.Solution) bool {
	if s == nil {
		return false
	}
	for _, floor := range s.Floors[solution.Name] {
		if !lower(floor.Version, solution.Version) && !lower(solution.Version, floor.Version) {
			return true
		}
	}
	return false
}
