package cluster

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Forward passes connections to a port of 127.0.0.1 on to a port of a pod, through the API server and with the rights of the user. Local
// is 0 for any free port. Ready is called with the port once it is open. Forward returns nil when ctx is done, and an error when the
// connection to the pod is lost.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, remote, local int, ready func(port int)) error {
	r, err := c.request(ctx, "create", http.MethodGet, PodKind, namespace, pod)
	if err != nil {
		return err
	}
	r.addSubresource("portforward")
	dialer, err := c.dialer(r)
	if err != nil {
		return err
	}
	opened, stop := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{strconv.Itoa(local) + ":" + strconv.Itoa(remote)}, stop, opened, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	failed := func(err error) error {
		if ctx.Err() != nil {
			return nil
		}
		return report.Errorf(report.Unavailable, "forward a port to Pod %s/%s: %w", namespace, pod, err).
			WithHint("run the same command again; it needs the permission to create pods/portforward")
	}
	for {
		select {
		case err = <-done:
			return failed(cmp.Or(err, errors.New("the pod ended the connection")))
		case <-ctx.Done():
			close(stop)
			<-done //nolint:errcheck // it ends because it was stopped
			return nil
		case <-opened:
			opened = nil // it stays closed
			if ports, err := forwarder.GetPorts(); err == nil && len(ports) > 0 {
				ready(int(ports[0].Local))
			}
		}
	}
}

// dialer speaks over a WebSocket, and to servers that do not know it over SPDY.
func (c *Cluster) dialer(r request) (httpstream.Dialer, error) {
	address := url.URL{Scheme: c.base.Scheme, Host: c.base.Host, Path: c.base.Path + r.path}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, &address)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(&address, c.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(dialer, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
