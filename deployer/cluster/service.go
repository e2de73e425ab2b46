package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PostToService posts JSON to a Service that speaks HTTPS, through the API server, which does not verify its certificate. It
// tries once: the request must be harmless, and the caller must not depend on an answer.
func (c *Cluster) PostToService(ctx context.Context, namespace, name string, port int32, path string, body []byte) ([]byte, error) {
	r := request{
		verb: "create", method: http.MethodPost, about: fmt.Sprintf("ask Service %s/%s", namespace, name), namespace: namespace, body: body,
		path: fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy/%s", namespace, name, port, strings.TrimPrefix(path, "/")),
	}
	answer, err := c.attempt(ctx, r)
	if err != nil {
		return nil, c.translate(ctx, r, err)
	}
	return answer, nil
}

// Service is a Service behind the API server.
type Service struct {
	Namespace, Name string
	Port            int
	TLS             bool // the API server does not verify its certificate
}

func (s Service) String() string { return fmt.Sprintf("Service %s/%s", s.Namespace, s.Name) }

// proxied is how the API server, and a role that names it, call the Service.
func (s Service) proxied() string {
	scheme := "http"
	if s.TLS {
		scheme = "https"
	}
	return fmt.Sprintf("%s:%s:%d", scheme, s.Name, s.Port)
}

// PermissionToGet is the right to read from a Service, and from nothing else.
func (s Service) PermissionToGet() Permission {
	return Permission{Verb: "get", Resource: "services", Subresource: "proxy", Namespace: s.Namespace, Name: s.proxied()}
}

// GetFromService reads from a Service through the API server, with the rights of the user, once: no more than so many bytes, and
// whatever it answers is taken for its own answer, not for that of the API server.
func (c *Cluster) GetFromService(ctx context.Context, s Service, path string, limit int64) ([]byte, error) {
	r := request{
		verb: "get", method: http.MethodGet, about: "ask " + s.String(), namespace: s.Namespace,
		path: fmt.Sprintf("/api/v1/namespaces/%s/services/%s/proxy/%s", s.Namespace, s.proxied(), strings.TrimPrefix(path, "/")),
	}
	body, err := c.open(ctx, r)
	if status, answered := errors.AsType[*apierrors.StatusError](err); answered {
		const enough = 200
		said := strings.ToValidUTF8(status.ErrStatus.Message[:min(len(status.ErrStatus.Message), enough)], "")
		return nil, report.Errorf(report.Unavailable, "%s answers with status %d: %q", s, status.ErrStatus.Code, said)
	}
	if err != nil {
		return nil, c.translate(ctx, r, err)
	}
	defer func() { _ = body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, c.translate(ctx, r, err)
	case int64(len(answer)) > limit:
		return nil, report.Errorf(report.Unavailable, "%s answers with more than %d bytes", s, limit)
	}
	return answer, nil
}

// isProxied reports whether the path is of a request that a server behind the API server answers.
func isProxied(path string) bool { return strings.Contains(path, "/proxy/") }
