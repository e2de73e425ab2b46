// Package serve runs the HTTP servers of this Solution's components the way Kubernetes expects them to behave: probes
// and metrics on a port of their own, and an orderly end that loses no request.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// drainTime is how long running requests may take after the end was asked for; Kubernetes kills 30 seconds after it.
const drainTime = 20 * time.Second

// Endpoint is a handler and where it is reached.
type Endpoint struct {
	Listener net.Listener
	Handler  http.Handler
}

// Run serves all endpoints until ctx is done or one of them fails. Then it stops them one after the other, in the order
// given, and lets each finish the requests it has begun. It closes the listeners.
func Run(ctx context.Context, endpoints ...Endpoint) error {
	var running sync.WaitGroup
	failed := make(chan error, len(endpoints))
	servers := make([]*http.Server, len(endpoints))
	for i, e := range endpoints {
		servers[i] = &http.Server{
			Handler:           e.Handler,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			IdleTimeout:       2 * time.Minute,
		}
		running.Go(func() { failed <- servers[i].Serve(e.Listener) })
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	for _, s := range servers {
		err = errors.Join(err, s.Shutdown(drain))
	}
	running.Wait()
	return err
}

// Health answers /healthz while the process runs, /readyz until ctx is done, and /metrics.
func Health(ctx context.Context, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
