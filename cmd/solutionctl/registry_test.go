package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/testscript"
)

// badRegistry is the script command `bad-registry`. It sets REGISTRY to the address of a registry with three images of
// one layer:
//
//	mute:1       is never described: requests for its manifest get no answer
//	stuck:1      is described, but requests for its layer get no answer
//	moving:1     is another image each time its tag is asked for
//
// The command `await-stall` waits until a request was left without an answer.
type badRegistry struct {
	plain   http.Handler
	config  string   // of stuck:1
	moving  []string // digests
	asked   atomic.Int64
	stalled chan struct{}
}

const registryKey = "registry"

func newBadRegistry() *badRegistry {
	return &badRegistry{plain: registry.New(registry.Logger(log.New(io.Discard, "", 0))), stalled: make(chan struct{}, 1)}
}

func startBadRegistry(ts *testscript.TestScript, _ bool, _ []string) {
	b := ts.Value(registryKey).(*badRegistry)
	filling := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filling {
			b.plain.ServeHTTP(w, r)
			return
		}
		b.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	push := func(ref string) v1.Image {
		image, err := random.Image(1<<20, 1)
		ts.Check(err)
		tag, err := name.ParseReference(host + "/" + ref)
		ts.Check(err)
		ts.Check(remote.Write(tag, image))
		return image
	}
	for range 2 {
		digest, err := push("moving:1").Digest()
		ts.Check(err)
		b.moving = append(b.moving, digest.String())
	}
	config, err := push("stuck:1").ConfigName()
	ts.Check(err)
	b.config, filling = config.String(), false
	ts.Setenv("REGISTRY", host)
}

func (b *badRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/v2/mute/"),
		strings.HasPrefix(path, "/v2/stuck/blobs/") && !strings.HasSuffix(path, b.config):
		select {
		case b.stalled <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return
	case path == "/v2/moving/manifests/1" && r.Method == http.MethodGet:
		r.URL.Path = "/v2/moving/manifests/" + b.moving[b.asked.Add(1)%2]
	}
	b.plain.ServeHTTP(w, r)
}

func awaitStall(ts *testscript.TestScript, _ bool, _ []string) {
	<-ts.Value(registryKey).(*badRegistry).stalled
}
