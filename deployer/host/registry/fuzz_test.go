package registry_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/schema"
)

// FuzzRequest sends arbitrary requests. Each answer has the digest in its header, or is an error that a client can
// parse.
func FuzzRequest(f *testing.F) {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, path := range []string{
		"/v2/", "/v2", "/", "/v2/_catalog", "/v2/a/tags/list", "/v2/fuzz-1.0.0/ui/manifests/1", "/v2/fuzz-1.0.0/ui/blobs/" + digest,
		"/v2/fuzz-1.0.0/ui/referrers/" + digest, "/v2/tags/list/tags/list", "/v2//manifests/1", "/v2/a/../b/manifests/1",
		"/v2/manifests/manifests/manifests/manifests", "/v2/a/blobs/sha256:", "/v2/a/blobs/uploads/", "/v2/quay.io/acme/ui/manifests/v1",
	} {
		f.Add("GET", path, "", "")
		f.Add("HEAD", path, "ns=quay.io&n=1&last=b&artifactType=x", "bytes=0-")
	}
	f.Add("GET", "/v2/acme/ui/manifests/v1", "ns=quay.io", "bytes=5-,-1")
	f.Add("PUT", "/v2/fuzz-1.0.0/ui/manifests/1", "n=99999999999999999999", "bytes=x")
	handler := fuzzRegistry(f)
	f.Fuzz(func(t *testing.T, method, path, query, ranges string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://registry/", http.NoBody)
		if err != nil {
			t.Skip("not a method")
		}
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header["Range"] = []string{ranges}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !slices.Contains([]int{200, 206, 400, 404, 405, 416}, w.Code) {
			t.Errorf("status %d", w.Code)
		}
		if w.Code == 200 && method != "HEAD" && w.Header().Get("Docker-Content-Digest") != "" {
			if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(w.Body.Bytes())); sum != w.Header().Get("Docker-Content-Digest") {
				t.Errorf("content of %s is said to be %s", sum, w.Header().Get("Docker-Content-Digest"))
			}
		}
		if w.Code >= 400 && w.Code != 416 && method != "HEAD" {
			var body struct {
				Errors []struct{ Code, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Errors) != 1 || body.Errors[0].Code == "" || body.Errors[0].Message == "" {
				t.Errorf("error %d is %q (%v)", w.Code, w.Body, err)
			}
		}
	})
}

func fuzzRegistry(f *testing.F) http.Handler {
	f.Helper()
	p := newProject(f, "fuzz", "1.0.0")
	p.add("ui:1", image(f, 1, 100<<10, 10))
	p.origins[schema.ImageRef{Name: "ui", Tag: "1"}] = "quay.io/acme/ui:v1"
	r := registry.New(registry.Options{MirrorOrigins: true, Now: time.Now})
	if err := r.Set([]*registry.Archive{open(f, p.write())}); err != nil {
		f.Fatal(err)
	}
	return r
}
