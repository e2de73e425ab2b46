package console

import (
	"net/http"
	"strings"
	"time"
)

// policy lets a page load and send nothing but what this console has, and no script make HTML of text. The policy of trusted
// types has the name that the script of package page gives it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types solutionctl"

const (
	maxBody     = 2 << 20          // what a form may have: an object of Kubernetes, twice
	bodyTimeout = 30 * time.Second // for sending it
)

// guard keeps foreign pages, names and frames away from the console, and everything private out of caches.
func (c *Console) guard(host string, next http.Handler) http.Handler {
	next = http.MaxBytesHandler(http.NewCrossOriginProtection().Handler(next), maxBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
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
