package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// world is an archive with one image of each kind, and the registry that serves it.
type world struct {
	*served
	iso           string
	operator, ui  v1.Image
	multi         v1.ImageIndex
	children      []v1.Image
	sbom, signed  v1.Image
	layer, config string // digests of the operator's large layer and its configuration
	layerBytes    string
}

func newWorld(tb testing.TB, o registry.Options) *world {
	tb.Helper()
	w := &world{
		operator: image(tb, 1, 300<<10, 5<<10),
		ui:       fill(tb, empty.Image, types.DockerLayer, "amd64", 2, []int64{100 << 10}),
		children: []v1.Image{image(tb, 3, 90<<10), fill(tb, image(tb, 4), types.OCILayer, "arm64", 5, []int64{91 << 10})},
	}
	w.sbom, w.signed = artifact(tb, w.operator, sbomType, "{}"), artifact(tb, w.operator, signatureType, "signed")
	w.multi = mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: w.children[0], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: w.children[1], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	p := newProject(tb, "demo", "1.0.0")
	p.add("operator:1.0.0", w.operator, w.sbom, w.signed)
	p.add("operator:latest", w.operator)
	p.add("ui:1.0.0", w.ui)
	p.add("multi:2", w.multi)
	p.payload("1.0.0")
	p.origins[schema.ImageRef{Name: "operator", Tag: "1.0.0"}] = "registry.example.com:5000/acme/operator:v1"
	p.origins[schema.ImageRef{Name: "ui", Tag: "1.0.0"}] = "busybox:1.36"
	w.iso = p.write()
	w.served = serve(tb, o, open(tb, w.iso))
	layers := must(w.operator.Layers())(tb)
	w.layer = must(layers[0].Digest())(tb).String()
	w.config = must(w.operator.ConfigName())(tb).String()
	w.layerBytes = string(must(io.ReadAll(must(layers[0].Compressed())(tb)))(tb))
	return w
}

func digestOf(tb testing.TB, content interface{ Digest() (v1.Hash, error) }) string {
	tb.Helper()
	return must(content.Digest())(tb).String()
}

func (w *world) reference(tb testing.TB, text string) name.Reference {
	tb.Helper()
	return must(name.ParseReference(strings.TrimPrefix(w.URL, "http://") + "/" + text))(tb)
}

// A chart has a repository of two components below that of the archive, which may be called like one of an image.
func TestChart(t *testing.T) {
	const content = "a package"
	digest, size, err := v1.SHA256(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	chart := oci.Chart{Name: "operator", Version: "1.2.0+x", Config: []byte("{}"), Content: oci.Blob{
		Descriptor: oci.Descriptor{Digest: digest, Size: size},
		Open: func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		},
	}}
	p := newProject(t, "demo", "1.0.0")
	p.add("operator:1.0.0", image(t, 1, 100))
	p.images = append(p.images, must(oci.ChartImage(chart))(t))
	w := serve(t, registry.Options{MirrorOrigins: true}, open(t, p.write()))
	for path, want := range map[string]string{
		"/v2/_catalog": `{"repositories":["demo-1.0.0/charts/operator","demo-1.0.0/operator"]}`,
		"/v2/demo-1.0.0/charts/operator/tags/list":                `{"name":"demo-1.0.0/charts/operator","tags":["1.2.0_x"]}`,
		"/v2/demo-1.0.0/charts/operator/manifests/1.2.0_x":        string(p.images[1].Manifests[0].Data),
		"/v2/demo-1.0.0/charts/operator/blobs/" + digest.String(): content,
	} {
		if got := w.ask(t, "GET", path); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
	}
}

