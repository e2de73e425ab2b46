package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func ExampleHealth() {
	ctx, stop := context.WithCancel(context.Background())
	h := Health(ctx, http.NotFoundHandler())
	probe := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	fmt.Println(probe("/healthz"), probe("/readyz"))
	stop()
	fmt.Println(probe("/healthz"), probe("/readyz"))
	// Output:
	// 200 200
	// 200 503
}

// TestRunLosesNoRequest ends the servers in the middle of a request: probes must tell at once, the request must be
// answered, and then nobody listens any more.
func TestRunLosesNoRequest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	page, health := listen(t), listen(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		fmt.Fprint(w, "complete")
	})
	ended := make(chan error)
	go func() {
		ended <- Run(ctx, Endpoint{page, slow}, Endpoint{health, Health(ctx, http.NotFoundHandler())})
	}()

	type answer struct {
		code int
		body string
		err  error
	}
	answers := make(chan answer)
	go func() {
		code, body, err := get(t.Context(), page, "/")
		answers <- answer{code, body, err}
	}()
	<-begun
	if code, _, err := get(t.Context(), health, "/readyz"); code != http.StatusOK || err != nil {
		t.Errorf("readyz before the end: got %d, %v", code, err)
	}
	stop()
	if code, _, err := get(t.Context(), health, "/readyz"); code != http.StatusServiceUnavailable || err != nil {
		t.Errorf("readyz after the end was asked for: got %d, %v", code, err)
	}
	close(goOn)
	if got, want := <-answers, (answer{http.StatusOK, "complete", nil}); got != want {
		t.Errorf("running request: got %+v, want %+v", got, want)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
	for _, l := range []net.Listener{page, health} {
		if code, _, err := get(t.Context(), l, "/"); err == nil {
			t.Errorf("after the end: got %d, want no connection", code)
		}
	}
}

// TestRunFails when one listener does, and ends the others.
func TestRunFails(t *testing.T) {
	good, bad := listen(t), listen(t)
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Endpoint{good, http.NotFoundHandler()}, Endpoint{bad, http.NotFoundHandler()})
	if err == nil {
		t.Error("got no error")
	}
	if _, _, err := get(t.Context(), good, "/"); err == nil {
		t.Error("the other endpoint still answers")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// get makes a request on a connection of its own, so that none is left open between two requests.
func get(ctx context.Context, l net.Listener, path string) (code int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+path, nil)
	if err != nil {
		return 0, "", err
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}
