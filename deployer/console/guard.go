package console

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
)

const (
	maxBody     = 2 << 20          // bounds a form: an object of Kubernetes, twice
	bodyTimeout = 30 * time.Second // for sending it
)

// guard keeps foreign pages, names and frames away from the console, and everything private out of caches.
func (c *Console) guard(host string, next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", page.ContentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store") // public assets override it
		if c.server.Login.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if r.URL.Path == "/healthz" { // those who supervise the program call it by its address
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if !strings.EqualFold(r.Host, host) { // another name for this address: DNS rebinding
			http.Error(w, "the console is at "+c.Origin, http.StatusMisdirectedRequest)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			// A client that sends its form byte by byte is not waited for.
			connection := http.NewResponseController(w)
			_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) //nolint:forbidigo // a deadline of the network is not a time that people read
			r.Body = &timedBody{r.Body, connection}
		}
		r.Body = http.MaxBytesReader(w, r.Body, cmp.Or(c.archives.BodyLimit(r), maxBody))
		next.ServeHTTP(w, r)
	})
}

// timedBody ends its deadline with the body: net/http continues to read the connection, and cancels the request when the deadline passes.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *timedBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if errors.Is(err, io.EOF) {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// below handles only paths below that of the origin. The router would redirect an unclean path to one without the
// origin's path.
func (c *Console) below(next http.Handler) http.Handler {
	next = http.StripPrefix(c.server.Login.Base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		switch {
		case c.server.Login.Base != "" && escaped == c.server.Login.Base:
			http.Redirect(w, r, c.server.Login.Base+"/", http.StatusSeeOther)
		case !strings.HasPrefix(escaped, c.server.Login.Base+"/") || r.URL.Path != clean(r.URL.Path):
			http.NotFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// clean is a path without empty elements and dots.
func clean(p string) string {
	cleaned := path.Clean(p)
	if cleaned != "/" && strings.HasSuffix(p, "/") {
		cleaned += "/"
	}
	return cleaned
}
