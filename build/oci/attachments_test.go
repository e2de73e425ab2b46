package oci_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/oci/ocitest"
	"github.com/solutionctl/solutionctl/schema/report"
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

// TestAttestations finds the bills of BuildKit and of referrers. Of a platform that is taken alone, it also finds those that were about the index, but no statement
// about it.
func TestAttestations(t *testing.T) {
	l := newLayout()
	amd, arm := l.image("linux/amd64", "a"), l.image("linux/arm64", "b")
	index := l.multi(amd, arm, l.attestation(arm), l.attestation(amd))
	l.tag("all", index)
	l.artifact(oci.SPDXType, index)
	l.artifact(oci.EnvelopeType, index)
	source, about := "oci:"+l.dir(t)+":all", " about "+index.Digest.String()
	for _, test := range []struct {
		name, platforms string
		bills           bool
		want            []string
		manifests       int
	}{
		{"all", "", false, []string{arm.Digest.Hex + " " + bill, amd.Digest.Hex + " " + bill, index.Digest.Hex + about, index.Digest.Hex + about}, 6},
		{"all with bills", "", true, []string{arm.Digest.Hex + " " + bill, amd.Digest.Hex + " " + bill, index.Digest.Hex + about, index.Digest.Hex + about}, 6},
		{"one", "linux/arm64", false, []string{}, 1},
		{"one with bills", "linux/arm64", true, []string{arm.Digest.Hex + " " + bill, arm.Digest.Hex + about}, 3},
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

// TestReferrersOfImages finds the bills that registries list about an image: by their API, by the tag, and in real registries. Artifacts of
// other types are left. A platform that is taken alone gets those about the index.
func TestReferrersOfImages(t *testing.T) {
	starts := map[string]func(*testing.T) string{"API": startAPI, "tag": startTag, "no API, a page for browsers": startWithoutAPI(http.StatusOK)}
	for _, status := range []int{400, 403, 405, 406, 410, 501} {
		starts[fmt.Sprintf("no API, %d", status)] = startWithoutAPI(status)
	}
	maps.Copy(starts, ocitest.Servers())
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			amd := l.image("linux/amd64", "a")
			l.tag("app", l.multi(amd, l.image("linux/arm64", "b")))
			image := resolve(t, oci.Options{}, "oci:"+l.dir(t)+":app")
			repository := start(t) + "/site/app"
			pushWith(t, repository, image, oci.SPDXType, "text/plain", oci.BundleType)
			source := "docker://" + repository + ":1"
			if plain := resolve(t, oci.Options{}, source); len(plain.Manifests) != 3 {
				t.Errorf("%d manifests, want 3", len(plain.Manifests))
			}
			brought := resolve(t, oci.Options{Bills: true}, source)
			if got, want := attached(t, brought), []string{image.Root.Digest.Hex + " a document"}; !slices.Equal(got, want) || brought.Root.Digest != image.Root.Digest {
				t.Errorf("%q, want %q", got, want)
			}
			if len(brought.Manifests) != 4 {
				t.Errorf("%d manifests, want 4", len(brought.Manifests))
			}
			one := resolve(t, oci.Options{Bills: true, Platforms: parsePlatforms("linux/amd64")}, source)
			if got, want := attached(t, one), []string{amd.Digest.Hex + " a document"}; !slices.Equal(got, want) || one.Root.Digest != amd.Digest {
				t.Errorf("of one platform: %q, want %q", got, want)
			}
		})
	}
}

// pushWith uploads an image, and documents of some types that refer to it.
func pushWith(t *testing.T, repository string, image *oci.Image, documents ...types.MediaType) {
	t.Helper()
	var err error
	for _, mediaType := range documents {
		layer := oci.BytesBlob(mediaType, []byte("a document"))
		if image, err = oci.Attach(image, oci.Artifact{Type: string(mediaType), Layers: []oci.Blob{layer}}); err != nil {
			t.Fatal(err)
		}
	}
	push, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: repository, Image: image, Tags: []string{"1"}}}, nil, oci.PushOptions{})
	if err == nil {
		err = push.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startAPI(t *testing.T) string { t.Helper(); return startReferrers(t, true) }

func startTag(t *testing.T) string { t.Helper(); return startReferrers(t, false) }

// startWithoutAPI starts a registry, or a proxy before it, that does not know the API for referrers, and answers something else than 404.
func startWithoutAPI(status int) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		known := registryHandler(false)
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<html>")
				return
			}
			known(w, r)
		})
	}
}

func startReferrers(t *testing.T, api bool) string {
	t.Helper()
	return serve(t, registryHandler(api))
}

func registryHandler(api bool) http.HandlerFunc {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(api)).ServeHTTP
}