// TestDistribution are the read-only cases of the distribution specification's own tests.
func TestDistribution(t *testing.T) {
	w := newWorld(t, registry.Options{})
	operator := digestOf(t, w.operator)
	const (
		repository = "/v2/demo-1.0.0/operator"
		nowhere    = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
		ociType    = "application/vnd.oci.image.manifest.v1+json"
	)
	manifest := string(must(w.operator.RawManifest())(t))
	for _, test := range []struct {
		name, method, path string
		status             int
		headers            string // that must be there, one a line
		body               string // "" is not looked at
	}{
		{"ping", "GET", "/v2/", 200, "Content-Type: application/json", "{}"},
		{"ping without slash", "GET", "/v2", 200, "", "{}"},
		{"tags", "GET", repository + "/tags/list", 200, "", `{"name":"demo-1.0.0/operator","tags":["1.0.0","latest"]}`},
		{"tags, n", "GET", repository + "/tags/list?n=1", 200, `Link: </v2/demo-1.0.0/operator/tags/list?last=1.0.0&n=1>; rel="next"`, `{"name":"demo-1.0.0/operator","tags":["1.0.0"]}`},
		{"tags, n=0", "GET", repository + "/tags/list?n=0", 200, "", `{"name":"demo-1.0.0/operator","tags":[]}`},
		{"tags, last", "GET", repository + "/tags/list?last=1.0.0", 200, "Link: ", `{"name":"demo-1.0.0/operator","tags":["latest"]}`},
		{"tags, last that is no tag", "GET", repository + "/tags/list?last=2&n=5", 200, "Link: ", `{"name":"demo-1.0.0/operator","tags":["latest"]}`},
		{"HEAD of a tag", "HEAD", repository + "/manifests/1.0.0", 200, "Docker-Content-Digest: " + operator + "\nContent-Length: " + fmt.Sprint(len(manifest)) + "\nContent-Type: " + ociType, ""},
		{"HEAD of a digest", "HEAD", repository + "/manifests/" + operator, 200, "Docker-Content-Digest: " + operator, ""},
		{"GET of a tag", "GET", repository + "/manifests/1.0.0", 200, "Docker-Content-Digest: " + operator + "\nContent-Type: " + ociType, manifest},
		{"GET of a digest", "GET", repository + "/manifests/" + operator, 200, "Content-Type: " + ociType + "\nEtag: \"" + operator + `"`, manifest},
		{"Docker's type", "GET", "/v2/demo-1.0.0/ui/manifests/1.0.0", 200, "Content-Type: application/vnd.docker.distribution.manifest.v2+json", ""},
		{"HEAD of a blob", "HEAD", repository + "/blobs/" + w.layer, 200, "Content-Length: " + fmt.Sprint(len(w.layerBytes)) + "\nAccept-Ranges: bytes", ""},
		{"GET of a blob", "GET", repository + "/blobs/" + w.layer, 200, "Docker-Content-Digest: " + w.layer + "\nContent-Type: application/octet-stream", w.layerBytes},
		{"GET of a configuration", "GET", repository + "/blobs/" + w.config, 200, "Docker-Content-Digest: " + w.config, string(must(w.operator.RawConfigFile())(t))},
		{"no such tag", "GET", repository + "/manifests/2", 404, "", `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"repository demo-1.0.0/operator has no manifest 2; it has 1.0.0, latest"}]}`},
		{"no such digest", "HEAD", repository + "/manifests/" + nowhere, 404, "Content-Length: 193", ""},
		{"no such blob", "GET", repository + "/blobs/" + nowhere, 404, "", `{"errors":[{"code":"BLOB_UNKNOWN","message":"repository demo-1.0.0/operator has no blob ` + nowhere + `"}]}`},
		{"no such blob, HEAD", "HEAD", repository + "/blobs/" + nowhere, 404, "", ""},
		{"a digest that is none", "GET", repository + "/blobs/sha256:totallywrong", 400, "", `{"errors":[{"code":"DIGEST_INVALID","message":"the digest is not valid; write it as sha256: and 64 hexadecimal digits"}]}`},
		{"no such repository", "GET", "/v2/demo-2.0.0/operator/tags/list", 404, "", `{"errors":[{"code":"NAME_UNKNOWN","message":"no archive that is served has a repository demo-2.0.0/operator"}]}`},
		{"a blob of another repository", "GET", "/v2/demo-1.0.0/ui/blobs/" + w.layer, 404, "", ""},
		{"referrers of nothing", "GET", repository + "/referrers/" + nowhere, 200, "Content-Type: application/vnd.oci.image.index.v1+json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`},
		{"catalog", "GET", "/v2/_catalog", 200, "", `{"repositories":["demo-1.0.0/multi","demo-1.0.0/operator","demo-1.0.0/payload","demo-1.0.0/ui"]}`},
		{"catalog, n", "GET", "/v2/_catalog?n=2&last=demo-1.0.0/multi", 200, `Link: </v2/_catalog?last=demo-1.0.0%2Fpayload&n=2>; rel="next"`, `{"repositories":["demo-1.0.0/operator","demo-1.0.0/payload"]}`},
		{"n that is no number", "GET", "/v2/_catalog?n=-1", 400, "", `{"errors":[{"code":"PAGINATION_NUMBER_INVALID","message":"n is not a number of entries"}]}`},
		{"upload", "POST", repository + "/blobs/uploads/", 405, "Allow: GET, HEAD", ""},
		{"delete", "DELETE", repository + "/manifests/1.0.0", 405, "Allow: GET, HEAD", ""},
		{"push", "PUT", repository + "/manifests/1.0.0", 405, "Content-Type: application/json", ""},
		{"not a registry's path", "GET", "/", 404, "Content-Type: application/json", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.ask(t, test.method, test.path)
			if got.status != test.status {
				t.Errorf("status %d, want %d: %s", got.status, test.status, got.body)
			}
			for line := range strings.Lines(test.headers) {
				header, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				if got := got.header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if test.body != "" && got.body != test.body {
				t.Errorf("body:\n%.300s\nwant\n%.300s", got.body, test.body)
			}
			if test.method == "HEAD" && got.body != "" {
				t.Errorf("HEAD has a body: %q", got.body)
			}
			if got := got.header.Get("Docker-Distribution-Api-Version"); got != "registry/2.0" {
				t.Errorf("version: %q", got)
			}
		})
	}
}

func TestReferrers(t *testing.T) {
	w := newWorld(t, registry.Options{})
	path := "/v2/demo-1.0.0/operator/referrers/" + digestOf(t, w.operator)
	list := func(query string) (digests []string, filtered string) {
		got := w.ask(t, "GET", path+query)
		var index v1.IndexManifest
		if err := json.Unmarshal([]byte(got.body), &index); err != nil {
			t.Fatal(err)
		}
		for _, d := range index.Manifests {
			digests = append(digests, d.ArtifactType+" "+d.Digest.String())
		}
		return digests, got.header.Get("OCI-Filters-Applied")
	}
	want := []string{signatureType + " " + digestOf(t, w.signed), sbomType + " " + digestOf(t, w.sbom)}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[len(a)-64:], b[len(b)-64:]) })
	if got, filtered := list(""); !slices.Equal(got, want) || filtered != "" {
		t.Errorf("all: %q (%q), want %q", got, filtered, want)
	}
	got, filtered := list("?artifactType=" + "application/spdx%2Bjson")
	if filtered != "artifactType" || !slices.Equal(got, []string{sbomType + " " + digestOf(t, w.sbom)}) {
		t.Errorf("SBOMs: %q (%q)", got, filtered)
	}
	if got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/manifests/"+digestOf(t, w.sbom)); got.body != string(must(w.sbom.RawManifest())(t)) {
		t.Errorf("the referrer itself: %s", got.body)
	}
}

