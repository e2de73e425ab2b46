package oci_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

// common is MetalK8s' part of the server block, beside the configuration of each Solution.
const common = `
location = /v2 { return 301 /v2/; }
location = /v2/ { return 200 'ok'; }
location @404_tag {
    internal;
    types { } default_type "application/json";
    return 404 '{"errors": [{"code": "TAG_INVALID", "message": "manifest tag did not match URI", "detail": ""}]}';
}
`

// startNginx serves the images with the configuration, and returns a transport that reaches nothing else.
func startNginx(t *testing.T, images []*oci.Image, form string) http.RoundTripper {
	t.Helper()
	nginx := needs(t, "nginx", "nginx")
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.CopyFS(tree, mapFS(t, layoutOf(t, images...))); err != nil {
		t.Fatal(err)
	}
	config, err := oci.RegistryConfig(images, form)
	if err != nil {
		t.Fatal(err)
	}
	included := strings.NewReplacer("{{ repository }}", "demo-1.0.0", "{{ registry_root }}", tree+"/images").Replace(string(config))
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the workers have to read the test's directory
	}
	// A socket in the file system needs no free port; its path has to be short.
	short, err := os.MkdirTemp("", "nginx") //nolint:usetesting // the path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	main := fmt.Sprintf(`%s worker_processes 1; pid %s/pid; error_log %[2]s/error.log;
