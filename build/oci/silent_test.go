package oci_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// breakOff sends the header of an answer, and then nothing more.
func breakOff(w http.ResponseWriter, r *http.Request, status int) {
	w.WriteHeader(status)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestSilentAnswers has a registry that begins an answer and then sends nothing: whatever the answer is, it is not waited
// for without end.
func TestSilentAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		path   string
		status int
	}{
		"manifest": {"/manifests/", http.StatusOK},
		"error":    {"/manifests/", http.StatusNotFound},
		"token":    {"/token", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, test.path):
					breakOff(w, r, test.status)
				case name == "token":
					w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			r, _ := patient(t, oci.Options{})
			r.SetIdle(10 * time.Millisecond)
			_, err := r.Resolve(ctx, testRef, "docker://"+host+"/acme/operator:1.0.0")
			checkError(t, err, report.Unavailable, "no byte for 10ms", "")

			if name != "token" {
				return // a push asks for it with HEAD
			}
			o := oci.PushOptions{}
			o.SetIdle(10 * time.Millisecond)
			o.SetWait(func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
			_, err = oci.NewPush(ctx, uploads(t, host), nil, o)
			checkError(t, err, report.Unavailable, "no byte for 10ms", "")
		})
	}
}
