package node_test

import (
	"encoding/pem"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/solutionctl/solutionctl/deployer/host/node"
)

// TestSkopeoReadsWhatCRIOReads resolves names through the drop-in with the library that CRI-O uses, over TLS: the name that
// does not exist, an original name, and with the first endpoint being down.
func TestSkopeoReadsWhatCRIOReads(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("skopeo is not installed")
	}
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "https://")
	image, err := random.Image(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, repository := range []string{"demo-1.0.0/ui:1.0.0", "docker.io/library/nginx:1.27", "site/solutions/demo-2.0.0/ui:2.0.0"} {
		ref, invalid := name.ParseReference(address + "/" + repository)
		if invalid != nil {
			t.Fatal(invalid)
		}
		if err = remote.Write(ref, image, remote.WithTransport(server.Client().Transport)); err != nil {
			t.Fatal(err)
		}
	}
	down := httptest.NewServer(nil)
	down.Close()

	c := node.Config{
		Runtime: node.CRIO, Host: "registry.solutionctl.invalid", Mirrors: []string{"docker.io"}, Endpoints: []string{down.URL, server.URL + "/site/solutions", server.URL},
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	root := t.TempDir()
	apply(t, root, c)
	drop, certs := filepath.Join(root, "etc/containers/registries.conf.d/50-solutionctl.conf"), filepath.Join(root, "etc/containers/certs.d", address)
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"registry.solutionctl.invalid/demo-1.0.0/ui:1.0.0", "docker.io/library/nginx:1.27", "registry.solutionctl.invalid/demo-2.0.0/ui:2.0.0", "registry.solutionctl.invalid/demo-1.0.0/ui@" + want.String()} {
		cmd := exec.CommandContext(t.Context(), "skopeo", "--registries-conf", drop, "inspect", "--cert-dir", certs, "--no-tags", "--format", "{{.Digest}}", "docker://"+reference)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want.String() {
			t.Errorf("%s: got %q, %v: %s", reference, got, err, &stderr)
		}
	}
}
