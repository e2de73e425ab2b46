package records

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// maxContents bounds the files of payloads in memory, in bytes.
const maxContents = 16 << 20

// contents are payloads that were read from the cluster, for a run that reads one several times and a process that runs many verbs. A payload
// parses its files and renders its charts once, so it is decoded once. A digest always stands for the same payload; the catalogue decides
// whether it may still be used. The zero value is ready to use.
type contents struct {
	mu       sync.Mutex
	byDigest map[string]*render.Payload
	size     int
}

// get returns the payload with a digest, nil if it is not in memory.
func (c *contents) get(digest string) *render.Payload {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byDigest[digest]
}

// put keeps a payload, and drops all others if there are too many.
func (c *contents) put(digest string, p *render.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byDigest[digest] != nil {
		return
	}
	if c.byDigest == nil || c.size+p.Size() > maxContents {
		c.byDigest, c.size = map[string]*render.Payload{}, 0
	}
	c.byDigest[digest] = p
	c.size += p.Size()
}

// lastCatalog is the catalogue that was read last. Verbs of a process mostly read the same one, and to validate it takes longer than to read it. The
// zero value is ready to use.
type lastCatalog struct {
	mu      sync.Mutex
	encoded string
	imports *schema.Imports
}

// parse returns the catalogue in a Secret. The caller may add and remove imports, but must not change one.
func (l *lastCatalog) parse(secret *unstructured.Unstructured) (*schema.Imports, error) {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", importsKey)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.imports == nil || l.encoded != encoded {
		imports, err := parseImports(encoded)
		if err != nil {
			return nil, err
		}
		l.encoded, l.imports = encoded, imports
	}
	imports := *l.imports
	imports.Imports = maps.Clone(l.imports.Imports)
	return &imports, nil
}
