package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host/node"
)

// The clients, and the link of each host.
const (
	clients       = 100
	linkRate      = "150mbit"
	linkPerSecond = 150e6 / 8
)

// client pulls as containerd does: it asks the endpoints in the order of its file for each layer, three at a time, and continues a layer that
// breaks off at the next one.
type client struct {
	http      *http.Client
	endpoints []string
}

// newClient returns the client of a node.
func (s *site) newClient(transport *http.Client, name string) *client {
	s.Helper()
	c := node.Config{Runtime: node.Containerd, Host: "registry.solutionctl.invalid", Node: name}
	for _, h := range s.hosts {
		c.Endpoints = append(c.Endpoints, "https://"+h.NodeAddress()+":5000")
	}
	files, err := node.Files(c)
	if err != nil {
		s.Fatal(err)
	}
	var order []string
	content := string(files[len(files)-1].Content)
	server, rest, _ := strings.Cut(content, "\n[host.")
	for _, part := range append(strings.Split(rest, "[host."), server) { // the server is asked last
		_, address, _ := strings.Cut(part, "https://")
		address, _, _ = strings.Cut(address, "\"")
		order = append(order, "https://"+address)
	}
	return &client{http: transport, endpoints: order}
}

// open asks for the rest of an object until an endpoint sends it.
func (c *client) open(ctx context.Context, what string, offset int64) (body io.ReadCloser, err error) {
	for _, endpoint := range c.endpoints {
		request, failure := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/v2/site-0.1.0/"+what, nil)
		if failure != nil {
			return nil, failure
		}
		if offset > 0 {
			request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		}
		answer, failure := c.http.Do(request)
		switch {
		case failure != nil:
			err = errors.Join(err, failure)
		case answer.StatusCode/100 == 2:
			return answer.Body, nil
		default:
			err = errors.Join(err, fmt.Errorf("%s: %s", endpoint, answer.Status), answer.Body.Close())
		}
	}
	return nil, err
}

// layer reads a blob to its end, and returns its size.
func (c *client) layer(ctx context.Context, digest string, size int64) error {
	offset := int64(0)
	for attempts := 0; offset < size; attempts++ {
		body, err := c.open(ctx, "image00/blobs/"+digest, offset)
		if err != nil || attempts == 10 {
			return fmt.Errorf("%s at %d: %w", digest, offset, err)
		}
		n, _ := io.Copy(io.Discard, body) // it continues
		offset += n
		_ = body.Close()
	}
	return nil
}

// pull pulls the image, and returns the bytes of its layers.
func (c *client) pull(ctx context.Context) (int64, error) {
	body, err := c.open(ctx, "image00/manifests/1", 0)
	if err != nil {
		return 0, err
	}
	var manifest struct {
		Layers []struct {
			Digest string
			Size   int64
		}
	}
	if err = errors.Join(json.NewDecoder(body).Decode(&manifest), body.Close()); err != nil {
		return 0, err
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(3)
	total := int64(0)
	for _, l := range manifest.Layers {
		total += l.Size
		group.Go(func() error { return c.layer(inGroup, l.Digest, l.Size) })
	}
	return total, group.Wait()
}

// TestHundredClients lets a hundred nodes pull the same image from three hosts at once, and again while a host ends after a third of that time.
// All pulls are complete. The floor is the time of all bytes on the links of three hosts.
func TestHundredClients(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Alone(t)
	testcluster.Long(t, "TestDeadHosts, and for the shares TestNodesBeginElsewhere of deployer/host/node")
	s := newSite(t)
	for _, h := range s.hosts {
		if err := h.Shape(linkRate); err != nil {
			t.Fatal(err)
		}
	}
	all := func(during func()) (took time.Duration, bytes int64) {
		t.Helper()
		var group errgroup.Group
		started := time.Now()
		sizes := make([]int64, clients)
		for i := range clients {
			group.Go(func() (err error) {
				transport := &http.Transport{DialContext: s.cluster.DialNode, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test
				defer transport.CloseIdleConnections()
				sizes[i], err = s.newClient(&http.Client{Transport: transport}, fmt.Sprintf("node-%03d", i)).pull(t.Context())
				return err
			})
		}
		during()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		for _, size := range sizes {
			bytes += size
		}
		return time.Since(started), bytes
	}
	healthy, bytes := all(func() {})
	floor := time.Duration(float64(bytes) / 3 / linkPerSecond * float64(time.Second))
	first := map[string]int{}
	for i := range clients {
		first[path.Base(s.newClient(nil, fmt.Sprintf("node-%03d", i)).endpoints[0])]++
	}
	t.Logf("%d bytes, the floor is %v: %v, %.2f times; nodes by their first host: %v", bytes, floor, healthy, healthy.Seconds()/floor.Seconds(), first)
	killed, _ := all(func() {
		time.Sleep(healthy / 3)
		s.hosts[0].stop()
	})
	t.Logf("a host ends after %v: %v, %.2f times", healthy/3, killed, killed.Seconds()/floor.Seconds())
	if most := 1.15; healthy.Seconds() > most*floor.Seconds() {
		t.Errorf("three hosts took %.2f times the floor, want at most %.2f", healthy.Seconds()/floor.Seconds(), most)
	}
	if most := 1.6; killed.Seconds() > most*floor.Seconds() {
		t.Errorf("with one host killed it took %.2f times the floor, want at most %.2f", killed.Seconds()/floor.Seconds(), most)
	}
}
