// Package serve runs the registry of a host: it serves the archives of the store, and follows imports and unimports
// while it runs.
//
// [Run] returns when its context ends, after the transfers in progress are complete. An archive that cannot be served
// does not affect the others: it is reported, retried from time to time, and left out until then. An archive that was
// imported in place can change on its medium while the host is down, so all of it is compared with its digests before
// it is served; archives that were copied into the store are served at once.
//
// The package changes nothing on the host except the access log.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options are the archives to serve, and the address.
type Options struct {
	Store    *store.Store        // its archives are served; may be nil
	Archives []*registry.Archive // are served as well, and closed at the end

	Listen        string      // address
	TLS           *tls.Config // nil: plain HTTP
	MetricsListen string      // address of /metrics; empty: the same as Listen, and never with TLS
	AccessLog     *AccessLog  // nil: none

	Registry registry.Options // Log and Missed are set by Run
	Sink     report.Sink
	ErrorLog *log.Logger //nolint:forbidigo // net/http wants one
	// Reload asks to look at everything again, and to open the access log again.
	Reload <-chan struct{}
	// Ready is called once, when everything listens, with the URL of the registry; may be nil.
	Ready func(url string)
	// Stopping is called once, when no new requests are accepted any more; may be nil.
	Stopping func()
}

const (
	// interval is the time until an import is noticed without a request for it.
	interval = time.Second
	// drainTimeout is how long open requests continue after the end.
	drainTimeout = 30 * time.Second
)

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	if o.AccessLog != nil {
		o.Registry.Log = o.AccessLog.write
	}
	var k *keeper
	if o.Store != nil {
		o.Registry.Missed = func(ctx context.Context) { k.lookNow(ctx) }
	}
	r := registry.New(o.Registry)
	k = newKeeper(r, o)
	defer func() { err = errors.Join(err, k.close()) }()
	if err = k.start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	listeners, err := listen(ctx, &o, r, k)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		group.Go(func() error { return l.serve() })
		group.Go(func() error {
			<-ctx.Done()
			return l.stop()
		})
	}
	group.Go(func() error { return k.follow(ctx, o.Reload) })
	o.Sink.Emit(report.Event{Step: "listen", Name: listeners[0].url, State: report.Done})
	if o.Ready != nil {
		o.Ready(listeners[0].url)
	}
	group.Go(func() error {
		<-ctx.Done()
		r.Drain()
		if o.Stopping != nil {
			o.Stopping()
		}
		return nil
	})
	return group.Wait()
}

// listener is a server and its socket.
type listener struct {
	net.Listener
	server *http.Server
	url    string
}

// listen opens the sockets, that of the registry first.
func listen(ctx context.Context, o *Options, r *registry.Registry, k *keeper) ([]*listener, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &page{registry: r, keeper: k, tls: o.TLS})
	if o.MetricsListen == "" {
		main, err := open(ctx, o.Listen, o.TLS, both{registry: r, others: mux}, o)
		return []*listener{main}, err
	}
	main, err := open(ctx, o.Listen, o.TLS, r, o)
	if err != nil {
		return nil, err
	}
	metrics, err := open(ctx, o.MetricsListen, nil, mux, o)
	if err != nil {
		return nil, errors.Join(err, main.Close())
	}
	return []*listener{main, metrics}, nil
}

// both sends one path to another handler. It does not wrap the writer, so that sendfile still works.
type both struct {
	registry http.Handler
	others   http.Handler
}

func (b both) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		b.others.ServeHTTP(w, r)
		return
	}
	b.registry.ServeHTTP(w, r)
}

func open(ctx context.Context, address string, config *tls.Config, h http.Handler, o *Options) (*listener, error) {
	var sockets net.ListenConfig
	socket, err := sockets.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, report.As(report.Failure, err).WithHint("choose another address with --listen HOST:PORT")
	}
	l := &listener{Listener: socket, server: registry.NewServer(h), url: "http://" + socket.Addr().String()}
	l.server.TLSConfig, l.server.ErrorLog = config, o.ErrorLog
	if config != nil {
		l.url = "https://" + socket.Addr().String()
	}
	return l, nil
}

func (l *listener) serve() error {
	serve := l.server.Serve
	if l.server.TLSConfig != nil {
		serve = func(socket net.Listener) error { return l.server.ServeTLS(socket, "", "") }
	}
	if err := serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", l.url, err)
	}
	return nil
}

// stop lets clients finish, within reason.
func (l *listener) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := l.server.Shutdown(ctx); err != nil {
		return l.server.Close()
	}
	return nil
}
