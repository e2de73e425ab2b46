// Package ocitest runs real registries for tests.
package ocitest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Servers start real registries and return their addresses.
func Servers() map[string]func(*testing.T) string {
	return map[string]func(*testing.T) string{"docker-registry": StartServer, "distribution 3": startDistribution}
}

// StartServer starts Debian's docker-registry and returns its address.
func StartServer(t *testing.T) string {
	t.Helper()
	return start(t, "docker-registry", "apt-get install docker-registry")
}

// startDistribution starts version 3 of the same program.
func startDistribution(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, filepath.Join(cache, "solutionctl-test", "registry-v3.1.2", "registry"), ".ci/install-registry")
}

func start(t *testing.T, name, remedy string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v: %s", err, remedy)
		}
		t.Skipf("%v: %s", err, remedy)
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
