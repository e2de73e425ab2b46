package schema

import "time"

// RegistryAccess is one line of the access log of `solutionctl deploy serve`: a request that is over.
type RegistryAccess struct {
	Time      time.Time `json:"time"` // when it came
	Remote    string    `json:"remote"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Namespace string    `json:"namespace,omitempty"` // the registry that the client would have asked
	// Operation is ping, catalog, tags, manifest, blob, referrers or other.
	Operation  string `json:"operation" schema:"enum=ping|catalog|tags|manifest|blob|referrers|other"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"` // of the manifest or blob that was sent
	Range      string `json:"range,omitempty"`
	Status     int    `json:"status" schema:"minimum=0"` // 0: the client left before it was answered
	Bytes      int64  `json:"bytes" schema:"minimum=0"`  // of the body, that were sent
	// Microseconds is how long it took, with the time for which it waited for its turn.
	Microseconds       int64  `json:"microseconds" schema:"minimum=0"`
	WaitedMicroseconds int64  `json:"waitedMicroseconds,omitempty" schema:"minimum=0"`
	UserAgent          string `json:"userAgent,omitempty"`
	Error              string `json:"error,omitempty"` // why less was sent than was promised
}
