package main

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPullChart pulls a chart from a registry, and refuses an image.
func TestPullChart(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	packed, _, err := chart.Pack(fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0+x\n")}})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), oci.ChartConfigType), static.NewLayer(packed, oci.ChartContentType))
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err = remote.Write(parsed(t, host+"/charts/web:1.0.0_x"), artifact); err != nil {
		t.Fatal(err)
	}
	if err = remote.Write(parsed(t, host+"/images/web:1.0.0"), image); err != nil {
		t.Fatal(err)
	}
	resolver := oci.NewResolver(oci.Options{PlainHTTP: []string{host}})
	defer resolver.Close() //nolint:errcheck // it was only read
	source, err := openSource(t.Context(), resolver, "oci://"+host+"/charts/web:1.0.0+x")
	if err != nil {
		t.Fatal(err)
	}
	if string(source.Chart) != string(packed) {
		t.Errorf("got %d bytes, want the package, %d", len(source.Chart), len(packed))
	}
	if _, err = openSource(t.Context(), resolver, "oci://"+host+"/images/web:1.0.0"); report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "is not a chart") {
		t.Errorf("an image: got %v", err)
	}
}

func parsed(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
