package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
)

// withImage returns the files of an archive with an image of one layer, in both views.
func withImage(t *testing.T, layer string) (files []string) {
	t.Helper()
	all := fstest.MapFS{}
	add := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		digest := hex.EncodeToString(sum[:])
		for _, dir := range []string{"blobs/sha256/", "images/clock/1.0.0/"} {
			all[dir+digest] = &fstest.MapFile{Data: []byte(content)}
		}
		return fmt.Sprintf(`"digest":"sha256:%s","size":%d`, digest, len(content))
	}
	added := add(layer)
	config := add(`{"os":"linux","architecture":"amd64","config":{"Entrypoint":["/clock"]},"rootfs":{"type":"layers","diff_ids":[` + added[len(`"digest":`):strings.Index(added, ",")] + `]}}`)
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json",` +
		config + `},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",` + added + `}]}`
	for name, content := range map[string]string{
		"images/clock/1.0.0/version":       "Directory Transport Version: 1.1\n",
		"images/clock/1.0.0/manifest.json": manifest,
		"oci-layout":                       `{"imageLayoutVersion":"1.0.0"}`,
		"index.json": `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",` + add(manifest) +
			`,"annotations":{"org.opencontainers.image.ref.name":"clock:1.0.0"}}]}`,
	} {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	sum := sha256.Sum256([]byte(manifest))
	delete(all, "images/clock/1.0.0/"+hex.EncodeToString(sum[:]))
	images, err := oci.Open(all)
	if err != nil {
		t.Fatal(err)
	}
	nginx, err := oci.RegistryConfig(images.Images(), oci.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	all[store.NginxTemplate] = &fstest.MapFile{Data: nginx}
	for name, file := range all {
		files = append(files, name, string(file.Data))
	}
	return files
}

// siteRegistry takes everything and compares nothing. It keeps the digests of blobs and manifests by the last part of their address.
type siteRegistry struct {
	mu        sync.Mutex
	digests   map[string]string
	manifests int
	before    func() // called when an upload begins
}

func (s *siteRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body) // an upload may be broken off
	status, reference := http.StatusAccepted, path.Base(r.URL.Path)
	w.Header().Set("Location", r.URL.Path)
	switch digest := s.digests[reference]; {
	case r.URL.Path == "/v2/":
		status = http.StatusOK
	case r.Method == http.MethodHead && digest == "":
		status = http.StatusNotFound
	case r.Method == http.MethodHead:
		w.Header().Set("Docker-Content-Digest", digest)
		status = http.StatusOK
	case r.Method == http.MethodPost && s.before != nil:
		s.before()
	case r.Method == http.MethodPut && r.URL.Query().Has("digest"):
		digest = r.URL.Query().Get("digest")
		s.digests[digest], status = digest, http.StatusCreated
	case r.Method == http.MethodPut:
		sum := sha256.Sum256(body)
		s.digests[reference], status = "sha256:"+hex.EncodeToString(sum[:]), http.StatusCreated
		s.manifests++
	}
	w.WriteHeader(status)
}

// TestPushOfChangedArchive changes one byte of a layer after its import: before the push, and after the push has read the manifests. The
// registry gets neither the layer nor a manifest, and the byte is found.
func TestPushOfChangedArchive(t *testing.T) {
	// In another chunk than the directories, which are read before.
	layer := strings.Repeat("clockwork ", 1_000_000)
	for _, test := range []struct {
		name   string
		during bool
	}{{"before the push", false}, {"during the push", true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.do(w.archive("1.0.0", withImage(t, layer)...)); err != nil {
				t.Fatal(err)
			}
			stored := w.path("store/archives/demo-1.0.0.iso")
			if err := os.Chmod(stored, 0o600); err != nil {
				t.Fatal(err)
			}
			change := sync.OnceFunc(func() {
				f, err := os.OpenFile(stored, os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteAt([]byte("!"), int64(bytes.Index(w.read(stored), []byte(layer))+len(layer)/2))
				}
				if err = errors.Join(err, f.Close()); err != nil {
					t.Error(err)
				}
			})
			site := &siteRegistry{digests: map[string]string{}}
			if test.during {
				site.before = change
			} else {
				change()
			}
			server := httptest.NewServer(site)
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			o := PushOptions{Solution: "demo", Version: "1.0.0", PushTarget: PushTarget{Registry: host + "/site", Plain: []string{host}}}
			_, err := w.Push(t.Context(), o)
			checkCode(t, err, report.Corrupt)
			if !strings.Contains(err.Error(), "differ from what was signed") || !slices.Equal(report.Hints(err), []string{"import the archive again"}) {
				t.Errorf("%v, hints %q", err, report.Hints(err))
			}
			if site.manifests > 0 || w.cluster.registry != nil && slices.Contains(w.cluster.registry.Endpoints, "http://"+host+"/site") {
				t.Errorf("the registry has %q, and the cluster knows %+v", site.digests, w.cluster.registry)
			}
			if _, err = w.do(w.path("demo-1.0.0.iso")); err != nil {
				t.Fatal(err)
			}
			if done, err := w.Push(t.Context(), o); err != nil || !done.Recorded {
				t.Errorf("after another import: %+v, %v", done, err)
			}
		})
	}
}

// TestPushOfVendorsFault pushes an archive whose vendor signed a layer without its digest: another import does not help.
func TestPushOfVendorsFault(t *testing.T) {
	const layer = "clockwork"
	files := withImage(t, layer)
	for i, content := range files {
		if content == layer {
			files[i] = "clockwirk"
		}
	}
	w := newWorld(t)
	if _, err := w.do(w.archive("1.0.0", files...)); err != nil {
		t.Fatal(err)
	}
	site := &siteRegistry{digests: map[string]string{}}
	server := httptest.NewServer(site)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	_, err := w.Push(t.Context(), PushOptions{Solution: "demo", Version: "1.0.0", PushTarget: PushTarget{Registry: host + "/site", Plain: []string{host}}})
	checkCode(t, err, report.Corrupt)
	if want := []string{"the archive is as it was imported: ask the vendor for a correct one"}; !slices.Equal(report.Hints(err), want) || site.manifests > 0 {
		t.Errorf("%v, hints %q, %d manifests", err, report.Hints(err), site.manifests)
	}
}
