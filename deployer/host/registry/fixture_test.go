package registry_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	sbomType      = "application/spdx+json"
	signatureType = "application/vnd.example.signature"
)

// project has the content for an archive.
type project struct {
	t       testing.TB
	dir     layout.Path
	id      string // name and version are split at the last dash
	origins map[schema.ImageRef]string
	images  []*oci.Image
	files   []iso.File
}

func newProject(tb testing.TB, name, version string) *project {
	tb.Helper()
	dir, err := layout.Write(tb.TempDir(), empty.Index)
	if err != nil {
		tb.Fatal(err)
	}
	p := &project{t: tb, dir: dir, id: name + "-" + version, origins: map[schema.ImageRef]string{}}
	p.file("manifest.yaml", `{"apiVersion": "solutions.metalk8s.scality.com/v1alpha1", "kind": "Solution", "metadata": {"name": "`+name+
		`"}, "spec": {"version": "`+version+`"}}`)
	return p
}

func (p *project) file(name, content string) {
	p.files = append(p.files, iso.File{Path: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}})
}

// must ends the test on an error.
func must[T any](value T, err error) func(tb testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// image returns an image with layers of the given sizes, whose content is random and the same for the same seed.
func image(tb testing.TB, seed int64, sizes ...int64) v1.Image {
	tb.Helper()
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return fill(tb, img, types.OCILayer, "amd64", seed, sizes)
}

func fill(tb testing.TB, img v1.Image, layerType types.MediaType, architecture string, seed int64, sizes []int64) v1.Image {
	tb.Helper()
	var layers []v1.Layer
	for i, size := range sizes {
		layer := must(random.Layer(size, types.OCIUncompressedLayer, random.WithSource(rand.NewSource(seed*100+int64(i)))))(tb)
		layers = append(layers, must(tarball.LayerFromOpener(layer.Uncompressed, tarball.WithMediaType(layerType)))(tb))
	}
	img = must(mutate.AppendLayers(img, layers...))(tb)
	config := must(img.ConfigFile())(tb).DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	return must(mutate.ConfigFile(img, config))(tb)
}

// add puts an image or index into the archive under a name, with the manifests that refer to it.
func (p *project) add(ref string, content mutate.Appendable, referrers ...v1.Image) {
	p.t.Helper()
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref})
	var err error
	switch content := content.(type) {
	case v1.ImageIndex:
		err = p.dir.AppendIndex(content, name)
	case v1.Image:
		err = p.dir.AppendImage(content, name)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range referrers {
		if err := p.dir.AppendImage(r); err != nil {
			p.t.Fatal(err)
		}
	}
	parsed := must(schema.ParseImageRef(ref))(p.t)
	resolver := oci.NewResolver(oci.Options{CacheDir: p.t.TempDir()})
	p.t.Cleanup(func() { _ = resolver.Close() })
	resolved := must(resolver.Resolve(p.t.Context(), parsed, "oci:"+string(p.dir)+":"+ref))(p.t)
	p.images = append(p.images, resolved)
}

// payload adds the files of the archive as an artifact.
func (p *project) payload(version string) {
	p.t.Helper()
	const content = "kind: Role\n"
	digest, size, err := v1.SHA256(strings.NewReader(content))
	if err != nil {
		p.t.Fatal(err)
	}
	image := must(oci.PayloadImage([]oci.PayloadFile{{
		Path: "operator/deploy/role.yaml", Digest: digest, Size: size,
		Open: func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		},
	}}))(p.t)
	image.Ref = schema.ImageRef{Name: "payload", Tag: version}
	p.images = append(p.images, image)
}

// write writes the ISO file and returns its name.
func (p *project) write() string {
	p.t.Helper()
	if len(p.origins) > 0 {
		var document map[string]any
		data := must(io.ReadAll(must(p.files[0].Open())(p.t)))(p.t)
		if err := json.Unmarshal(data, &document); err != nil {
			p.t.Fatal(err)
		}
		document["spec"].(map[string]any)["imageOrigins"] = p.origins
		text := string(must(json.Marshal(document))(p.t))
		p.files = p.files[1:]
		p.file("manifest.yaml", text)
	}
	files := p.files
	for _, entry := range must(oci.Layout(p.images))(p.t) {
		files = append(files, iso.File{Path: entry.Path, Size: entry.Size, Key: entry.Key, Open: func() (io.ReadCloser, error) {
			if entry.Blob == nil {
				return io.NopCloser(strings.NewReader(string(entry.Data))), nil
			}
			return entry.Blob.Open(context.Background(), 0)
		}})
	}
	laidOut := must(iso.Layout(files, iso.Options{VolumeID: p.id, ModTime: time.Unix(1<<30, 0)}))(p.t)
	name := filepath.Join(p.t.TempDir(), p.id+".iso")
	f := must(os.Create(name))(p.t)
	if _, err := laidOut.WriteTo(f); err != nil {
		p.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// open indexes an ISO file.
func open(tb testing.TB, name string) *registry.Archive {
	tb.Helper()
	f := must(os.Open(name))(tb)
	info := must(f.Stat())(tb)
	a := must(registry.NewArchive(must(archive.Open(f, info.Size()))(tb), f))(tb)
	tb.Cleanup(func() { _ = a.Close() })
	return a
}

// access collects the log of a registry.
type access struct {
	mu      sync.Mutex
	entries []schema.RegistryAccess
}

func (a *access) log(entry schema.RegistryAccess) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, entry)
}

// served is a registry that listens.
type served struct {
	*registry.Registry
	*httptest.Server
	access *access
}

func serve(tb testing.TB, o registry.Options, archives ...*registry.Archive) *served {
	tb.Helper()
	s := &served{access: new(access)}
	o.Now, o.Log = time.Now, s.access.log
	s.Registry = registry.New(o)
	if err := s.Set(archives); err != nil {
		tb.Fatal(err)
	}
	s.Server = httptest.NewUnstartedServer(s.Registry)
	s.Config = registry.NewServer(s.Registry)
	s.Start()
	tb.Cleanup(s.Close)
	return s
}

// answer is a response with its whole body.
type answer struct {
	status int
	header http.Header
	length int64 // from the header; -1 without it
	body   string
}

// ask sends a request. Headers are "Name: value".
func (s *served) ask(tb testing.TB, method, path string, headers ...string) answer {
	tb.Helper()
	request := must(http.NewRequestWithContext(tb.Context(), method, s.URL+path, http.NoBody))(tb)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	response, err := s.Client().Transport.RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	body := must(io.ReadAll(response.Body))(tb)
	return answer{response.StatusCode, response.Header, response.ContentLength, string(body)}
}

func artifact(tb testing.TB, subject v1.Image, artifactType, content string) v1.Image {
	tb.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.MediaType(artifactType))
	img = must(mutate.AppendLayers(img, static.NewLayer([]byte(content), "text/plain")))(tb)
	return mutate.Subject(img, descriptorOf(tb, subject)).(v1.Image)
}

func descriptorOf(tb testing.TB, img v1.Image) v1.Descriptor {
	tb.Helper()
	return v1.Descriptor{
		MediaType: must(img.MediaType())(tb), Digest: must(img.Digest())(tb), Size: must(img.Size())(tb),
	}
}
