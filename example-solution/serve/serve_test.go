package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func ExampleHealth() {
	ctx, stop := context.WithCancel(context.Background())
	h := Health(ctx, http.NotFoundHandler())
	probe := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	fmt.Println(probe("/healthz"), probe("/readyz"))
	stop()
	fmt.Println(probe("/healthz"), probe("/readyz"))
	// Output:
	// 200 200
	// 200 503
}

// pod is a page and its health, on a network in memory and with a clock that needs no time.
type pod struct {
	page, health *listener
	stop         context.CancelFunc // as SIGTERM does
	stopped      time.Time
	ended        chan error
}

func start(t *testing.T, page http.Handler) *pod {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &pod{page: listen(), health: listen(), ended: make(chan error, 1)}
	p.stop = func() { p.stopped = time.Now(); stop() }
	go func() {
		p.ended <- Run(ctx, Endpoint{Listener: p.page, Handler: page}, Endpoint{Listener: p.health, Handler: Health(ctx, http.NotFoundHandler()), Internal: true})
	}()
	return p
}

// end expects an end without an error, and returns how long after the stop it came.
func (p *pod) end(t *testing.T) time.Duration {
	t.Helper()
	if err := <-p.ended; err != nil {
		t.Errorf("got %v", err)
	}
	took := time.Since(p.stopped)
	for _, l := range []*listener{p.page, p.health} {
		if a := l.get("/"); a.err == nil {
			t.Errorf("after the end: got %d, want no connection", a.code)
		}
	}
	return took
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "complete") }

// TestRunServesWhileAsked checks that a server that is ending answers requests as long as a node sends them, without keeping their
// connections. Probes report the end at once, and do not delay it.
func TestRunServesWhileAsked(t *testing.T) {
	for name, test := range map[string]struct {
		asked, want time.Duration // for how long it is asked after the stop, and when it ends
	}{
		"no requests":                 {0, QuietTime},
		"a node is slow":              {26 * time.Second, 26*time.Second + QuietTime},
		"requests without end":        {time.Hour, GracePeriod - finishTime - spareTime},
		"one request before it is so": {QuietTime - time.Second, 2*QuietTime - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, http.HandlerFunc(ok))
				if a := p.health.get("/readyz"); a.code != http.StatusOK {
					t.Errorf("readyz before the end: got %+v", a)
				}
				if a := p.page.get("/"); a.body != "complete" || a.closes {
					t.Errorf("before the end: got %+v", a)
				}
				p.stop()
				for time.Since(p.stopped) < min(test.asked, test.want-time.Second) {
					time.Sleep(time.Second)
					if a := p.page.get("/"); a.body != "complete" || !a.closes {
						t.Fatalf("%s after the stop: got %+v", time.Since(p.stopped), a)
					}
					if a := p.health.get("/readyz"); a.code != http.StatusServiceUnavailable {
						t.Errorf("readyz after the stop: got %+v", a)
					}
				}
				asking := make(chan struct{})
				go func() {
					defer close(asking)
					for time.Since(p.stopped) < test.asked && p.page.get("/").err == nil {
						time.Sleep(100 * time.Millisecond)
					}
				}()
				// A server that is asked at this moment looks again, some milliseconds later.
				if took := p.end(t); took < test.want || took > test.want+time.Second {
					t.Errorf("it ended %s after the stop, want %s", took, test.want)
				}
				<-asking
			})
		})
	}
}

// TestRunLosesNoRequest ends the servers in the middle of a long request: it is answered, and then no server listens any more.
func TestRunLosesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(QuietTime + finishTime/2)
			ok(w, r)
		}))
		answers := make(chan answer)
		go func() { answers <- p.page.get("/") }()
		synctest.Wait()
		p.stop()
		if a := <-answers; a.body != "complete" {
			t.Errorf("running request: got %+v", a)
		}
		if took := p.end(t); took >= GracePeriod {
			t.Errorf("it ended %s after the stop, and is killed after %s", took, GracePeriod)
		}
	})
}

// TestRunFails when one listener does, and ends the others.
func TestRunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := listen(), listen()
		if err := bad.Close(); err != nil {
			t.Fatal(err)
		}
		err := Run(t.Context(), Endpoint{Listener: good, Handler: http.NotFoundHandler()}, Endpoint{Listener: bad, Handler: http.NotFoundHandler()})
		if err == nil {
			t.Error("got no error")
		}
		if a := good.get("/"); a.err == nil {
			t.Error("the other endpoint still answers")
		}
	})
}

// listener is one in memory.
type listener struct {
	connections chan net.Conn
	closed      chan struct{}
	close       sync.Once
}

func listen() *listener {
	return &listener{connections: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (l *listener) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.connections <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

type answer struct {
	code   int
	body   string
	closes bool // the server does not keep the connection
	err    error
}

// get makes a request on a connection of its own.
func (l *listener) get(path string) (a answer) {
	transport := &http.Transport{DialContext: l.dial}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://pod" + path)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(data), response.Close, err}
}
