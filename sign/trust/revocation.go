package trust

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// Revocations is the document revocations.json: keys, archives and versions that are not trusted any more, in spite of
// a good signature.
type Revocations struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Serial grows with every issue. A list with a lower serial than one seen before is refused.
	Serial          int64             `json:"serial"`
	Keys            []string          `json:"keys,omitempty"`            // key IDs
	Archives        []string          `json:"archives,omitempty"`        // "sha256:" and 64 hexadecimal digits
	MinimumVersions map[string]string `json:"minimumVersions,omitempty"` // by Solution
}

// ParseRevocations reads revocations.json strictly. It does not check its signature.
func ParseRevocations(data []byte) (*Revocations, error) {
	var r Revocations
	err := strictjson.Decode(data, &r)
	if err == nil {
		err = r.validate()
	}
	if err != nil {
		return nil, report.Errorf(report.TrustStore, "revocations: %w", err)
	}
	return &r, nil
}

// Marshal returns the document in a form that is the same for the same content.
func (r *Revocations) Marshal() ([]byte, error) {
	c := *r
	c.APIVersion, c.Kind = apiVersion, revocationsKind
	c.Keys, c.Archives = unique(r.Keys), unique(r.Archives)
	if err := c.validate(); err != nil {
		return nil, report.Errorf(report.Usage, "revocations: %w", err)
	}
	data, err := json.MarshalIndent(&c, "", "  ")
	return append(data, '\n'), err
}

func unique(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

func (r *Revocations) validate() error {
	if r.APIVersion != apiVersion || r.Kind != revocationsKind {
		return fmt.Errorf("apiVersion %q, kind %q; want %s, %s", r.APIVersion, r.Kind, apiVersion, revocationsKind)
	}
	if r.Serial < 1 {
		return fmt.Errorf("serial %d, want at least 1", r.Serial)
	}
	return r.validateEntries()
}

func (r *Revocations) validateEntries() error {
	for _, id := range r.Keys {
		if digest, err := base64.StdEncoding.DecodeString(id); err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("key %q is not a key ID", id)
		}
	}
	for _, archive := range r.Archives {
		digits, ok := strings.CutPrefix(archive, "sha256:")
		if digest, err := hex.DecodeString(digits); !ok || err != nil || len(digest) != sha256.Size || strings.ToLower(digits) != digits {
			return fmt.Errorf("archive %q, want sha256: and 64 hexadecimal digits", archive)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.MinimumVersions)) {
		if _, err := semver.StrictNewVersion(r.MinimumVersions[name]); err != nil || name == "" {
			return fmt.Errorf("minimum version of %q: %q is not a semantic version", name, r.MinimumVersions[name])
		}
	}
	return nil
}

// without returns the revocations that another list does not have.
func (r *Revocations) without(other *Revocations) *Revocations {
	rest := &Revocations{}
	for _, id := range r.Keys {
		if !slices.Contains(other.Keys, id) {
			rest.Keys = append(rest.Keys, id)
		}
	}
	for _, digest := range r.Archives {
		if !slices.Contains(other.Archives, digest) {
			rest.Archives = append(rest.Archives, digest)
		}
	}
	for name, version := range r.MinimumVersions {
		if have, ok := other.MinimumVersions[name]; !ok || lower(have, version) {
			rest.add(&Revocations{MinimumVersions: map[string]string{name: version}})
		}
	}
	return rest
}

// none reports whether nothing is revoked.
func (r *Revocations) none() bool { return len(r.Keys)+len(r.Archives)+len(r.MinimumVersions) == 0 }

// add adds the revocations of another list. The serial stays.
func (r *Revocations) add(other *Revocations) {
	r.Keys = append(r.Keys, other.Keys...)
	r.Archives = append(r.Archives, other.Archives...)
	for name, version := range other.MinimumVersions {
		if r.MinimumVersions == nil {
			r.MinimumVersions = map[string]string{}
		}
		if have, ok := r.MinimumVersions[name]; !ok || lower(have, version) {
			r.MinimumVersions[name] = version
		}
	}
}

// lower compares two semantic versions; one that cannot be read is lower than any other.
func lower(a, b string) bool {
	va, errA := semver.StrictNewVersion(a)
	vb, errB := semver.StrictNewVersion(b)
	if err := errors.Join(errA, errB); err != nil {
		return errA != nil
	}
	return va.LessThan(vb)
}
