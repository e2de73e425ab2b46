package oci_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
)

// startServer starts Debian's docker-registry and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("docker-registry is missing: apt-get install docker-registry")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err = listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: '%s'}\n", dir, address)
	if err = os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", config)
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // its context has ended
	for {
		answer, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			_ = answer.Body.Close() // it answers
			return address
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

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
	host := startServer(t)
	list := uploads(t, host)
	for at := int64(1); at <= 20; at++ {
		ctx, kill := context.WithCancel(t.Context())
		_, err := pushTo(ctx, list, oci.PushOptions{Transport: &stopping{at: at, kill: kill}})
		kill()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: %v", at, err)
		}
	}
	if _, err := pushTo(t.Context(), list, oci.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	checkPushed(t, list)
	again, err := pushTo(t.Context(), list, oci.PushOptions{})
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
