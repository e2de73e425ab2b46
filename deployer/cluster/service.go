package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// PostToService posts JSON to a Service that speaks HTTPS, through the API server, which does not verify its certificate. It
// tries once: what is asked for has to be harmless, and whoever asks can do without an answer.
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
