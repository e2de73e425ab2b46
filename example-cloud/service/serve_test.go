package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// listener accepts connections in memory.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l listener) Close() error { close(l); return nil }

func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// TestServesWhileAsked: a server that has to end answers as long as a node leads requests to it, and reports at once that it is not ready.
func TestServesWhileAsked(t *testing.T) {
	for name, test := range map[string]struct{ asked, want time.Duration }{
		"no requests":          {0, quietTime},
		"a node is slow":       {26 * time.Second, 26*time.Second + quietTime},
		"requests without end": {time.Hour, gracePeriod - finishTime - spareTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				visits := make(chan struct{}, 1)
				handler := noticed(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "complete") }), visits)
				get := func(path string) *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
					return w
				}
				if w := get("/boot"); w.Body.String() != "complete" || w.Header().Get("Connection") != "" || get("/healthz").Code != http.StatusOK {
					t.Errorf("before the end: %+v", w)
				}
				stop()
				stopped, ended := time.Now(), make(chan time.Duration, 1)
				go func() {
					awaitQuiet(visits)
					ended <- time.Since(stopped)
				}()
				for time.Since(stopped) < min(test.asked, gracePeriod) {
					time.Sleep(time.Second)
					if w := get("/boot"); w.Body.String() != "complete" || w.Header().Get("Connection") != "close" || get("/healthz").Code != http.StatusServiceUnavailable {
						t.Errorf("after the stop: %+v", w)
					}
				}
				for range 60 { // probes do not keep it
					time.Sleep(time.Second)
					get("/healthz")
				}
				if took := <-ended; took != test.want {
					t.Errorf("it ended after %s, want %s", took, test.want)
				}
			})
		})
	}
}

// TestServeEnds: a server finishes what it has begun, and then closes its listener.
func TestServeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l, ended := make(listener), make(chan error, 1)
		go func() {
			ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(quietTime + finishTime/2)
				fmt.Fprint(w, "complete")
			}))
		}()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			l <- there
			return here, nil
		}}}
		answered := make(chan string, 1)
		go func() {
			response, err := client.Get("http://cloud/boot")
			if err != nil {
				answered <- err.Error()
				return
			}
			_ = response.Body.Close()
			answered <- response.Status
		}()
		synctest.Wait()
		stop()
		if status := <-answered; status != "200 OK" {
			t.Error(status)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, open := <-l; open {
			t.Error("it listens yet")
		}
	})
}

// TestGracePeriod: the charts give pods the time that servers use.
func TestGracePeriod(t *testing.T) {
	files, err := filepath.Glob("../charts/*/templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, servers := fmt.Sprintf("terminationGracePeriodSeconds: %d ", gracePeriod/time.Second), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "kind: Deployment") {
			continue
		}
		if servers++; !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s", file, want)
		}
	}
	if servers != len(services) {
		t.Errorf("%d charts for %d services", servers, len(services))
	}
}