func TestRanges(t *testing.T) {
	w := newWorld(t, registry.Options{})
	path := "/v2/demo-1.0.0/operator/blobs/" + w.layer
	size := len(w.layerBytes)
	tag := `"` + w.layer + `"`
	for _, test := range []struct {
		name    string
		headers []string
		status  int
		body    string
		length  int
	}{
		{"from a to b", []string{"Range: bytes=10-19"}, 206, w.layerBytes[10:20], 10},
		{"resumed as containerd does", []string{"Range: bytes=100000-"}, 206, w.layerBytes[100000:], size - 100000},
		{"the last ones", []string{"Range: bytes=-7"}, 206, w.layerBytes[size-7:], 7},
		{"behind the end", []string{fmt.Sprintf("Range: bytes=%d-", size)}, 416, "", -1},
		{"If-Range of these bytes", []string{"Range: bytes=1-2", "If-Range: " + tag}, 206, w.layerBytes[1:3], 2},
		{"If-Range of others", []string{"Range: bytes=1-2", `If-Range: "sha256:other"`}, 200, w.layerBytes, size},
		{"If-None-Match", []string{"If-None-Match: " + tag}, 304, "", -1},
		{"If-None-Match of others", []string{`If-None-Match: "sha256:other"`}, 200, w.layerBytes, size},
		{"compression is not wanted by anybody", []string{"Accept-Encoding: zstd, gzip, deflate"}, 200, w.layerBytes, size},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.ask(t, "GET", path, test.headers...)
			if got.status != test.status || test.body != "" && got.body != test.body {
				t.Errorf("%d with %d bytes, want %d with %d", got.status, len(got.body), test.status, len(test.body))
			}
			if test.length >= 0 && got.length != int64(test.length) {
				t.Errorf("Content-Length %d, want %d", got.length, test.length)
			}
		})
	}
	t.Run("several", func(t *testing.T) {
		got := w.ask(t, "GET", path, "Range: bytes=0-4,200000-200009")
		if got.status != 206 || !strings.HasPrefix(got.header.Get("Content-Type"), "multipart/byteranges") {
			t.Fatalf("%d %s", got.status, got.header.Get("Content-Type"))
		}
		for _, want := range []string{w.layerBytes[:5], w.layerBytes[200000:200010]} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%q is missing", want)
			}
		}
	})
}

