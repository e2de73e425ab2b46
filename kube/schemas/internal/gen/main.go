// Command gen writes schemas.zst, the reduced OpenAPI descriptions that package kube embeds.
//
// Its sources are Go modules, fetched through the Go module proxy and nothing else: k8s.io/kubernetes for the OpenAPI
// documents that each release publishes, k8s.io/api for the values of enumerations, which those documents leave out,
// and for the releases in which an API was deprecated and removed. The same modules give the same bytes.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// releases are the newest patch releases that the module proxy has, one for each supported minor release.
var releases = []string{"1.30.14", "1.31.14", "1.32.13", "1.33.13", "1.34.5", "1.35.4", "1.36.3"}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err) //nolint:forbidigo // a generator is a command
		os.Exit(1)                           //nolint:forbidigo // a generator is a command
	}
}

func run(output string) error {
	set := newSet()
	for _, release := range releases {
		if err := set.add(release); err != nil {
			return fmt.Errorf("kubernetes %s: %w", release, err)
		}
	}
	for _, module := range []string{"k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"} {
		dir, err := moduleDir(module + "@v0" + strings.TrimPrefix(releases[len(releases)-1], "1"))
		if err != nil {
			return err
		}
		if err := set.readLifecycles(filepath.Join(dir, "pkg/apis")); err != nil {
			return err
		}
	}
	text, err := set.marshal()
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return os.WriteFile(output, encoder.EncodeAll(text, nil), 0o644)
}

func moduleDir(module string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w: %s", module, err, out)
	}
	var info struct{ Dir string }
	err = json.Unmarshal(out, &info)
	return info.Dir, err
}

// set collects the definitions of all releases. A definition that is the same in several releases is kept once.
type set struct {
	releases  []string
	lines     [][]byte             // reduced definitions; line 0 is the index
	byContent map[string]int       // reduced definition → line
	names     map[string]int       // definition name → row of rows
	rows      [][]int              // name → release → line, 0 where the release does not have it
	kinds     map[string]*kind     // group/version/kind
	lifecycle map[string]lifecycle // group/version/kind
}

type kind struct {
	Group        string   `json:"g,omitempty"`
	Version      string   `json:"v"`
	Kind         string   `json:"k"`
	Resource     string   `json:"r"`
	Namespaced   bool     `json:"n,omitempty"`
	Subresources []string `json:"s,omitempty"`
	Definition   int      `json:"d"`
	Releases     []int    `json:"in"`
}

func newSet() *set {
	return &set{
		lines: [][]byte{nil}, byContent: map[string]int{}, names: map[string]int{},
		kinds: map[string]*kind{}, lifecycle: map[string]lifecycle{},
	}
}

func (s *set) add(release string) error {
	s.releases = append(s.releases, release)
	apis, err := moduleDir("k8s.io/api@v0" + strings.TrimPrefix(release, "1"))
	if err != nil {
		return err
	}
	enums, err := readEnums(apis)
	if err != nil {
		return err
	}
	if err = s.readLifecycles(apis); err != nil {
		return err
	}
	dir, err := moduleDir("k8s.io/kubernetes@v" + release)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "api/openapi-spec/v3/*_openapi.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no OpenAPI documents in %s: %w", dir, err)
	}
	for _, file := range files {
		if err := s.addDocument(file, enums); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// document is the part of an OpenAPI v3 document that is read.
type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]*openapi `json:"schemas"`
	} `json:"components"`
}

type openapi struct {
	Ref                  string              `json:"$ref"`
	AllOf                []*openapi          `json:"allOf"`
	OneOf                []*openapi          `json:"oneOf"`
	Type                 string              `json:"type"`
	Format               string              `json:"format"`
	Default              any                 `json:"default"`
	Properties           map[string]*openapi `json:"properties"`
	Required             []string            `json:"required"`
	Items                *openapi            `json:"items"`
	AdditionalProperties *openapi            `json:"additionalProperties"`
	ListType             string              `json:"x-kubernetes-list-type"`
	ListMapKeys          []string            `json:"x-kubernetes-list-map-keys"`
	GVKs                 []gvk               `json:"x-kubernetes-group-version-kind"`
}

type gvk struct{ Group, Version, Kind string }

