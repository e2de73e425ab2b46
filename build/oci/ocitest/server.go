// Package ocitest runs a real registry for tests.
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

// StartServer starts Debian's docker-registry and returns its address.
func StartServer(t *testing.T) string {
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
