package schemas

import (
	"bytes"
	_ "embed" // the descriptions
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

//go:embed schemas.zst
var compressed []byte

// maxDecoded bounds the embedded descriptions after decompression: four times their present size.
const maxDecoded = 1 << 20

// Catalogue holds the descriptions of every supported release. It may be used by several goroutines.
type Catalogue struct {
	index index
	lines [][]byte // one reduced definition each; parsed when first needed

	mu     sync.Mutex
	parsed map[int]*node
}

// index is the first line of the embedded file; package main in internal/gen writes it.
type index struct {
	Releases   []string    `json:"releases"`
	Kinds      []kindRow   `json:"kinds"`
	Rows       [][]int     `json:"rows"` // definition → release → line
	Lifecycles []lifecycle `json:"lifecycles"`
}

type kindRow struct {
	Group        string   `json:"g"`
	Version      string   `json:"v"`
	Kind         string   `json:"k"`
	Resource     string   `json:"r"`
	Namespaced   bool     `json:"n"`
	Subresources []string `json:"s"`
	Definition   int      `json:"d"`
	Releases     []int    `json:"in"`
}

// Load opens the embedded descriptions. It costs about two milliseconds: call it once and share the result.
func Load() (*Catalogue, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded))
	if err != nil {
		return nil, fmt.Errorf("kubernetes descriptions: %w", err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("kubernetes descriptions: %w", err)
	}
	c := &Catalogue{lines: bytes.Split(text, []byte{'\n'}), parsed: map[int]*node{}}
	if err := json.Unmarshal(c.lines[0], &c.index); err != nil {
		return nil, fmt.Errorf("kubernetes descriptions: %w", err)
	}
	return c, nil
}

// Versions returns the supported minor releases, oldest first: "1.30", "1.31" and so on.
func (c *Catalogue) Versions() []string {
	versions := make([]string, len(c.index.Releases))
	for i, release := range c.index.Releases {
		versions[i] = minorOf(release)
	}
	return versions
}

// Release returns the description of one minor release. It accepts "1.34", and the forms that clusters report:
// "v1.34.2", "1.34.2-eks-1".
func (c *Catalogue) Release(version string) (*Release, error) {
	n := slices.Index(c.Versions(), minorOf(strings.TrimPrefix(version, "v")))
	if n < 0 {
		versions := c.Versions()
		return nil, report.Errorf(report.Invalid, "kubernetes version %q is not known", version).
			WithHint("choose a release from %s to %s", versions[0], versions[len(versions)-1])
	}
	r := &Release{catalogue: c, number: n, kinds: map[schema.GroupVersionKind]*kindRow{}}
	for i := range c.index.Kinds {
		row := &c.index.Kinds[i]
		if slices.Contains(row.Releases, n) {
			r.kinds[schema.GroupVersionKind{Group: row.Group, Version: row.Version, Kind: row.Kind}] = row
		}
	}
	return r, nil
}

// minorOf cuts "1.34.2-eks-1" to "1.34" and returns "" when there is no minor release in it.
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	minor, _, _ := strings.Cut(parts[1], "-")
	minor = strings.TrimSuffix(minor, "+") // "34+", as some distributions report it
	if _, err := strconv.Atoi(minor); err != nil {
		return ""
	}
	return parts[0] + "." + minor
}

// definition returns the definition with the given number as release has it, parsed at its first use.
func (c *Catalogue) definition(number, release int) *node {
	line := c.index.Rows[number][release]
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.parsed[line]; ok {
		return n
	}
	n := &node{}
	if err := json.Unmarshal(c.lines[line], n); err != nil {
		panic("kube: embedded definition " + strconv.Itoa(line) + ": " + err.Error()) // a test parses every line
	}
	c.parsed[line] = n
	return n
}

// Resource is a kind of object that a release serves.
type Resource struct {
	schema.GroupVersionKind
	Name         string   // plural, as in URLs and roles: "deployments"
	Subresources []string // "scale", "status"
	Namespaced   bool
}

func (k *kindRow) resource() Resource {
	return Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
		Name:             k.Resource, Subresources: slices.Clone(k.Subresources), Namespaced: k.Namespaced,
	}
}

// Release describes one minor release of Kubernetes. It may be used by several goroutines.
type Release struct {
	catalogue *Catalogue
	number    int
	kinds     map[schema.GroupVersionKind]*kindRow
	resolved  sync.Map // definition number → *node: a cache in front of the catalogue's lock
}

// Version returns the minor release, "1.34".
func (r *Release) Version() string { return minorOf(r.catalogue.index.Releases[r.number]) }

// Resource returns the resource of a kind; false when the release does not serve it: a custom resource, or an API that
// was removed or does not exist yet.
func (r *Release) Resource(gvk schema.GroupVersionKind) (Resource, bool) {
	row, ok := r.kinds[gvk]
	if !ok {
		return Resource{}, false
	}
	return row.resource(), true
}

// Resources returns every resource that the release serves, ordered by group, version and kind.
func (r *Release) Resources() []Resource {
	var all []Resource
	for i := range r.catalogue.index.Kinds {
		if row := &r.catalogue.index.Kinds[i]; slices.Contains(row.Releases, r.number) {
			all = append(all, row.resource())
		}
	}
	return all
}

// Scope looks a resource up by its plural name, as roles name it; a subresource ("pods/log") has the scope of its
// resource. Known is false for resources that the release does not serve in any version of the group.
func (r *Release) Scope(group, resource string) (namespaced, known bool) {
	resource, _, _ = strings.Cut(resource, "/")
	for _, row := range r.kinds {
		if row.Group == group && row.Resource == resource {
			return row.Namespaced, true
		}
	}
	return false, false
}

// definition resolves a reference without taking the catalogue's lock each time.
func (r *Release) definition(number int) *node {
	if n, ok := r.resolved.Load(number); ok {
		return n.(*node)
	}
	n := r.catalogue.definition(number, r.number)
	r.resolved.Store(number, n)
	return n
}