func (s *set) addDocument(file string, enums map[string][]string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	definitions := map[gvk]string{}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		schema := doc.Components.Schemas[name]
		if err := s.addDefinition(name, schema, enums); err != nil {
			return err
		}
		for _, g := range schema.GVKs {
			definitions[g] = name
		}
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		if err := s.addPath(path, doc.Paths[path], definitions); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (s *set) addDefinition(name string, schema *openapi, enums map[string][]string) error {
	line, err := json.Marshal(s.reduce(name, schema, enums))
	if err != nil {
		return err
	}
	number, ok := s.byContent[string(line)]
	if !ok {
		number = len(s.lines)
		s.lines = append(s.lines, line)
		s.byContent[string(line)] = number
	}
	row := s.rows[s.row(name)]
	if have := row[len(s.releases)-1]; have != 0 && have != number {
		return fmt.Errorf("%s has two definitions in one release", name)
	}
	row[len(s.releases)-1] = number
	return nil
}

func (s *set) row(name string) int {
	number, ok := s.names[name]
	if !ok {
		number = len(s.rows)
		s.names[name] = number
		s.rows = append(s.rows, make([]int, len(releases)))
	}
	return number
}

// node holds the part of a schema that is kept; package kube reads it back.
type node struct {
	Type       string           `json:"t,omitempty"`
	Format     string           `json:"f,omitempty"`
	Ref        *int             `json:"$,omitempty"`
	Properties map[string]*node `json:"p,omitempty"`
	Required   []string         `json:"r,omitempty"`
	Items      *node            `json:"i,omitempty"`
	Values     *node            `json:"a,omitempty"`
	Enum       []string         `json:"e,omitempty"`
	Keys       []string         `json:"k,omitempty"`
	Set        bool             `json:"u,omitempty"`
	Default    any              `json:"d,omitempty"`
}

func (s *set) reduce(name string, schema *openapi, enums map[string][]string) *node {
	ref := schema.Ref
	if len(schema.AllOf) == 1 {
		ref = schema.AllOf[0].Ref
	}
	if ref != "" {
		row := s.row(strings.TrimPrefix(ref, "#/components/schemas/"))
		return &node{Ref: &row}
	}
	n := &node{Type: schema.Type, Format: schema.Format, Required: schema.Required, Enum: enums[name]}
	if strings.HasSuffix(name, ".api.resource.Quantity") {
		n.Format = "quantity"
	}
	switch schema.Default.(type) {
	case string, float64, bool:
		if schema.Default != "" {
			n.Default = schema.Default
		}
	}
	if schema.ListType == "map" {
		n.Keys = schema.ListMapKeys
	}
	n.Set = schema.ListType == "set"
	for field, property := range schema.Properties {
		if n.Properties == nil {
			n.Properties = map[string]*node{}
		}
		n.Properties[field] = s.reduce(name+"."+field, property, enums)
	}
	if schema.Items != nil {
		n.Items = s.reduce(name, schema.Items, enums)
	}
	if schema.AdditionalProperties != nil {
		n.Values = s.reduce(name, schema.AdditionalProperties, enums)
	}
	return n
}

// addPath notes the resource, its scope and its subresources from a path such as
// /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale.
func (s *set) addPath(path string, operations map[string]json.RawMessage, definitions map[gvk]string) error {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		segments = segments[3:]
	default:
		return nil
	}
	if segments[0] == "watch" {
		return nil
	}
	namespaced := len(segments) > 2 && segments[0] == "namespaces" && segments[1] == "{namespace}"
	if namespaced {
		segments = segments[2:]
	}
	var operation struct {
		GVK gvk `json:"x-kubernetes-group-version-kind"`
	}
	for _, method := range []string{"post", "put", "get"} {
		if data, ok := operations[method]; ok {
			if err := json.Unmarshal(data, &operation); err != nil {
				return err
			}
			break
		}
	}
	if len(segments) == 3 && segments[1] == "{name}" {
		s.addSubresource(path, segments[0], segments[2])
		return nil
	}
	name, ok := definitions[operation.GVK]
	if !ok || len(segments) > 2 || strings.HasSuffix(operation.GVK.Kind, "List") {
		return nil
	}
	s.addKind(operation.GVK, segments[0], namespaced, s.row(name))
	return nil
}

func (s *set) addKind(g gvk, resource string, namespaced bool, definition int) {
	key := g.Group + "/" + g.Version + "/" + g.Kind
	k := s.kinds[key]
	if k == nil {
		k = &kind{Group: g.Group, Version: g.Version, Kind: g.Kind, Resource: resource, Definition: definition}
		s.kinds[key] = k
	}
	k.Namespaced = k.Namespaced || namespaced
	if release := len(s.releases) - 1; !slices.Contains(k.Releases, release) {
		k.Releases = append(k.Releases, release)
	}
}

// addSubresource relies on the order of paths: …/{name} is seen before …/{name}/status.
func (s *set) addSubresource(path, resource, subresource string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	group, version := "", segments[1]
	if segments[0] == "apis" {
		group, version = segments[1], segments[2]
	}
	for _, k := range s.kinds {
		if k.Group == group && k.Version == version && k.Resource == resource && !slices.Contains(k.Subresources, subresource) {
			k.Subresources = append(k.Subresources, subresource)
			slices.Sort(k.Subresources)
		}
	}
}

func (s *set) marshal() ([]byte, error) {
	kinds := make([]*kind, 0, len(s.kinds))
	for _, key := range slices.Sorted(maps.Keys(s.kinds)) {
		kinds = append(kinds, s.kinds[key])
	}
	lives := make([]lifecycle, 0, len(s.lifecycle))
	for _, key := range slices.Sorted(maps.Keys(s.lifecycle)) {
		lives = append(lives, s.lifecycle[key])
	}
	index, err := json.Marshal(map[string]any{"releases": s.releases, "kinds": kinds, "rows": s.rows, "lifecycles": lives})
	if err != nil {
		return nil, err
	}
	s.lines[0] = index
	return append(bytes.Join(s.lines, []byte{'\n'}), '\n'), nil
}