// TestNames asks for images by their original names, as container runtimes do.
func TestNames(t *testing.T) {
	w := newWorld(t, registry.Options{MirrorOrigins: true})
	operator, ui := digestOf(t, w.operator), digestOf(t, w.ui)
	for _, test := range []struct{ name, path, digest, namespace string }{
		{"containerd, a host with a port", "/v2/acme/operator/manifests/v1?ns=registry.example.com:5000", operator, "registry.example.com:5000"},
		{"containerd, Docker Hub", "/v2/library/busybox/manifests/1.36?ns=docker.io", ui, "docker.io"},
		{"containerd, our own name", "/v2/demo-1.0.0/ui/manifests/1.0.0?ns=registry.solutionctl.invalid", ui, "registry.solutionctl.invalid"},
		{"CRI-O", "/v2/docker.io/library/busybox/manifests/1.36", ui, ""},
		{"CRI-O, a host with a port", "/v2/" + registry.OriginRepository("registry.example.com:5000", "acme/operator") + "/manifests/v1", operator, ""},
		{"a digest of it", "/v2/acme/operator/manifests/" + operator + "?ns=registry.example.com:5000", operator, "registry.example.com:5000"},
		{"our tag is none there", "/v2/library/busybox/manifests/1.0.0?ns=docker.io", "", "docker.io"},
		{"another registry", "/v2/library/busybox/manifests/1.36?ns=quay.io", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.ask(t, "GET", test.path)
			if digest := got.header.Get("Docker-Content-Digest"); digest != test.digest {
				t.Errorf("%d %s, want %s: %.200s", got.status, digest, test.digest, got.body)
			}
			if namespace := got.header.Get("OCI-Namespace"); namespace != test.namespace {
				t.Errorf("OCI-Namespace: %q, want %q", namespace, test.namespace)
			}
		})
	}
	if got := w.ask(t, "GET", "/v2/acme/operator/blobs/"+w.layer+"?ns=registry.example.com:5000"); got.body != w.layerBytes {
		t.Errorf("blob of an original name: %d bytes, want %d", len(got.body), len(w.layerBytes))
	}
	t.Run("not unless asked for", func(t *testing.T) {
		closed := serve(t, registry.Options{}, open(t, w.iso))
		if got := closed.ask(t, "GET", "/v2/library/busybox/manifests/1.36?ns=docker.io"); got.status != 404 {
			t.Errorf("status %d", got.status)
		}
	})
}

