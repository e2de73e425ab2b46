package oci

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

const defaultDockerHost = "unix:///var/run/docker.sock"

// daemonTarball spools an image from the daemon, like `docker save`.
func (r *Resolver) daemonTarball(ctx context.Context, ref string) (*place, error) {
	return r.places.get(kindDockerDaemon+":"+ref, func() (*place, error) {
		body, err := r.saveImage(ctx, ref)
		if err != nil {
			return nil, err
		}
		defer func() { _ = body.Close() }()
		return r.spool(ctx, body)
	})
}

// saveImage asks the Docker API for an image; the path without a version means the daemon's own.
func (r *Resolver) saveImage(ctx context.Context, ref string) (io.ReadCloser, error) {
	host := r.o.DockerHost
	if host == "" {
		host = defaultDockerHost
	}
	network, address, err := dockerAddress(host)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/images/get?names="+url.QueryEscape(ref), nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, report.Errorf(report.Unavailable, "docker daemon at %s: %w", host, withoutURL(err)).
			WithHint("is Docker running, and may you use its socket? otherwise: `docker save %s | solutionctl build …` with the source docker-archive:-", ref)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, daemonError(host, ref, resp)
	}
	return resp.Body, nil
}

func dockerAddress(host string) (network, address string, err error) {
	scheme, rest := trimScheme(host)
	switch scheme {
	case "unix":
		return "unix", rest, nil
	case "tcp", "http":
		return "tcp", strings.TrimSuffix(rest, "/"), nil
	default:
		return "", "", report.Errorf(report.Invalid, "docker host %q is neither unix:// nor tcp://", host).
			WithHint("save the image to a file instead: `docker save -o FILE IMAGE`, then docker-archive:FILE")
	}
}

func daemonError(host, ref string, resp *http.Response) error {
	var answer struct {
		Message string `json:"message"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil || json.Unmarshal(data, &answer) != nil || answer.Message == "" {
		answer.Message = resp.Status
	}
	if resp.StatusCode == http.StatusNotFound {
		return report.Errorf(report.Invalid, "docker daemon at %s: %s", host, answer.Message).
			WithHint("pull or build the image first: `docker pull %s`; `docker images` lists the existing ones", ref)
	}
	return report.Errorf(report.Unavailable, "docker daemon at %s: %s", host, answer.Message)
}
