package oci_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/oci/ocitest"
)

// stopping ends the context at a request that writes.
type stopping struct {
	at   int64
	n    atomic.Int64
	kill context.CancelFunc
}

func (s *stopping) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && s.n.Add(1) == s.at {
		s.kill()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestPushToServer pushes to a real registry, is stopped at 20 points of it, and pushes again and a further version.
func TestPushToServer(t *testing.T) {
	for name, start := range ocitest.Servers() {
		t.Run(name, func(t *testing.T) { pushToServer(t, start(t)) })
	}
}

func pushToServer(t *testing.T, host string) {
	t.Helper()
	list := uploads(t, host)
	push := func(ctx context.Context, o oci.PushOptions) (*oci.Push, error) { // with pauses: the server may still be busy with what was stopped
		p, err := oci.NewPush(ctx, list, nil, o)
		if err == nil {
			err = p.Run(ctx)
		}
		return p, err
	}
	for at := int64(1); at <= 20; at++ {
		ctx, kill := context.WithCancel(t.Context())
		_, err := push(ctx, oci.PushOptions{Transport: &stopping{at: at, kill: kill}})
		kill()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: %v", at, err)
		}
	}
	if _, err := push(t.Context(), oci.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	checkPushed(t, list)
	again, err := push(t.Context(), oci.PushOptions{})
	if err != nil || again.NewBlobs != 0 {
		t.Errorf("the next push sends %d blobs: %v", again.NewBlobs, err)
	}
	for i := range list {
		list[i].Repository += "/next"
	}
	next, err := oci.NewPush(t.Context(), list, uploads(t, host), oci.PushOptions{})
	if err == nil {
		err = next.Run(t.Context())
	}
	if err != nil || next.NewBlobs != 0 || next.Mounts == 0 {
		t.Errorf("a further version sends %d blobs and mounts %d: %v", next.NewBlobs, next.Mounts, err)
	}
	checkPushed(t, list)
}