events {}
http { access_log off; client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
server { listen unix:%s; %s
%s
} }`, user, dir, socket, common, included)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(nginx, append([]string{"-p", dir, "-e", dir + "/error.log", "-c", file}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("nginx %v: %v\n%s", args, err, out)
		}
	}
	run("-t")
	run() // returns when the socket is open
	t.Cleanup(func() { run("-s", "stop") })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// pull fetches an image with the client of go-containerregistry, every blob included.
func pull(t *testing.T, transport http.RoundTripper, image *oci.Image, reference string) {
	t.Helper()
	ref, err := name.ParseReference("localhost:80/demo-1.0.0/"+image.Ref.Name+reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	o := []remote.Option{remote.WithTransport(transport), remote.WithContext(t.Context())}
	head, err := remote.Head(ref, o...)
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	got, err := remote.Get(ref, o...)
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	if got.Digest != image.Root.Digest || head.Digest != got.Digest || got.MediaType != image.Root.MediaType {
		t.Errorf("%s is %s, %s", ref, got.MediaType, got.Digest)
	}
	for _, m := range image.Manifests[1:] {
		child, err := remote.Get(ref.Context().Digest(m.Digest.String()), o...)
		if err != nil || string(child.Manifest) != string(m.Data) || child.MediaType != m.MediaType {
			t.Errorf("%s: manifest %s: %v", ref, m.Digest, err)
		}
	}
	for _, b := range image.Blobs {
		layer, err := remote.Layer(ref.Context().Digest(b.Digest.String()), o...)
		if err != nil {
			t.Fatal(err)
		}
		body, err := layer.Compressed()
		if err != nil {
			t.Fatalf("%s: %v", b.Digest, err)
		}
		if digest, _, err := v1.SHA256(body); err != nil || digest != b.Digest || body.Close() != nil {
			t.Errorf("blob %s has the digest %s: %v", b.Digest, digest, err)
		}
	}
}

func TestNginxServes(t *testing.T) {
	images := append(solution(t), payload(t))
	for _, form := range []string{oci.Extended, oci.Legacy} {
		t.Run(form, func(t *testing.T) {
			transport := startNginx(t, images, form)
			for _, image := range images[:5] {
				if form == oci.Legacy && image.Ref.Name != "operator" {
					continue // an index, and a manifest without a media type
				}
				served := *image
				if form == oci.Legacy {
					served.Manifests = served.Manifests[:1]
				}
				pull(t, transport, &served, ":"+image.Ref.Tag)
				pull(t, transport, &served, "@"+image.Root.Digest.String())
			}
		})
	}
}

func TestNginxAnswers(t *testing.T) {
	images := solution(t)
	operator := images[2]
	layer := operator.Blobs[1].Digest.String()
	content := readBlob(t, operator.Blobs[1])
	sbom := operator.Manifests[1]
	transport := startNginx(t, images, oci.Extended)
	for _, test := range []struct {
		name, method, path, request string
		status                      int
		header, body                string
	}{
		{"ping", "GET", "", "", 200, "", "ok"},
		{"tags", "GET", "operator/tags/list", "", 200, "Content-Type: application/json", `{"name": "demo-1.0.0/operator", "tags": ["0.9.0", "1.0.0", "latest"]}`},
		{"no tag", "GET", "operator/manifests/nope", "", 404, "", "-"},
		{"blob", "GET", "operator/blobs/" + layer, "", 200, "Docker-Content-Digest: " + layer, string(content)},
		{"blob HEAD", "HEAD", "operator/blobs/" + layer, "", 200, fmt.Sprintf("Content-Length: %d", len(content)), ""},
		{"range", "GET", "operator/blobs/" + layer, "Range: bytes=2-5", 206, fmt.Sprintf("Content-Range: bytes 2-5/%d", len(content)), string(content[2:6])},
		{"open range", "GET", "operator/blobs/" + layer, "Range: bytes=7-", 206, "", string(content[7:])},
		{"range behind the end", "GET", "operator/blobs/" + layer, "Range: bytes=100000-", 416, "", "-"},
		{"blob with more behind it", "GET", "operator/blobs/" + layer + "00", "", 404, "", "-"},
		{"missing blob", "GET", "operator/blobs/sha256:" + strings.Repeat("0", 64), "", 404, "", "-"},
		{"referrers", "GET", "operator/referrers/" + operator.Root.Digest.String(), "", 200, "Content-Type: application/vnd.oci.image.index.v1+json", "-"},
		{"no referrers", "GET", "ui/referrers/sha256:" + strings.Repeat("0", 64), "", 200, "Content-Type: application/vnd.oci.image.index.v1+json", "-"},
		{"upload", "POST", "operator/blobs/uploads/", "", 404, "", "-"},
		{"dot is no wildcard", "GET", "my-plain_tool/blobs/" + images[1].Blobs[0].Digest.String(), "", 404, "", "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := "http://localhost/v2/demo-1.0.0/" + test.path
			if test.path == "" {
				url = "http://localhost/v2/"
			}
			request, err := http.NewRequestWithContext(t.Context(), test.method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if key, value, ok := strings.Cut(test.request, ": "); ok {
				request.Header.Set(key, value)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.status || test.body != "-" && string(body) != test.body {
				t.Errorf("%d %.200q %v, want %d %.200q", response.StatusCode, body, err, test.status, test.body)
			}
			if key, value, ok := strings.Cut(test.header, ": "); ok && response.Header.Get(key) != value {
				t.Errorf("%s: %q, want %q", key, response.Header.Get(key), value)
			}
			if strings.Contains(test.name, "referrers") {
				checkReferrers(t, body, test.name == "referrers", sbom)
			}
		})
	}
}

func checkReferrers(t *testing.T, body []byte, some bool, want oci.Manifest) {
	t.Helper()
	var index v1.IndexManifest
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	if !some && len(index.Manifests) != 0 || some && (len(index.Manifests) != 1 || index.Manifests[0].Digest != want.Digest || index.Manifests[0].ArtifactType != "application/spdx+json") {
		t.Errorf("referrers are %s", body)
	}
}

// nginx refuses a parameter of more than 4 KiB: long answers have to be put together.
func TestNginxLongAnswers(t *testing.T) {
	l := newLayout()
	image := l.image("linux/amd64", "x")
	l.tag("x", image)
	for i := range 40 {
		l.artifact(fmt.Sprintf("application/vnd.test.%d+json", i), image)
	}
	r := newResolver(t, oci.Options{BaseDir: l.dir(t)})
	var images []*oci.Image
	for i := range 60 {
		got, err := r.Resolve(t.Context(), schema.ImageRef{Name: "x", Tag: fmt.Sprintf("%s-%d", strings.Repeat("t", 100), i)}, "oci:.:x")
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, got)
	}
	transport := startNginx(t, images, oci.Extended)
	repo, err := name.NewRepository("localhost:80/demo-1.0.0/x", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(repo, remote.WithTransport(transport))
	if err != nil || len(tags) != 60 || !slices.Contains(tags, images[59].Ref.Tag) {
		t.Errorf("%d tags, %v", len(tags), err)
	}
	index, err := remote.Referrers(repo.Digest(image.Digest.String()), remote.WithTransport(transport))
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 40 || m.MediaType != types.OCIImageIndex {
		t.Errorf("%d referrers, %v", len(m.Manifests), err)
	}
}