// TestPagesOfReferrers reads lists that the registry gives in pages, as far as they go. The address of a page may be relative, or that of another host:
// only its query counts.
func TestPagesOfReferrers(t *testing.T) {
	for name, test := range map[string]struct {
		link  string // with the path and the query of the next page
		found int    // of three
		err   string
	}{
		"relative":            {`<%s?%s>; rel="next"`, 3, ""},
		"absolute":            {`<https://registry.internal:5000%s?%s>;rel=next`, 3, ""},
		"of another list":     {`<%s/other?%s>; rel="next"`, 0, "its next page"},
		"without a query":     {`<%s>; rel="next"; title="%s"`, 0, "its next page"},
		"the same for ever":   {`<%s?again=%s>; rel="next"`, 0, "more than 1000"},
		"not the next":        {`<%s?%s>; rel="last"`, 1, ""},
		"not in the brackets": {`%s?%s; rel="next"`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			known := registryHandler(true)
			host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/referrers/") {
					known(w, r)
					return
				}
				servePage(t, known, w, r, test.link)
			})
			l := newLayout()
			l.tag("app", l.image("linux/amd64", "a"))
			image := resolve(t, oci.Options{}, "oci:"+l.dir(t)+":app")
			pushWith(t, host+"/site/app", image, oci.SPDXType, oci.CycloneDXType, oci.InTotoType)
			r, _ := patient(t, oci.Options{PlainHTTP: []string{host}, Bills: true})
			if test.err != "" {
				_, err := r.Referrers(t.Context(), host+"/site/app:1", image.Root.Digest, oci.InTotoType)
				checkError(t, err, report.Invalid, test.err, "")
				return
			}
			found := attached(t, resolve(t, oci.Options{Bills: true}, "docker://"+host+"/site/app:1"))
			if len(found) != test.found {
				t.Errorf("%q, want %d bills", found, test.found)
			}
		})
	}
}

// servePage answers with one entry of a list, and a link in a form to the rest.
func servePage(t *testing.T, whole http.HandlerFunc, w http.ResponseWriter, r *http.Request, form string) {
	t.Helper()
	recorded := httptest.NewRecorder()
	whole(recorded, r)
	var list v1.IndexManifest
	if err := json.Unmarshal(recorded.Body.Bytes(), &list); err != nil {
		t.Error(err)
	}
	slices.SortFunc(list.Manifests, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.Hex, b.Digest.Hex) })
	at := slices.IndexFunc(list.Manifests, func(d v1.Descriptor) bool { return d.Digest.Hex > r.URL.Query().Get("last") })
	if at < 0 {
		t.Errorf("asked for a page after the last: %s", r.URL)
		return
	}
	if at+1 < len(list.Manifests) {
		query := url.Values{"n": {"1"}, "last": {list.Manifests[at].Digest.Hex}}
		w.Header().Set("Link", fmt.Sprintf(form, r.URL.Path, query.Encode()))
	}
	list.Manifests = list.Manifests[at : at+1]
	w.Header().Set("Content-Type", string(types.OCIImageIndex))
	_ = json.NewEncoder(w).Encode(list) // to this test
}

// TestHostileReferrers reads a list of referrers that is too large to be kept, and one with entries that no artifact has.
func TestHostileReferrers(t *testing.T) {
	long, pages := strings.Repeat("x", 7<<20), 0
	l := newLayout()
	l.tag("app", l.image("linux/amd64", "a"))
	image := resolve(t, oci.Options{}, "oci:"+l.dir(t)+":app")
	known := registryHandler(true)
	damaged, hostile := image.Root.Digest, false
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/manifests/"+damaged.String()) && hostile:
			_, _ = io.WriteString(w, "{}")
		case strings.Contains(r.URL.Path, "/referrers/") && r.URL.Query().Get("artifactType") == "large":
			pages++
			w.Header().Set("Content-Type", string(types.OCIImageIndex))
			w.Header().Set("Link", fmt.Sprintf(`<%s?artifactType=large&n=%d>; rel="next"`, r.URL.Path, pages))
			_, _ = fmt.Fprintf(w, `{"manifests": [{"digest": "%s", "size": 1, "annotations": {"a": "%s"}}]}`, damaged, long)
		case strings.Contains(r.URL.Path, "/referrers/"):
			recorded := httptest.NewRecorder()
			known(recorded, r)
			odd := fmt.Sprintf(`"manifests":[{"digest":"sha512:%s","size":1},{},{"digest":"%s","size":2},{"digest":"sha256:%s","size":3},`, strings.Repeat("a", 128), damaged, strings.Repeat("b", 64))
			w.Header().Set("Content-Type", string(types.OCIImageIndex))
			_, _ = io.WriteString(w, strings.Replace(recorded.Body.String(), `"manifests":[`, odd, 1))
		default:
			known(w, r)
		}
	})
	pushWith(t, host+"/site/app", image, oci.InTotoType)
	hostile = true
	r, _ := patient(t, oci.Options{PlainHTTP: []string{host}})
	_, err := r.Referrers(t.Context(), host+"/site/app:1", image.Root.Digest, "large")
	checkError(t, err, report.Invalid, "more than 64 MiB", "")
	if pages > 10 {
		t.Errorf("%d pages were read", pages)
	}
	found, err := r.Referrers(t.Context(), host+"/site/app:1", image.Root.Digest, oci.InTotoType)
	if err != nil || len(found) != 1 {
		t.Errorf("found %d artifacts: %v", len(found), err)
	}
}
