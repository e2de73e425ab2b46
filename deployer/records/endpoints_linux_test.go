package records

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// unresponsive is the address of a socket that accepts no connections and has a full queue: the kernel drops further
// packets.
func unresponsive(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = syscall.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "unresponsive")
	listener, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for range 100 {
		c, err := net.DialTimeout("tcp", listener.Addr().String(), 200*time.Millisecond)
		if err != nil {
			return listener.Addr().String()
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue does not fill")
	return ""
}

// TestSilentEndpoint asks endpoints that do not refuse and do not answer, or only at first.
func TestSilentEndpoint(t *testing.T) {
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			<-r.Context().Done()
		}
	}))
	defer stuck.Close()
	demo := schema.Import{Name: "demo", Version: "1.0.0", Images: map[string]string{"demo:1.0.0": "sha256:" + strings.Repeat("0", 64)}}
	for name, endpoint := range map[string]string{"packets are dropped": "http://" + unresponsive(t), "it stops in the middle": stuck.URL} {
		t.Run(name, func(t *testing.T) {
			const timeout = 300 * time.Millisecond
			answers := AskRegistry(t.Context(), &schema.ClusterRegistry{Endpoints: []string{endpoint}}, []schema.Import{demo}, timeout)
			if said := fmt.Sprint(answers[0].Err); !strings.HasPrefix(said, "no answer within 300ms: ") || strings.Contains(said, "context") {
				t.Error(said)
			}
		})
	}
}
