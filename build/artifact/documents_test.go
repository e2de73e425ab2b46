package artifact_test

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/oci"
)

func compressed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDocuments pushes an archive with bills of materials: they refer to the archive, decompressed, in registries with and without a list of
// referrers. Files that only have such a name do not, nor does one that decompresses to more than is read.
func TestDocuments(t *testing.T) {
	document := []byte(`{"spdxVersion":"SPDX-2.3"}`)
	data, err := layouttest.MakeWith(map[string][]byte{
		"sbom/ui/1.0.0.spdx.json.gz": compressed(t, document), "sbom/bomb/1.0.0.spdx.json.gz": compressed(t, make([]byte, 65<<20)),
		"sbom/text/1.0.0.spdx.json.gz": []byte("not compressed"), "sbom/ui.spdx.json.gz": compressed(t, []byte("elsewhere")),
	}, "1.0.0", layouttest.Noise(rand.New(rand.NewPCG(5, 6)), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	for name, referrers := range map[string]bool{"a list of referrers": true, "a tag": false} {
		s := newServer(t, referrers)
		signature := layout.Bundle{Data: []byte(`{"signature":1}`)}
		digest := s.push(t, data, s.reference.Tag, signature)
		resolver := oci.NewResolver(oci.Options{})
		subject := oci.Digest{Algorithm: "sha256", Hex: digest[len("sha256:"):]}
		found, err := resolver.Referrers(t.Context(), s.reference.Repository+":"+s.reference.Tag, subject, "application/spdx+json")
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %d bills of materials, want 1: %v", name, len(found), err)
		}
		layer := found[0].Layers[0]
		got, err := oci.ReadBlob(t.Context(), layer, 1000)
		if err != nil || !slices.Equal(got, document) {
			t.Errorf("%s: %q: %v", name, got, err)
		}
		if title := layer.Annotations["org.opencontainers.image.title"]; title != "ui-1.0.0.spdx.json" {
			t.Errorf("%s: title %q", name, title)
		}
		checkBundles(t, s.reference, []layout.Bundle{signature})
	}
}
