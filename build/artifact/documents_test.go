package artifact_test

import (
	"bytes"
	"compress/gzip"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
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

// about is an archive with a bill of materials and statements of OpenVEX, and the titles and the content of those that are one. The others only
// have such a name, or decompress to more than is read.
func about(t *testing.T) (data []byte, bills, statements map[string]string) {
	t.Helper()
	bill := `{"spdxVersion":"SPDX-2.3"}`
	statement := `{"@context": "https://openvex.dev/ns/v0.2.0", "author": "Acme", "statements": []}`
	data, err := layouttest.MakeWith(map[string][]byte{
		"sbom/ui/1.0.0.spdx.json.gz": compressed(t, []byte(bill)), "sbom/bomb/1.0.0.spdx.json.gz": compressed(t, make([]byte, 65<<20)),
		"sbom/text/1.0.0.spdx.json.gz": []byte("not compressed"), "sbom/ui.spdx.json.gz": compressed(t, []byte("elsewhere")),
		"vex/acme.json": []byte(statement), "vex/values.json": []byte(`{"a": 1}`), "vex/empty.json": nil, "vex/more/acme.json": []byte(statement + " "),
	}, "1.0.0", layouttest.Noise(rand.New(rand.NewPCG(5, 6)), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	return data, map[string]string{"ui-1.0.0.spdx.json": bill}, map[string]string{"acme.json": statement}
}

// checkReferrers compares the artifacts of a type that are about an archive.
func checkReferrers(t *testing.T, reference artifact.Reference, digest, artifactType string, want map[string]string) {
	t.Helper()
	subject := oci.Digest{Algorithm: "sha256", Hex: digest[len("sha256:"):]}
	found, err := oci.NewResolver(oci.Options{}).Referrers(t.Context(), reference.Repository+":"+reference.Tag, subject, artifactType)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range found {
		data, err := oci.ReadBlob(t.Context(), a.Layers[0], 1000)
		if err != nil {
			t.Fatal(err)
		}
		got[a.Layers[0].Annotations["org.opencontainers.image.title"]] = string(data)
	}
	if len(found) != len(want) || !maps.Equal(got, want) {
		t.Errorf("%s: %q, want %q", artifactType, got, want)
	}
}

// TestDocuments pushes an archive with bills of materials and statements: they refer to the archive, decompressed, in registries with and
// without a list of referrers.
func TestDocuments(t *testing.T) {
	data, bills, statements := about(t)
	for name, referrers := range map[string]bool{"a list of referrers": true, "a tag": false} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, referrers)
			signature := layout.Bundle{Data: []byte(`{"signature":1}`)}
			digest := s.push(t, data, s.reference.Tag, signature)
			checkReferrers(t, s.reference, digest, "application/spdx+json", bills)
			checkReferrers(t, s.reference, digest, "application/vnd.openvex+json", statements)
			checkBundles(t, s.reference, []layout.Bundle{signature})
			sent := s.taken.Load()
			if again := s.push(t, data, s.reference.Tag, signature); again != digest || s.taken.Load()-sent > overhead {
				t.Errorf("pushed again: %s, want %s; %d bytes were sent", again, digest, s.taken.Load()-sent)
			}
			checkReferrers(t, s.reference, digest, "application/vnd.openvex+json", statements)
		})
	}
}

// TestForeignStatements adds statements to those of an archive, as others can who may write to the registry: what is pulled stays the archive.
func TestForeignStatements(t *testing.T) {
	data, _, _ := about(t)
	s := newServer(t, true)
	a, err := artifact.New(t.Context(), source(data), nil, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	foreign := oci.BytesBlob("application/vnd.openvex+json", []byte(`{"@context": "https://openvex.dev/ns/v0.2.0", "author": "Mallory", "statements": []}`))
	foreign.Annotations = map[string]string{"org.opencontainers.image.title": "acme.json"}
	image, err := oci.Attach(a.Image, oci.Artifact{Type: "application/vnd.openvex+json", Layers: []oci.Blob{foreign}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: s.reference.Repository, Image: image, Tags: []string{s.reference.Tag}}}, nil, oci.PushOptions{})
	if err == nil {
		err = p.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "demo.iso")
	if _, err := s.pull(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	checkFile(t, file, data)
	checkBundles(t, s.reference, nil)
}
