// Package serve runs the HTTP servers of this Solution's components the way Kubernetes expects them to behave: probes
// and metrics on a port of their own, and an orderly end that loses no request.
//
// A pod learns that it has to end at the same moment as the nodes, and not after them. Each node takes the pod out of its
// rules for Services by itself: mostly within a second, on a busy node after half a minute. Until then the node leads new
// connections to the pod, and a pod that ends earlier refuses them. No fixed pause (preStop, sleep) is right for both. So a server
// serves until no more requests come, and at the latest until the rest of its grace period is needed for what it has
// begun.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// GracePeriod is the terminationGracePeriodSeconds of every pod that calls Run: then Kubernetes kills it.
	GracePeriod = 60 * time.Second
	// QuietTime is the time without requests after which a server believes that it is out of the endpoints.
	QuietTime = 5 * time.Second
	// finishTime is the last requests' part of the grace period; spareTime is left for the process to end.
	finishTime = 10 * time.Second
	spareTime  = 2 * time.Second
)

// Endpoint is a handler and where it is reached.
type Endpoint struct {
	Listener net.Listener
	Handler  http.Handler
	// Internal marks an endpoint for probes and metrics, which are read for as long as the process runs: such requests do not keep it from
	// ending.
	Internal bool
}

// Run serves all endpoints until one of them fails, or ctx is done and no more requests come: for QuietTime, or until the grace period is
// nearly over. Then it stops them one after the other, in the order given, and lets each finish the requests it has begun. It closes the
// listeners.
func Run(ctx context.Context, endpoints ...Endpoint) error {
	var running sync.WaitGroup
	failed := make(chan error, len(endpoints))
	servers := make([]*http.Server, len(endpoints))
	visits := make(chan struct{}, 1)
	for i, e := range endpoints {
		handler := e.Handler
		if !e.Internal {
			handler = noticed(ctx, handler, visits)
		}
		servers[i] = &http.Server{
			Handler:           handler,
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
		err = awaitQuiet(visits, failed)
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	for _, s := range servers {
		err = errors.Join(err, s.Shutdown(finish))
	}
	running.Wait()
	return err
}

// noticed sends to visits when a request begins and when it ends. Once ctx is done it asks clients not to use the connection
// again: the next one leads to another server.
func noticed(ctx context.Context, handler http.Handler, visits chan<- struct{}) http.Handler {
	notice := func() {
		select {
		case visits <- struct{}{}:
		default:
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notice()
		defer notice()
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// awaitQuiet returns when there was no visit for QuietTime, when the grace period is nearly over, or when a server fails.
func awaitQuiet(visits <-chan struct{}, failed <-chan error) error {
	quiet, over := time.NewTimer(QuietTime), time.NewTimer(GracePeriod-finishTime-spareTime)
	defer quiet.Stop()
	defer over.Stop()
	for {
		select {
		case <-visits:
			quiet.Reset(QuietTime)
		case <-quiet.C:
			return nil
		case <-over.C:
			return nil
		case err := <-failed:
			return err
		}
	}
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
