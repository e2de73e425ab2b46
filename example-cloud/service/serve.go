package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// A pod learns that it has to end when everybody else does, and each node takes it out of its rules for Services by itself: mostly
// within a second, on a busy node after half a minute. A server that leaves before refuses connections, so it serves until no
// request comes any more. Package serve of example-solution does the same for servers with several ports.
const (
	// gracePeriod is the terminationGracePeriodSeconds of every pod: then Kubernetes kills it.
	gracePeriod = 60 * time.Second
	// quietTime is the time without requests after which a server is out of the endpoints.
	quietTime = 5 * time.Second
	// finishTime is the part of the grace period for the last requests; spareTime is left for the process to end.
	finishTime = 10 * time.Second
	spareTime  = 2 * time.Second
)

// serve answers until ctx is done and no request comes for quietTime, or until the grace period is nearly over. Requests that have begun
// are finished.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	visits := make(chan struct{}, 1)
	server := &http.Server{Handler: noticed(ctx, handler, visits), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	awaitQuiet(visits)
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	err := server.Shutdown(finish)
	if failure := <-failed; !errors.Is(failure, http.ErrServerClosed) {
		err = errors.Join(err, failure)
	}
	return err
}

// noticed answers /healthz, which fails once ctx is done, and sends to visits when any other request begins and when it ends. Once ctx is
// done it asks clients not to use the connection again: the next one leads to another server.
func noticed(ctx context.Context, handler http.Handler, visits chan<- struct{}) http.Handler {
	notice := func() {
		select {
		case visits <- struct{}{}:
		default:
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		notice()
		defer notice()
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
	return mux
}

// awaitQuiet returns when there was no visit for quietTime, or when the grace period is nearly over.
func awaitQuiet(visits <-chan struct{}) {
	quiet, over := time.NewTimer(quietTime), time.NewTimer(gracePeriod-finishTime-spareTime)
	defer quiet.Stop()
	defer over.Stop()
	for {
		select {
		case <-visits:
			quiet.Reset(quietTime)
		case <-quiet.C:
			return
		case <-over.C:
			return
		}
	}
}