// TestMissed: Missed is called before a client gets "not found", and only then.
func TestMissed(t *testing.T) {
	var asked atomic.Int32
	w := newWorld(t, registry.Options{Missed: func(ctx context.Context) {
		asked.Add(1)
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the client may wait for ever")
		}
	}})
	nothing := "sha256:" + strings.Repeat("0", 64)
	for path, want := range map[string]int32{
		"/v2/":                              0,
		"/v2/_catalog":                      1, // for a host that copies archives
		"/v2/demo-1.0.0/ui/manifests/1.0.0": 0,
		"/v2/demo-1.0.0/operator/blobs/" + w.layer: 0,
		"/v2/demo-1.0.0/ui/tags/list":              0,
		"/v2/demo-1.0.0/UI/manifests/1.0.0":        0, // nothing can be called so
		"/v2/demo-1.0.0/ui/manifests/2.0.0":        1,
		"/v2/demo-1.0.0/ui/blobs/" + nothing:       1,
		"/v2/demo-1.1.0/ui/manifests/1.0.0":        1,
		"/v2/demo-1.1.0/ui/tags/list":              1,
		"/v2/demo-1.1.0/ui/blobs/" + nothing:       1,
		"/v2/demo-1.1.0/ui/referrers/" + w.layer:   1,
	} {
		asked.Store(0)
		w.ask(t, "GET", path)
		if got := asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", path, got, want)
		}
	}
}

func TestConflicts(t *testing.T) {
	origin := func(name, version string, seed int64, text string) *registry.Archive {
		p := newProject(t, name, version)
		p.add("ui:1", image(t, seed, 100))
		p.origins[schema.ImageRef{Name: "ui", Tag: "1"}] = text
		return open(t, p.write())
	}
	a, same := origin("a", "1.0.0", 1, "quay.io/acme/ui:1"), origin("b", "1.0.0", 1, "quay.io/acme/ui:1")
	differs, elsewhere := origin("c", "1.0.0", 2, "quay.io/acme/ui:1"), origin("d", "1.0.0", 2, "quay.io/acme/ui:2")
	for _, test := range []struct {
		name     string
		origins  bool
		archives []*registry.Archive
		want     string
	}{
		{"the same image twice", true, []*registry.Archive{a, same}, ""},
		{"two tags of a repository", true, []*registry.Archive{a, elsewhere}, ""},
		{"one tag, two images", true, []*registry.Archive{a, differs}, "quay.io/acme/ui:1 is sha256:"},
		{"original names are not served", false, []*registry.Archive{a, differs}, ""},
		{"the same archive twice", false, []*registry.Archive{a, a}, "two archives are called a-1.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := serve(t, registry.Options{MirrorOrigins: test.origins}, a)
			err := r.Set(test.archives)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if got := r.ask(t, "GET", "/v2/a-1.0.0/ui/manifests/1"); got.status != 200 {
				t.Errorf("what was served before answers %d", got.status)
			}
		})
	}
}

