package proxy

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Counts has the requests that pass a proxy by their kinds, such as "list nodes", and the sizes of their answers. Its zero value is ready to
// use.
type Counts struct {
	mu     sync.Mutex
	counts map[string]Count
}

// Count is the number of requests of a kind and the bytes of all their answers.
type Count struct {
	Requests int
	Bytes    int64
}

// Count is a fault that does no harm but to count.
func (c *Counts) Count(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	counted := &counting{ResponseWriter: w}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.counts == nil {
			c.counts = map[string]Count{}
		}
		kind := KindOf(r)
		before := c.counts[kind]
		c.counts[kind] = Count{before.Requests + 1, before.Bytes + counted.bytes}
	}()
	forward.ServeHTTP(counted, r)
	return true
}

// Take returns the counts since it was called last.
func (c *Counts) Take() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := maps.Clone(c.counts)
	clear(c.counts)
	return taken
}

type counting struct {
	http.ResponseWriter
	bytes int64
}

func (c *counting) Write(data []byte) (int, error) {
	n, err := c.ResponseWriter.Write(data)
	c.bytes += int64(n)
	return n, err
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// KindOf returns the verb of a request and its resource, as in roles: "list pods", "list metadata of nodes", "watch deployments in a
// namespace". What has no resource is "get /version".
func KindOf(r *http.Request) string {
	resource, inNamespace, isObject := target(r.URL.Path)
	verb := strings.ToLower(r.Method)
	switch {
	case IsWatch(r):
		verb = "watch"
	case r.Method == http.MethodGet && !isObject && resource != r.URL.Path:
		verb = "list"
	case r.Method == http.MethodPost:
		verb = "create"
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		verb += " metadata of"
	}
	switch {
	case isObject || r.Method != http.MethodGet:
	case inNamespace:
		resource += " in a namespace"
	case strings.Contains(r.URL.Query().Get("fieldSelector"), "spec.nodeName="):
		resource += " of a node"
	}
	return verb + " " + resource
}

// target returns the resource of a path, and whether it names a namespace and an object of it; the path itself if it has no resource.
func target(path string) (resource string, inNamespace, isObject bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return path, false, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts, inNamespace = parts[2:], true
	}
	return parts[0], inNamespace, len(parts) > 1
}
