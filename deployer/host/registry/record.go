package registry

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// recorder records the status and the size of an answer. It passes ReadFrom on: without that, blobs would be copied
// through this process.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	reason error // why the answer is not the requested content
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	n, err := io.Copy(w.ResponseWriter, r) // which is its ReadFrom, if it has one
	w.bytes += n
	return n, err
}

func (w *recorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish counts a request and logs it.
func (g *Registry) finish(x *exchange, started time.Time) {
	took := g.options.Now().Sub(started)
	g.counters.count(x, took)
	if g.options.Log == nil {
		return
	}
	entry := schema.RegistryAccess{
		Time: started.UTC(), Remote: host(x.r.RemoteAddr), Method: x.r.Method, Path: x.r.URL.Path, Namespace: x.namespace,
		Operation: x.route.operation.String(), Repository: x.route.repository, Digest: x.digest, Range: x.r.Header.Get("Range"),
		Status: x.w.status, Bytes: x.w.bytes, Microseconds: took.Microseconds(), WaitedMicroseconds: x.waited.Microseconds(),
		UserAgent: x.r.UserAgent(),
	}
	if x.route.operation == manifestOf && x.route.reference != x.digest {
		entry.Tag = x.route.reference
	}
	if x.w.reason != nil {
		entry.Error = x.w.reason.Error()
	}
	g.options.Log(entry)
}

func host(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
