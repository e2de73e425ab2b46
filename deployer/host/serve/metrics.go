package serve

import (
	"crypto/tls"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/metrics"
)

// page is /metrics.
type page struct {
	registry *registry.Registry
	keeper   *keeper
	tls      *tls.Config // nil: nothing is encrypted
}

const prefix = "solutionctl_registry_"

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text metrics.Page
	p.registry.WriteMetrics(&text)
	p.keeper.writeMetrics(&text)
	if p.tls != nil {
		expiry := 0.
		// The certificate for a client that does not send a server name.
		if pair, err := p.tls.GetCertificate(&tls.ClientHelloInfo{}); err == nil && pair.Leaf != nil {
			expiry = float64(pair.Leaf.NotAfter.Unix())
		}
		text.Family(prefix+"certificate_expiry_timestamp_seconds", metrics.Gauge, "When the certificate expires that clients are shown; 0 when there is none.").
			Add(expiry)
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = text.WriteTo(w) // the client may be gone
}

// state is how an archive stands.
type state string

const (
	stateServed     state = "served"
	stateVerifying  state = "verifying"  // it is compared with its digests, and served afterwards
	stateUnreadable state = "unreadable" // its file is gone, replaced, or cannot be read
	stateDamaged    state = "damaged"    // its bytes are not those that were imported
)

// stateOf is the state of an archive about which there is an error, or nil.
func stateOf(err error) state {
	switch {
	case err == nil:
		return stateServed
	case isDamaged(err):
		return stateDamaged
	default:
		return stateUnreadable
	}
}

// standing is an archive as the keeper has seen it last.
type standing struct {
	state    state
	verified time.Time // when all of it was compared with its digests; zero: never
}

// outlook is the last observed state of the store, and of each archive by its id.
type outlook struct {
	readable bool
	archives map[string]standing
}

// writeMetrics may be called by any goroutine, once the keeper was started.
func (k *keeper) writeMetrics(text *metrics.Page) {
	seen := k.outlook.Load()
	states := text.Family(prefix+"archive_state", metrics.Gauge, "Archives by state: served, verifying, unreadable or damaged.")
	for _, id := range slices.Sorted(maps.Keys(seen.archives)) {
		states.Add(1, "archive", id, "state", string(seen.archives[id].state))
	}
	verified := text.Family(prefix+"archive_verified_timestamp_seconds", metrics.Gauge, "When all of an archive was compared with its digests last.")
	for _, id := range slices.Sorted(maps.Keys(seen.archives)) {
		if at := seen.archives[id].verified; !at.IsZero() {
			verified.Add(float64(at.Unix()), "archive", id)
		}
	}
	if k.store == nil {
		return
	}
	readable := 0.
	if seen.readable {
		readable = 1
	}
	text.Family(prefix+"store_readable", metrics.Gauge, "Whether the store could be read when it was looked at last.").Add(readable)
	if free, total, err := k.store.Space(); err == nil {
		text.Family(prefix+"store_free_bytes", metrics.Gauge, "What is free for archives in the file system of the store.").Add(float64(free))
		text.Family(prefix+"store_size_bytes", metrics.Gauge, "The size of the file system of the store.").Add(float64(total))
	}
}
