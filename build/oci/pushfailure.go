package oci

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// temporaryForWriter reports whether a request that writes may succeed when it is repeated. A token expires, and a
// registry that loses an upload asks for another range.
func (e *requestError) temporaryForWriter() bool {
	return e.temporary() || e.status == http.StatusUnauthorized || e.status == http.StatusRequestedRangeNotSatisfiable
}

// isOverload reports an answer of a registry that cannot keep up.
func (e *requestError) isOverload() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusRequestedRangeNotSatisfiable || e.status >= http.StatusInternalServerError
}

// noRoom are parts of messages of registries that have no room left: Harbor's quota, a full disk below distribution.
var noRoom = []string{"quota", "exceed", "no space left", "insufficient storage", "storage resource"}

// failure describes a request that failed, with what an administrator does about it. It has nothing secret.
func (t *repository) failure(x exchange, err error, resp *http.Response) error {
	what, _, _ := strings.Cut(x.what, "?")
	_, coded := errors.AsType[*report.Error](err)
	if !coded && !errors.Is(err, context.Canceled) {
		failed := newRequestError(err, resp)
		if hint := t.remedy(failed, x); hint != "" {
			return report.Errorf(report.Unavailable, "%s: %s: %w", t, what, failed).WithHint("%s", hint)
		}
	}
	e := &endpoint{r: &Resolver{o: Options{CertsDirs: t.c.o.CertsDirs, NoMirrors: true}}, repo: t.repo} // uploads go to this one registry
	return e.failure(what, err, resp)
}

// remedy returns the hint for a failed request that writes; "" for a failure that reading has as well.
func (t *repository) remedy(failed *requestError, x exchange) string {
	host, path := t.repo.RegistryStr(), t.repo.RepositoryStr()
	project, _, _ := strings.Cut(path, "/")
	message := strings.ToLower(failed.err.Error())
	for _, sign := range noRoom {
		if strings.Contains(message, sign) {
			return "make room in " + host + ", or raise the quota of its project " + project + ", then run the same command again: it continues"
		}
	}
	switch failed.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "log in as a user who may push to " + path + ": `docker login " + host + "` or `podman login " + host + "`; in registries with projects, " + project + " has to exist"
	case http.StatusNotFound:
		if x.method != http.MethodHead && x.method != http.MethodGet {
			return "create the project " + project + " in " + host + ", then run the same command again"
		}
	case http.StatusRequestEntityTooLarge:
		return "raise the largest size of a request in the proxy before " + host + " (client_max_body_size in nginx)"
	case http.StatusInsufficientStorage:
		return "make room in " + host + ", then run the same command again: it continues"
	case http.StatusMethodNotAllowed:
		return host + " is read-only or is a cache of another registry: name one that takes images"
	case http.StatusBadRequest, http.StatusPreconditionFailed, http.StatusConflict, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return host + " refuses it by a rule of its own, such as for tags that must not change or for media types: see its log"
	}
	if failed.status == http.StatusTooManyRequests || failed.status >= http.StatusInternalServerError {
		return host + " cannot keep up or has a fault: run the same command again later, with --jobs 1; it continues"
	}
	if errors.Is(failed.err, errElsewhere) {
		return "push to the registry by the address that it gives itself, and correct the proxy before it if that is another one"
	}
	return ""
}
