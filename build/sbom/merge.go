package sbom

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
)

// merger merges the layers of images. Its work for one archive is limited.
type merger struct {
	limit    limits
	seed     maphash.Seed
	lookups  int
	packages int
	stated   int   // packages in bills of materials that images bring
	bills    int64 // bytes of these
}

// located is a file that names packages, in the merged file system of an image.
type located struct {
	*find
	path  string
	layer oci.Digest
}

// merge returns the files that name packages and that no upper layer hides, sorted by path.
func (m *merger) merge(blobs []oci.Blob, layers map[oci.Digest]*layer) ([]located, error) {
	state := map[string]located{}
	for _, blob := range blobs {
		upper := layers[blob.Digest]
		for name := range state {
			if m.hides(upper, name) {
				delete(state, name)
			}
		}
		if m.lookups > m.limit.lookups {
			return nil, errLayer
		}
		for name, found := range upper.finds {
			state[name] = located{found, name, blob.Digest}
		}
	}
	var merged []located
	for _, name := range slices.Sorted(maps.Keys(state)) {
		merged = append(merged, state[name])
		m.packages += len(state[name].packages)
	}
	if m.packages > m.limit.packages {
		return nil, errLayer
	}
	return merged, nil
}

// hides reports whether a layer has a file, a whiteout or an opaque directory in the place of a file of a lower layer, or of a directory
// above it.
func (m *merger) hides(upper *layer, name string) bool {
	if len(upper.hidden) == 0 && len(upper.opaque) == 0 && len(upper.dirs) == 0 {
		return false
	}
	m.lookups++
	hash := maphash.String(m.seed, name)
	if contains(upper.hidden, hash) || contains(upper.dirs, hash) {
		return true
	}
	for name != "" {
		name = name[:max(0, strings.LastIndexByte(name, '/'))]
		m.lookups++
		hash = maphash.String(m.seed, name)
		if contains(upper.opaque, hash) || name != "" && contains(upper.hidden, hash) {
			return true
		}
	}
	return false
}

func contains(sorted []uint64, hash uint64) bool {
	_, found := slices.BinarySearch(sorted, hash)
	return found
}
