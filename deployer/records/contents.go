package records

import (
	"sync"

	"github.com/solutionctl/solutionctl/deployer/render"
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
