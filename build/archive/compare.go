package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Difference holds the changes from one archive to another. `solutionctl diff` prints it. Changes of one kind are
// ordered by name.
type Difference struct {
	From   string   `json:"from"` // id of the first archive
	To     string   `json:"to"`
	Images []Change `json:"images"`
	Blobs  Blobs    `json:"blobs"`
	CRDs   []Change `json:"crds"`
	Roles  []Change `json:"roles"`
	Files  []Change `json:"files"` // all but those of the images

	ReleaseNotes string `json:"releaseNotes,omitempty"` // of the second archive, unless the first has the same
}

// Change is one thing that was added, removed or changed.
type Change struct {
	Kind   ChangeKind `json:"kind"`
	Name   string     `json:"name"`
	Detail string     `json:"detail,omitempty"`
}

// ChangeKind is added, removed or changed.
type ChangeKind string

// The kinds of a change.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Blobs counts the distinct layers and configurations, and their bytes.
type Blobs struct {
	Added        int   `json:"added"`
	AddedBytes   int64 `json:"addedBytes"`
	Removed      int   `json:"removed"`
	RemovedBytes int64 `json:"removedBytes"`
	Shared       int   `json:"shared"`
	SharedBytes  int64 `json:"sharedBytes"`
}

// Empty reports whether the archives have the same content.
func (d *Difference) Empty() bool {
	return len(d.Images)+len(d.CRDs)+len(d.Roles)+len(d.Files)+d.Blobs.Added+d.Blobs.Removed == 0
}

// Compare returns the changes from one archive to another. Images are compared by digest, other files by content.
func Compare(from, to *Archive) (*Difference, error) {
	a, err := from.Describe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Solution.ID(), err)
	}
	b, err := to.Describe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", to.Solution.ID(), err)
	}
	d := &Difference{From: a.ID, To: b.ID, Blobs: compareBlobs(from, to)}
	d.Images = changes(a.Images, b.Images, func(i ImageDescription) string { return i.Name }, changedImage)
	d.CRDs = changes(a.CRDs, b.CRDs, func(c CRDDescription) string { return c.Name }, changedCRD)
	d.Roles = changes(a.Roles, b.Roles, RoleDescription.id, changedRole)
	if b.ReleaseNotes != a.ReleaseNotes {
		d.ReleaseNotes = b.ReleaseNotes
	}
	var unreadable error
	d.Files = changes(a.Files, b.Files, func(f FileDescription) string { return f.Path }, func(a, b FileDescription) string {
		detail, err := changedFile(from, to, a, b)
		unreadable = errors.Join(unreadable, err)
		return detail
	})
	return d, unreadable
}

// changes compares two lists of named elements. changed describes the difference between two of the same name, ""
// without one.
func changes[T any](from, to []T, name func(T) string, changed func(from, to T) string) []Change {
	before, after := map[string]T{}, map[string]T{}
	for _, element := range from {
		before[name(element)] = element
	}
	for _, element := range to {
		after[name(element)] = element
	}
	names := map[string]bool{}
	for key := range before {
		names[key] = true
	}
	for key := range after {
		names[key] = true
	}
	list := []Change{}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		a, had := before[key]
		b, has := after[key]
		switch {
		case !had:
			list = append(list, Change{Kind: Added, Name: key})
		case !has:
			list = append(list, Change{Kind: Removed, Name: key})
		default:
			if detail := changed(a, b); detail != "" {
				list = append(list, Change{Kind: Changed, Name: key, Detail: detail})
			}
		}
	}
	return list
}

func changedImage(a, b ImageDescription) string {
	if a.Digest == b.Digest {
		return ""
	}
	detail := fmt.Sprintf("%s → %s", shortDigest(a.Digest), shortDigest(b.Digest))
	if !slices.Equal(a.Platforms, b.Platforms) {
		detail += fmt.Sprintf(", platforms %v → %v", a.Platforms, b.Platforms)
	}
	return detail
}

// shortDigest keeps enough of a digest for a person to distinguish it.
func shortDigest(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(12, len(hex))]
}

func changedCRD(a, b CRDDescription) string {
	var details []string
	if a.Scope != b.Scope {
		details = append(details, fmt.Sprintf("scope %s → %s", a.Scope, b.Scope))
	}
	name := func(v CRDVersion) string { return v.Name }
	for _, change := range changes(a.Versions, b.Versions, name, changedCRDVersion) {
		detail := fmt.Sprintf("version %s %s", change.Name, change.Kind)
		if change.Detail != "" {
			detail += ": " + change.Detail
		}
		details = append(details, detail)
	}
	return strings.Join(details, "; ")
}

func changedCRDVersion(a, b CRDVersion) string {
	switch {
	case a.Served != b.Served || a.Storage != b.Storage:
		return fmt.Sprintf("%s → %s", a, b)
	case a.schema != b.schema:
		return "schema"
	default:
		return ""
	}
}

func changedRole(a, b RoleDescription) string {
	var details []string
	rule := func(r PolicyRule) string { return r.String() }
	for _, change := range changes(a.Rules, b.Rules, rule, func(PolicyRule, PolicyRule) string { return "" }) {
		details = append(details, fmt.Sprintf("%s: %s", change.Kind, change.Name))
	}
	return strings.Join(details, "; ")
}

func changedFile(from, to *Archive, a, b FileDescription) (string, error) {
	if a.Size != b.Size {
		return fmt.Sprintf("%d → %d bytes", a.Size, b.Size), nil
	}
	before, err := from.hash(a.Path)
	if err != nil {
		return "", err
	}
	after, err := to.hash(b.Path)
	if err != nil || before == after {
		return "", err
	}
	return "content", nil
}

func (a *Archive) hash(name string) (sum [sha256.Size]byte, err error) {
	f, err := a.Open(name)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, errors.Join(err, f.Close())
}

func compareBlobs(from, to *Archive) Blobs {
	var b Blobs
	before, after := from.blobSizes(), to.blobSizes()
	for digest, size := range before {
		if _, kept := after[digest]; kept {
			b.Shared++
			b.SharedBytes += size
		} else {
			b.Removed++
			b.RemovedBytes += size
		}
	}
	for digest, size := range after {
		if _, known := before[digest]; !known {
			b.Added++
			b.AddedBytes += size
		}
	}
	return b
}

func (a *Archive) blobSizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, image := range a.Images.Images() {
		for _, blob := range image.Blobs {
			sizes[blob.Digest.String()] = blob.Size
		}
	}
	return sizes
}