// TestClients pulls with the clients of others.
func TestClients(t *testing.T) {
	w := newWorld(t, registry.Options{MirrorOrigins: true})
	t.Run("go-containerregistry", func(t *testing.T) {
		for _, ref := range []string{"demo-1.0.0/operator:1.0.0", "demo-1.0.0/ui:1.0.0", "docker.io/library/busybox:1.36", "demo-1.0.0/operator@" + digestOf(t, w.operator)} {
			img := must(remote.Image(w.reference(t, ref)))(t)
			if err := validate.Image(img); err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
		if err := validate.Index(must(remote.Index(w.reference(t, "demo-1.0.0/multi:2")))(t)); err != nil {
			t.Error(err)
		}
		repository := w.reference(t, "demo-1.0.0/operator").Context()
		if tags := must(remote.List(repository, remote.WithPageSize(1)))(t); !slices.Equal(tags, []string{"1.0.0", "latest"}) {
			t.Errorf("tags: %q", tags)
		}
		names := must(remote.Catalog(t.Context(), repository.Registry, remote.WithPageSize(2)))(t)
		want := []string{"demo-1.0.0/multi", "demo-1.0.0/operator", "demo-1.0.0/payload", "demo-1.0.0/ui", "docker.io/library/busybox", "registry.example.com_5000/acme/operator"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		referrers := must(must(remote.Referrers(repository.Digest(digestOf(t, w.operator))))(t).IndexManifest())(t)
		if len(referrers.Manifests) != 2 {
			t.Errorf("referrers: %+v", referrers)
		}
	})
	t.Run("skopeo", func(t *testing.T) {
		if _, err := exec.LookPath("skopeo"); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip("skopeo is not installed")
		}
		for _, ref := range []string{"demo-1.0.0/operator:1.0.0", "demo-1.0.0/ui:1.0.0", "demo-1.0.0/multi:2"} {
			dir := filepath.Join(t.TempDir(), "image")
			skopeo := exec.CommandContext(t.Context(), "skopeo", "copy", "--insecure-policy", "--all", "--src-tls-verify=false",
				"docker://"+strings.TrimPrefix(w.URL, "http://")+"/"+ref, "dir:"+dir)
			if out, err := skopeo.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", ref, err, out)
			}
		}
	})
}

// TestAccess compares the log with the requests.
func TestAccess(t *testing.T) {
	w := newWorld(t, registry.Options{})
	w.ask(t, "GET", "/v2/demo-1.0.0/operator/manifests/1.0.0?ns=registry.solutionctl.invalid", "User-Agent: test")
	w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer, "Range: bytes=100-")
	w.ask(t, "HEAD", "/v2/demo-1.0.0/operator/blobs/"+w.layer)
	w.ask(t, "POST", "/v2/demo-1.0.0/operator/blobs/uploads/")
	w.Close() // the connection shows when a request is complete
	var got []string
	for _, e := range w.access.entries {
		if e.Remote != "127.0.0.1" || e.Time.IsZero() || e.Microseconds < 0 {
			t.Errorf("%+v", e)
		}
		got = append(got, strings.Join([]string{e.Method, e.Operation, e.Repository, e.Tag, e.Namespace, e.Range, e.Digest, fmt.Sprint(e.Status), fmt.Sprint(e.Bytes), e.Error}, "|"))
	}
	want := []string{
		fmt.Sprintf("GET|manifest|demo-1.0.0/operator|1.0.0|registry.solutionctl.invalid||%s|200|%d|", digestOf(t, w.operator), must(w.operator.Size())(t)),
		fmt.Sprintf("GET|blob|demo-1.0.0/operator|||bytes=100-|%s|206|%d|", w.layer, len(w.layerBytes)-100),
		fmt.Sprintf("HEAD|blob|demo-1.0.0/operator||||%s|200|0|", w.layer),
		"POST|other||||||405|102|",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHealth(t *testing.T) {
	r := serve(t, registry.Options{})
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := r.ask(t, "GET", path); got.status != 200 || got.body != "ok\n" {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
	r.Drain()
	if got := r.ask(t, "GET", "/readyz"); got.status != http.StatusServiceUnavailable {
		t.Errorf("draining: %d", got.status)
	}
	if got := r.ask(t, "GET", "/healthz"); got.status != 200 {
		t.Errorf("draining, health: %d", got.status)
	}
}
