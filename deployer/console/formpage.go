package console

import (
	"net/http"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/console/session"
)

// formPage is the page with the form that a request has sent, to which a browser returns after a login. It has the
// inputs that cannot be secret: the names of a new environment, and parameters of a plan. Confirmations are requested
// again, and so are other inputs, unless the script of the page has kept them.
func formPage(r *http.Request) string {
	path := r.URL.EscapedPath()
	parts := strings.Split(strings.Trim(path, "/"), "/")
	last, kept := parts[len(parts)-1], []string(nil)
	switch {
	case path == "/environments":
		path, kept = "/environments/new", []string{"name", "namespace", "description", "adopt", "of"}
	case len(parts) > 1 && parts[len(parts)-2] == "plan":
		kept = []string{"solution", "namespace", "version", "revision", "data", choiceProfile, choiceComponent}
	case parts[0] == "environments" && last == "apps":
		path, kept = path+"/new", []string{"kind", "name"}
	case last == "scale":
		path = strings.TrimSuffix(path, "/scale")
	case parts[0] == "operations":
		path = "/operations"
	case parts[0] == "uploads":
		path = "/import"
	case parts[0] == "settings" && last != "remove":
		path = "/settings"
	case path == "/settings/remove", path == "/import/path":
		return path + query(r, "endpoint", "key", "path")
	}
	if to := path + query(r, kept...); len(to) <= session.MaxPath {
		return to
	}
	return path
}

// query are some of the fields of a form as the query of an address, and those that the address had.
func query(r *http.Request, names ...string) string {
	_ = r.ParseForm() // an unreadable form is not kept
	fields := r.URL.Query()
	for _, name := range names {
		if values := r.PostForm[name]; len(values) > 0 && values[0] != "" {
			fields[name] = values
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return "?" + fields.Encode()
}
