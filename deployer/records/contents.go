package records

import (
	"sync"
)

// maxContents bounds the payloads in memory, in bytes.
const maxContents = 16 << 20

// contents are payloads that were read from the cluster, for a process that runs many verbs. A digest always stands for
// the same; whether it still may be used is the catalogue's to say. Its zero value is ready to use.
type contents struct {
	mu       sync.Mutex
	byDigest map[string][]byte
	size     int
}

// load returns the content with a digest; read fetches it when it is not cached. The caller must not change the result.
func (c *contents) load(digest string, read func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	data, known := c.byDigest[digest]
	c.mu.Unlock()
	if known {
		return data, nil
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byDigest == nil || c.size+len(data) > maxContents {
		c.byDigest, c.size = map[string][]byte{}, 0
	}
	if c.byDigest[digest] == nil {
		c.byDigest[digest] = data
		c.size += len(data)
	}
	return data, nil
}
