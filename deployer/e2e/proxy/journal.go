package proxy

import (
	"net/http"
	"slices"
	"sync"
)

// Journal keeps the requests of several clients in the order in which they came. Its zero value is ready to use.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
}

// Entry is a request that has reached a proxy.
type Entry struct {
	Client string // as it was called in [Journal.Of]
	Method string
	URI    string
	Write  bool // see [IsWrite]
}

// Of returns a fault that does no harm and notes every request as one of the client.
func (j *Journal) Of(client string) Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.entries = append(j.entries, Entry{Client: client, Method: r.Method, URI: r.URL.RequestURI(), Write: IsWrite(r)})
		return false
	}
}

// Entries returns what was noted so far.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}
