package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	var stdout bytes.Buffer
	args := []string{"-nodes", "fake", "sh", "-c", `kubectl get nodes --output name; echo "$CLUSTER_NODES"; exit 3`}
	err := run(t.Context(), args, nil, &stdout, os.Stderr)
	var exit exitStatus
	if !errors.As(err, &exit) || exit != 3 {
		t.Errorf("%v, want the command's exit status 3", err)
	}
	if got, want := stdout.String(), "node/fake-0\nnode/fake-1\nnode/fake-2\nfake\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUntilInterrupted checks that the printed instructions work, and that all processes end afterwards.
func TestUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &watched{until: "Press Ctrl-C", seen: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-nodes", "none"}, nil, out, os.Stderr) }()
	select {
	case <-out.seen:
	case err := <-ended:
		t.Fatal(err)
	}
	export := regexp.MustCompile(`export .*`).FindString(out.String())
	version, err := exec.CommandContext(ctx, "sh", "-ec", export+"; kubectl version").CombinedOutput()
	if err != nil || !strings.Contains(string(version), "Server Version: v1.36.3") {
		t.Errorf("%s: %v\n%s", export, err, version)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	kubeconfig := regexp.MustCompile(`KUBECONFIG=(\S+)`).FindStringSubmatch(export)[1]
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want that it is gone", kubeconfig, err)
	}
}

// watched is a buffer that signals each write.
type watched struct {
	bytes.Buffer
	until string
	seen  chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(string(p), w.until) {
		close(w.seen)
	}
	return n, err
}

func TestUsage(t *testing.T) {
	if err := run(t.Context(), []string{"-nodes", "many"}, nil, os.Stdout, os.Stderr); err == nil {
		t.Error("-nodes many: no error")
	}
}
