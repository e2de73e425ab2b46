package oci_test

import (
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/oci/ocitest"
)

const (
	bill = `{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://spdx.dev/Document"}`
	slsa = `{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1"}`
)

// attestation adds an attestation as BuildKit does, with a bill of materials and a provenance.
func (l *layoutBuilder) attestation(subject oci.Descriptor) oci.Descriptor {
	statement := func(predicate, text string) v1.Descriptor {
		d := l.blob("application/vnd.in-toto+json", []byte(text))
		d.Annotations = map[string]string{"in-toto.io/predicate-type": predicate}
		return d
	}
	d := l.json(types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: l.json(types.OCIConfigJSON, v1.ConfigFile{OS: "unknown", Architecture: "unknown"}),
		Layers: []v1.Descriptor{statement("https://spdx.dev/Document", bill), statement("https://slsa.dev/provenance/v1", slsa)},
	})
	d.Platform = platformOf("unknown/unknown")
	d.Annotations = map[string]string{"vnd.docker.reference.digest": subject.Digest.String(), "vnd.docker.reference.type": "attestation-manifest"}
	return d
}

// attached lists the documents of an image that can be bills of materials, with the digests that they are about.
func attached(t *testing.T, image *oci.Image) []string {
	t.Helper()
	list, err := image.Attachments()
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, a := range list {
		for _, layer := range a.Layers {
			if !a.CanBeBill(layer.Descriptor) {
				continue
			}
			data, err := oci.ReadBlob(t.Context(), layer, 1000)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, a.About.Hex+" "+string(data))
		}
	}
	return found
}

// TestAttestations finds the bills of BuildKit, also of a platform that is taken alone, whose index stays away.
func TestAttestations(t *testing.T) {
	l := newLayout()
	amd, arm := l.image("linux/amd64", "a"), l.image("linux/arm64", "b")
	l.tag("all", l.multi(amd, arm, l.attestation(arm), l.attestation(amd)))
	source := "oci:" + l.dir(t) + ":all"
	for _, test := range []struct {
		name, platforms string
		bills           bool
		want            []string
		manifests       int
	}{
		{"all", "", false, []string{arm.Digest.Hex + " " + bill, amd.Digest.Hex + " " + bill}, 4},
		{"all with bills", "", true, []string{arm.Digest.Hex + " " + bill, amd.Digest.Hex + " " + bill}, 4},
		{"one", "linux/arm64", false, []string{}, 1},
		{"one with bills", "linux/arm64", true, []string{arm.Digest.Hex + " " + bill}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := oci.Options{Platforms: parsePlatforms(test.platforms), Bills: test.bills}
			image := resolve(t, o, source)
			if got := attached(t, image); !slices.Equal(got, test.want) || len(image.Manifests) != test.manifests {
				t.Errorf("%d manifests with %q, want %d with %q", len(image.Manifests), got, test.manifests, test.want)
			}
			if again := resolve(t, o, source); again.Manifests[test.manifests-1].Digest != image.Manifests[test.manifests-1].Digest {
				t.Error("resolved again, the image has another manifest")
			}
		})
	}
}

// TestReferrersOfImages finds the bills that registries list about an image: by their API, by the tag, and in Debian's docker-registry. Artifacts of
// other types, and such that only the list puts there, are left.
func TestReferrersOfImages(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"API": startAPI, "tag": startTag, "docker-registry": ocitest.StartServer} {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			l.tag("app", l.image("linux/amd64", "a"))
			image := resolve(t, oci.Options{}, "oci:"+l.dir(t)+":app")
			document := func(mediaType types.MediaType, text string) oci.Artifact {
				return oci.Artifact{Type: string(mediaType), Layers: []oci.Blob{oci.BytesBlob(mediaType, []byte(text))}}
			}
			with := image
			var err error
			for _, a := range []oci.Artifact{document(oci.SPDXType, "spdx"), document("text/plain", "a note"), document(oci.BundleType, "a signature")} {
				if with, err = oci.Attach(with, a); err != nil {
					t.Fatal(err)
				}
			}
			repository := start(t) + "/site/app"
			push, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: repository, Image: with, Tags: []string{"1"}}}, nil, oci.PushOptions{})
			if err == nil {
				err = push.Run(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if plain := resolve(t, oci.Options{}, "docker://"+repository+":1"); len(plain.Manifests) != 1 {
				t.Errorf("%d manifests, want 1", len(plain.Manifests))
			}
			brought := resolve(t, oci.Options{Bills: true}, "docker://"+repository+":1")
			if got, want := attached(t, brought), []string{image.Root.Digest.Hex + " spdx"}; !slices.Equal(got, want) || brought.Root.Digest != image.Root.Digest {
				t.Errorf("%q, want %q", got, want)
			}
			if len(brought.Manifests) != 2 {
				t.Errorf("%d manifests, want 2", len(brought.Manifests))
			}
		})
	}
}

func startAPI(t *testing.T) string { t.Helper(); return startReferrers(t, true) }

func startTag(t *testing.T) string { t.Helper(); return startReferrers(t, false) }

func startReferrers(t *testing.T, api bool) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(api)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
