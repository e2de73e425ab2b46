package proxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
)

// Fault may treat a request itself; it reports whether it did. If not, the next fault is asked, and in the end the API
// server. Faults that lose something end in a panic, as handlers of net/http do that give up a connection.
type Fault func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool

// When restricts a fault to some requests.
func When(match func(*http.Request) bool, f Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return match(r) && f(w, r, forward)
	}
}

// Sometimes restricts a fault to one of n requests, as the dice of the seed fall, though never to the first one: who has
// never reached a server does not try again.
func Sometimes(n int, seed uint64, f Fault) Fault {
	var (
		mu    sync.Mutex
		begun bool
		dice  = rand.New(rand.NewPCG(1, seed))
	)
	hit := func() bool {
		mu.Lock()
		defer mu.Unlock()
		first := !begun
		begun = true
		return !first && dice.IntN(n) == 0
	}
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return hit() && f(w, r, forward)
	}
}

// At restricts a fault to one request, counted from 1 among those that it sees.
func At(n int64, f Fault) Fault {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return seen.Add(1) == n && f(w, r, forward)
	}
}

// OneOf takes the faults in turn.
func OneOf(faults ...Fault) Fault {
	var next atomic.Uint64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return faults[(next.Add(1)-1)%uint64(len(faults))](w, r, forward)
	}
}

// Answer answers with a status, as an API server does that is overloaded, or what stands before it.
func Answer(status int, header ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, "not now", status)
		return true
	}
}

// Cut loses the request on its way.
func Cut(http.ResponseWriter, *http.Request, http.Handler) bool { panic(http.ErrAbortHandler) }

// Lose lets the server do its work and loses the answer.
func Lose(_ http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	if !IsWatch(r) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
	}
	panic(http.ErrAbortHandler)
}

// Reset loses the answers to everything that is on its way, as when a load balancer restarts.
func Reset(p *Proxy) Fault {
	return func(_ http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		go p.Reset() // it waits for the handlers, of which this is one
		return Lose(nil, r, forward)
	}
}

// Do does something and lets the request pass.
func Do(f func()) Fault {
	return func(http.ResponseWriter, *http.Request, http.Handler) bool {
		f()
		return false
	}
}

// BreakWatch passes a few pieces of a watch on and breaks off in the middle of the next.
func BreakWatch(pieces int) Fault {
	return When(IsWatch, func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		forward.ServeHTTP(&breaking{ResponseWriter: w, left: pieces}, r)
		return true
	})
}

// breaking takes some pieces and half of another one.
type breaking struct {
	http.ResponseWriter
	left int
}

var errBroken = errors.New("the proxy breaks the connection")

func (b *breaking) Write(data []byte) (int, error) {
	if b.left--; b.left >= 0 {
		return b.ResponseWriter.Write(data)
	}
	_, _ = b.ResponseWriter.Write(data[:len(data)/2]) // it breaks in any case
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	return 0, errBroken
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// ShortWatch makes the server end watches after a second and send no bookmarks.
func ShortWatch(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	if !IsWatch(r) {
		return false
	}
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("timeoutSeconds", "1")
	query.Del("allowWatchBookmarks")
	r.URL.RawQuery = query.Encode()
	forward.ServeHTTP(w, r)
	return true
}

const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`

// ExpiredWatch answers that the history from which a watch is to continue has expired.
func ExpiredWatch(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if !IsWatch(r) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_, _ = fmt.Fprint(w, expired) // who is gone does not need it
	return true
}

// ExpiringWatch sends the same in the stream of a watch that was accepted.
func ExpiringWatch(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if !IsWatch(r) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", expired)
	return true
}
