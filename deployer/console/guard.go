package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
)

const (
	maxBody     = 2 << 20          // what a form may have: an object of Kubernetes, twice
	bodyTimeout = 30 * time.Second // for sending it
)

// guard keeps foreign pages, names and frames away from the console, and everything private out of caches.
func (c *Console) guard(host string, next http.Handler) http.Handler {
	next = http.MaxBytesHandler(http.NewCrossOriginProtection().Handler(next), maxBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", page.ContentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store") // what is no secret says so itself
		if c.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !strings.EqualFold(r.Host, host) { // a name of somebody else that leads here: DNS rebinding
			http.Error(w, "the console is at "+c.Origin, http.StatusMisdirectedRequest)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			// A client that sends its form byte by byte is not waited for.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) //nolint:forbidigo // a deadline of the network is not a time that people read
		}
		next.ServeHTTP(w, r)
	})
}

// local is a path of this console, with its query; anything else becomes its root. It keeps a link from leading people
// elsewhere once they are logged in.
func local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return to
}
