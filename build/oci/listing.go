package oci

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// listing is an index.json, whose entries are found by name. Callers share it, and do not change it.
type listing struct {
	all    []Descriptor
	images []Descriptor // without those that stand in for another
	places map[listedName][]int
	err    error // of a document that is not valid
}

// listedName is a name of an entry, as text, as a digest, or as the full form of a reference.
type listedName struct {
	kind nameKind
	name string
}

type nameKind int

const (
	asText nameKind = iota
	asDigest
	asReference
)

// list parses index.json once, whether it is valid or not: a project takes each of its images from the same layout.
func (l *layout) list() (*listing, error) {
	listed, err := l.listed.get(func() (*listing, error) {
		data, err := readFile(l.fsys, indexFile)
		if err != nil {
			return nil, err
		}
		return parseListing(data), nil
	})
	if err != nil {
		return nil, err
	}
	return listed, listed.err
}

func parseListing(data []byte) *listing {
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		return &listing{err: report.Errorf(report.Invalid, "index.json is not valid: %w", err)}
	}
	if n := len(index.Manifests); n > maxDescriptors {
		return &listing{err: report.Errorf(report.Invalid, "index.json lists %d manifests, the limit is %d", n, maxDescriptors).
			WithHint("copy the images into several layouts, or take them from a registry")}
	}
	for _, d := range index.Manifests {
		if err := checkDescriptor(d); err != nil {
			return &listing{err: inContext(indexFile, err)}
		}
	}
	listed := &listing{
		all: index.Manifests, images: slices.DeleteFunc(slices.Clone(index.Manifests), isStandIn), places: map[listedName][]int{},
	}
	for i, d := range listed.images {
		listed.add(i, asDigest, d.Digest.String())
		listed.add(i, asText, d.Annotations[refName])
		if full := d.Annotations[fullName]; full != "" {
			listed.add(i, asText, full)
			listed.add(i, asReference, normalReference(full))
		}
	}
	return listed
}

func (l *listing) add(i int, kind nameKind, name string) {
	if name != "" {
		key := listedName{kind, name}
		l.places[key] = append(l.places[key], i)
	}
}

// named returns the entries that have a name, in a slice of the caller's own. A digest can follow an "@".
func (l *listing) named(ref string) []Descriptor {
	places := slices.Concat(l.places[listedName{asText, ref}], l.places[listedName{asDigest, strings.TrimPrefix(ref, "@")}],
		l.places[listedName{asReference, normalReference(ref)}])
	slices.Sort(places)
	var found []Descriptor
	for _, i := range slices.Compact(places) {
		found = append(found, l.images[i])
	}
	return found
}

// refNames returns the names of entries of index.json, for messages; their digests where they have none.
func refNames(index []Descriptor) []string {
	var names []string
	known := map[string]bool{}
	for _, d := range index {
		name := d.Annotations[refName]
		if name == "" {
			name = d.Digest.String()
			if p := platformOf(d); p != (schema.Platform{}) {
				name += " (" + p.String() + ")"
			}
		}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	return names
}
