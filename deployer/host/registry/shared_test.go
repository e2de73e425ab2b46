package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
)

// TestShare serves an archive itself, beside its images: it is described when it is asked for first, once, and its blobs are read from any
// offset.
func TestShare(t *testing.T) {
	p := newProject(t, "demo", "1.0.0")
	p.add("ui:1.0.0", image(t, 1, 100))
	a := open(t, p.write())
	content := strings.Repeat("0123456789", 20_000)
	large := oci.BytesBlob("application/octet-stream", []byte(content))
	large.Open = func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content[offset:])), nil // it cannot seek
	}
	signature := oci.Artifact{Type: signatureType, Layers: []oci.Blob{oci.BytesBlob(signatureType, []byte("signed"))}}
	shared := must(oci.ArtifactImage(oci.Artifact{Type: "application/vnd.example.archive", Layers: []oci.Blob{large}}, signature))(t)
	described := 0
	broken := errors.New("it cannot be described now")
	a.Share(registry.Shared{Repository: "archives/demo", Tag: "1.0.0", Image: func(context.Context) (*oci.Image, error) {
		if broken != nil {
			return nil, broken
		}
		described++
		return shared, nil
	}})
	w := serve(t, registry.Options{}, a)
	if got := w.ask(t, "GET", "/v2/_catalog"); got.body != `{"repositories":["archives/demo","demo-1.0.0/ui"]}` {
		t.Error(got.body)
	}
	if got := w.ask(t, "GET", "/v2/archives/demo/tags/list"); got.body != `{"name":"archives/demo","tags":["1.0.0"]}` || described > 0 {
		t.Errorf("%s, described %d times", got.body, described)
	}
	if got := w.ask(t, "GET", "/v2/archives/demo/manifests/1.0.0"); got.status != 500 || strings.Contains(got.body, broken.Error()) {
		t.Errorf("%d %s", got.status, got.body)
	}
	broken = nil
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			if got := w.ask(t, "GET", "/v2/archives/demo/blobs/"+large.Digest.String()); got.status != 200 || got.body != content {
				t.Errorf("the whole blob: %d, %d bytes", got.status, len(got.body))
			}
		})
	}
	together.Wait()
	if described != 1 {
		t.Errorf("described %d times", described)
	}
	for _, test := range []struct {
		name, path, ask string
		status          int
		body            string
	}{
		{"manifest", "manifests/1.0.0", "", 200, string(shared.Manifests[0].Data)},
		{"manifest by digest", "manifests/" + shared.Root.Digest.String(), "", 200, string(shared.Manifests[0].Data)},
		{"other tag", "manifests/2.0.0", "", 404, ""},
		{"referrers", "referrers/" + shared.Root.Digest.String(), "", 200, ""},
		{"from an offset", "blobs/" + large.Digest.String(), "bytes=199995-", 206, "56789"},
		{"a range", "blobs/" + large.Digest.String(), "bytes=7-11", 206, "78901"},
		{"behind the end", "blobs/" + large.Digest.String(), "bytes=200000-", 416, ""},
		{"small blob", "blobs/" + shared.Blobs[0].Digest.String(), "", 200, "{}"},
		{"other blob", "blobs/sha256:" + strings.Repeat("0", 64), "", 404, ""},
	} {
		var headers []string
		if test.ask != "" {
			headers = []string{"Range: " + test.ask}
		}
		got := w.ask(t, "GET", "/v2/archives/demo/"+test.path, headers...)
		if got.status != test.status || test.body != "" && got.body != test.body {
			t.Errorf("%s: %d, %d bytes", test.name, got.status, len(got.body))
		}
		if test.name == "referrers" && !strings.Contains(got.body, signatureType) {
			t.Errorf("referrers: %s", got.body)
		}
	}
}

// TestShareOfDamage ends the connection when a blob is shorter than it was described.
func TestShareOfDamage(t *testing.T) {
	p := newProject(t, "demo", "1.0.0")
	p.add("ui:1.0.0", image(t, 1, 100))
	a := open(t, p.write())
	content := bytes.Repeat([]byte("x"), 200_000)
	short := oci.BytesBlob("application/octet-stream", content)
	short.Open = func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[offset : len(content)-1])), nil
	}
	shared := must(oci.ArtifactImage(oci.Artifact{Type: "application/vnd.example.archive", Layers: []oci.Blob{short}}))(t)
	a.Share(registry.Shared{Repository: "archives/demo", Tag: "1.0.0", Image: func(context.Context) (*oci.Image, error) { return shared, nil }})
	w := serve(t, registry.Options{}, a)
	response, err := w.Client().Get(fmt.Sprintf("%s/v2/archives/demo/blobs/%s", w.URL, short.Digest))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // of a test
	if _, err = io.ReadAll(response.Body); err == nil {
		t.Error("a blob that is too short was sent as the whole")
	}
}

// TestShareWhileSet has archives read again while one of them is described.
func TestShareWhileSet(t *testing.T) {
	p := newProject(t, "demo", "1.0.0")
	p.add("ui:1.0.0", image(t, 1, 100))
	a := open(t, p.write())
	blob := oci.BytesBlob("application/octet-stream", []byte("content"))
	shared := must(oci.ArtifactImage(oci.Artifact{Type: "application/vnd.example.archive", Layers: []oci.Blob{blob}}))(t)
	var w *served
	var again sync.Once
	a.Share(registry.Shared{Repository: "archives/demo", Tag: "1.0.0", Image: func(context.Context) (_ *oci.Image, err error) {
		again.Do(func() { err = w.Set([]*registry.Archive{a}) })
		return shared, err
	}})
	w = serve(t, registry.Options{}, a)
	if got := w.ask(t, "GET", "/v2/archives/demo/blobs/"+blob.Digest.String()); got.status != 200 || got.body != "content" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestLeaver is not the fault of the archive: a client that leaves while a blob is made.
func TestLeaver(t *testing.T) {
	p := newProject(t, "demo", "1.0.0")
	p.add("ui:1.0.0", image(t, 1, 100))
	a := open(t, p.write())
	small, begun := oci.BytesBlob("application/octet-stream", []byte("frame")), make(chan struct{}, 1)
	small.Open = func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	shared := must(oci.ArtifactImage(oci.Artifact{Type: "application/vnd.example.archive", Layers: []oci.Blob{small}}))(t)
	a.Share(registry.Shared{Repository: "archives/demo", Tag: "1.0.0", Image: func(context.Context) (*oci.Image, error) { return shared, nil }})
	w := serve(t, registry.Options{}, a)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/v2/archives/demo/blobs/%s", w.URL, small.Digest), nil))(t)
	if response, err := w.Client().Do(request); err == nil {
		t.Errorf("it answered %s", response.Status)
		_ = response.Body.Close()
	}
	w.Close() // waits until the request has ended
	if err := a.Check(); err != nil {
		t.Error(err)
	}
}
