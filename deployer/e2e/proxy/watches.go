package proxy

import (
	"maps"
	"net/http"
	"path"
	"sync"
)

// Watches counts the watches that are open at the same time. Its zero value is ready to use.
type Watches struct {
	mu         sync.Mutex
	open, most map[string]int
}

// Count is a fault that does no harm but to count.
func (c *Watches) Count(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	if !IsWatch(r) {
		return false
	}
	resource := path.Base(r.URL.Path)
	c.add(resource, 1)
	defer c.add(resource, -1)
	forward.ServeHTTP(w, r)
	return true
}

func (c *Watches) add(resource string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.most = map[string]int{}, map[string]int{}
	}
	c.open[resource] += n
	c.most[resource] = max(c.most[resource], c.open[resource])
}

// Most returns for each resource how many watches were open at once.
func (c *Watches) Most() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.most)
}
