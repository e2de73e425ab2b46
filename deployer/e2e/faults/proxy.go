//go:build linux

package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// proxy stands between the program and the API server, counts the calls and ends the program at one of them.
type proxy struct {
	URL    string
	server http.Server
	to     *httputil.ReverseProxy

	mu    sync.Mutex
	fatal int    // the call that kills, counted from 1; 0 is none
	after bool   // the server executes the fatal call
	kill  func() // ends the program
	dead  bool
	ended chan struct{} // closed when the program has ended
	end   func()
	calls []string
	open  sync.WaitGroup // calls on their way
}

func newProxy(config *rest.Config) (*proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{URL: "http://" + listener.Addr().String()}
	p.to = &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server.Handler = p
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return p, nil
}

// arm prepares for one run of the program, which is killed at a call.
func (p *proxy) arm(fatal int, after bool, kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fatal, p.after, p.dead, p.calls = fatal, after, false, nil
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	p.ended, p.end, p.kill = ended, end, func() { kill(); end() }
}

// over waits until the server has finished what it was asked, and returns the calls and whether the program was killed.
func (p *proxy) over() (calls []string, killed bool) {
	p.mu.Lock()
	killed, p.dead = p.dead, true
	p.end()
	p.mu.Unlock()
	p.open.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, killed
}

// admit counts a call. When the program has been or will be killed, it returns a channel that is closed then.
func (p *proxy) admit(r *http.Request) (fatal bool, refused <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false, p.ended
	}
	p.calls = append(p.calls, r.Method+" "+r.URL.RequestURI())
	p.open.Add(1)
	fatal = len(p.calls) == p.fatal
	p.dead = fatal
	return fatal, nil
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fatal, refused := p.admit(r)
	if refused != nil {
		<-refused // a program that is about to be killed sees no error
		panic(http.ErrAbortHandler)
	}
	defer p.open.Done()
	watch := r.URL.Query().Get("watch") == "true"
	if fatal {
		if p.after && !watch {
			p.to.ServeHTTP(&unheard{header: http.Header{}}, withoutEnd(r))
		}
		p.kill()
		panic(http.ErrAbortHandler)
	}
	if !watch {
		r = withoutEnd(r)
	}
	p.to.ServeHTTP(w, r)
}

// withoutEnd is a request that the server finishes although its client dies.
func withoutEnd(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client died before it had sent all of it
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}

// unheard is an answer that is lost.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(p []byte) (int, error) { return len(p), nil }
func (u *unheard) WriteHeader(int)             {}
