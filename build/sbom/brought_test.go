package sbom

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	statedSPDX = `{"spdxVersion": "SPDX-2.3", "creationInfo": {"creators": ["Organization: Anchore", "Tool: syft-1.2.0", "Tool: buildkit"]}, "packages": [
  {"name": "app", "SPDXID": "SPDXRef-root"},
  {"name": "app", "externalRefs": [{"referenceType": "purl", "referenceLocator": "pkg:oci/app@sha256:00?tag=1"}]},
  {"name": "libssl3", "versionInfo": "3.0.11-1~deb12u2", "licenseDeclared": "NOASSERTION", "externalRefs": [
    {"referenceType": "cpe23Type", "referenceLocator": "cpe:2.3:a:x"},
    {"referenceType": "purl", "referenceLocator": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&upstream=openssl&distro=debian-12"}]},
  {"name": "serde", "versionInfo": "1.0.1", "licenseDeclared": "MIT OR Apache-2.0", "externalRefs": [
    {"referenceType": "purl", "referenceLocator": "pkg:cargo/serde@1.0.1?checksum=sha256:11#src"}]}]}`
	statedCycloneDX = `{"bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": {"tools": [{"vendor": "anchore", "name": "syft", "version": "1.2.0"}]}, "components": [
  {"type": "operating-system", "name": "debian"},
  {"type": "library", "name": "libssl3", "version": "3.0.11-1~deb12u2", "purl": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64", "components": [
    {"type": "library", "name": "serde", "version": "1.0.1", "purl": "pkg:cargo/serde@1.0.1", "licenses": [{"expression": "MIT OR Apache-2.0"}]}]}]}`
)

// statement wraps a document into a statement of in-toto about an image.
func statement(document, digest string) string {
	predicate := "https://spdx.dev/Document/v2.3"
	if strings.Contains(document, "CycloneDX") {
		predicate = "https://cyclonedx.org/bom"
	}
	return fmt.Sprintf(`{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": %q, "subject": [{"name": "other", "digest": {"sha256": "00"}}, {"digest": {"sha256": %q}}], "predicate": %s}`,
		predicate, digest, document)
}

func envelope(statement string) string {
	return fmt.Sprintf(`{"payloadType": "application/vnd.in-toto+json", "payload": %q, "signatures": [{"sig": "AA=="}]}`, base64.StdEncoding.EncodeToString([]byte(statement)))
}

func bundle(statement string) string {
	return `{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": ` + envelope(statement) + `}`
}

// withBills is an image of Debian with the package libssl3, and documents that refer to it.
func withBills(t *testing.T, artifacts func(image *oci.Image) []oci.Artifact) *oci.Image {
	t.Helper()
	layer := layerOf(t, entry{name: "etc/os-release", content: debianRelease}, entry{name: "var/lib/dpkg/status", content: dpkgStatus})
	image := imageOf(t, "app", compress(t, layer))
	for _, a := range artifacts(image) {
		var err error
		if image, err = oci.Attach(image, a); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

func document(artifactType, text string) oci.Artifact {
	layer := blobOf("application/octet-stream", []byte(text))
	a := oci.Artifact{Type: artifactType, Layers: []oci.Blob{layer}}
	if artifactType == oci.BundleType {
		a.Annotations = map[string]string{"dev.sigstore.bundle.predicateType": "https://spdx.dev/Document"}
	}
	return a
}

// TestBrought lists the packages of a bill of materials that the image brings, in each of its forms: those that are not found in the layers are marked.
func TestBrought(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(digest string) oci.Artifact
		want schema.PackageBill
	}{
		{"SPDX", func(string) oci.Artifact { return document(oci.SPDXType, statedSPDX) }, schema.PackageBill{Format: "SPDX-2.3", Tool: "syft-1.2.0", Left: 1}},
		{"CycloneDX", func(string) oci.Artifact { return document(oci.CycloneDXType, statedCycloneDX) }, schema.PackageBill{Format: "CycloneDX-1.5", Tool: "syft-1.2.0", Left: 1}},
		{"statement", func(digest string) oci.Artifact { return document(oci.InTotoType, statement(statedSPDX, digest)) }, schema.PackageBill{Format: "SPDX-2.3", Tool: "syft-1.2.0", Left: 1}},
		{"envelope", func(digest string) oci.Artifact {
			return document(oci.EnvelopeType, envelope(statement(statedCycloneDX, digest)))
		}, schema.PackageBill{Format: "CycloneDX-1.5", Tool: "syft-1.2.0", Left: 1}},
		{"bundle", func(digest string) oci.Artifact {
			return document(oci.BundleType, bundle(statement(statedSPDX, digest)))
		}, schema.PackageBill{Format: "SPDX-2.3", Tool: "syft-1.2.0", Left: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var brought oci.Artifact
			image := withBills(t, func(image *oci.Image) []oci.Artifact {
				brought = test.make(image.Root.Digest.Hex)
				return []oci.Artifact{brought}
			})
			list, err := listImages(t.Context(), []*oci.Image{image}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			digest := brought.Layers[0].Digest.String()
			test.want.Origin, test.want.Digest, test.want.Packages, test.want.Only = schema.OriginBrought, digest, 2, 1
			if diff := cmp.Diff([]schema.PackageBill{{Origin: schema.OriginMade, Packages: 2}, test.want}, list[0].Bills); diff != "" {
				t.Errorf("bills (-want +got):\n%s", diff)
			}
			want := schema.Package{
				Name: "serde", Version: "1.0.1", Type: "cargo", PURL: "pkg:cargo/serde@1.0.1", License: "MIT OR Apache-2.0", Paths: []string{},
				Origin: schema.OriginBrought, Bill: digest,
			}
			if diff := cmp.Diff(want, list[0].Packages[0]); diff != "" || len(list[0].Packages) != 3 || list[0].Packages[1].Origin != schema.OriginMade {
				t.Errorf("%d packages, the first one (-want +got):\n%s", len(list[0].Packages), diff)
			}
			checkWritten(t, list, digest)
		})
	}
}

// checkWritten writes a list with a brought package: SPDX and CycloneDX mark it.
func checkWritten(t *testing.T, images []schema.ImagePackages, digest string) {
	t.Helper()
	d := &Document{PackageList: &schema.PackageList{Solution: "demo", Version: "1.0.0", Images: images, LookedFor: packageKinds()}, Tool: "1.2.3"}
	var spdx, cyclone bytes.Buffer
	if err := d.SPDX(&spdx); err != nil {
		t.Fatal(err)
	}
	if err := d.CycloneDX(&cyclone); err != nil {
		t.Fatal(err)
	}
	if want := `"sourceInfo": "only in the bill of materials ` + digest + ` that the image brings; it was not verified"`; strings.Count(spdx.String(), want) != 1 {
		t.Errorf("not once in SPDX: %s", want)
	}
	if strings.Count(cyclone.String(), `"value": "brought-unverified"`) != 1 {
		t.Error("CycloneDX does not mark one package")
	}
}

// TestNotBrought gives documents that bring nothing: those that cannot be read are listed, others are not about the packages of the image.
func TestNotBrought(t *testing.T) {
	many := strings.Repeat(`{},`, 500_001)
	deep := statedCycloneDX
	for range 40 {
		deep = strings.Replace(deep, `{"type": "library", "name": "libssl3"`, `{"components": [{"type": "library", "name": "libssl3"`, 1)
		deep = strings.Replace(deep, `]}]}]}`, `]}]}]}]}`, 1)
	}
	nested := statement(statedSPDX, "00")
	for range 6 {
		nested = `{"dsseEnvelope": ` + nested + `}`
	}
	for _, test := range []struct{ name, typ, text, reason string }{
		{"not JSON", oci.SPDXType, "SPDXVersion: SPDX-2.3", "invalid character"},
		{"SPDX 3", oci.SPDXType, `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": []}`, "neither SPDX 2 nor CycloneDX"},
		{"another image", oci.InTotoType, statement(statedSPDX, "11"), "about another image"},
		{"another statement", oci.InTotoType, `{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1", "predicate": {}}`, ""},
		{"made by this program", oci.SPDXType, strings.Replace(statedSPDX, "syft-1.2.0", "solutionctl-1.0.0", 1), ""},
		{"no payload", oci.EnvelopeType, `{"payloadType": "application/vnd.in-toto+json", "payload": "%"}`, "illegal base64"},
		{"too many objects", oci.SPDXType, `{"spdxVersion": "SPDX-2.3", "packages": [` + many + `{}]}`, "more than 500000 objects"},
		{"envelopes in envelopes", oci.EnvelopeType, nested, "nested more than 4 deep"},
		{"components in components", oci.CycloneDXType, deep, "nested more than 32 deep"},
		{"control characters", oci.SPDXType, strings.Replace(statedSPDX, `serde@1.0.1`, `serde@1%1b[2J`, 1), "control characters"},
		{"a long name", oci.SPDXType, strings.Replace(statedSPDX, "cargo/serde", "cargo/"+strings.Repeat("s", 600), 1), "too long"},
		{"another type", "text/plain", statedSPDX, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := withBills(t, func(*oci.Image) []oci.Artifact { return []oci.Artifact{document(test.typ, test.text)} })
			list, err := listImages(t.Context(), []*oci.Image{image}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list[0].Packages) != 2 || len(list[0].Bills) != 1 {
				t.Errorf("%d packages of %+v", len(list[0].Packages), list[0].Bills)
			}
			unread := list[0].Unread
			if test.reason == "" && len(unread) != 0 || test.reason != "" && (len(unread) != 1 || !strings.Contains(unread[0].Reason, test.reason)) {
				t.Errorf("not read: %+v, want %q", unread, test.reason)
			}
		})
	}
}

// TestManyBills reads some of the bills of an image with very many, and lists that there are more.
func TestManyBills(t *testing.T) {
	image := withBills(t, func(*oci.Image) (list []oci.Artifact) {
		for i := range 40 {
			list = append(list, document(oci.SPDXType, strings.Replace(statedSPDX, "serde@1.0.1", fmt.Sprintf("serde@1.0.%d", i), 1)))
		}
		return list
	})
	list, err := listImages(t.Context(), []*oci.Image{image}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list[0].Bills) != 17 || len(list[0].Unread) != 1 || list[0].Unread[0].Reason != "the image brings more than 16" {
		t.Errorf("%d bills, not read: %+v", len(list[0].Bills), list[0].Unread)
	}
	first, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	list, err = listImages(t.Context(), []*oci.Image{image}, Options{})
	if again, failure := json.Marshal(list); err != nil || failure != nil || !bytes.Equal(first, again) {
		t.Errorf("another list at the second time: %v, %v", err, failure)
	}
}

// TestBillsOfManyImages reads no more bytes of bills than the limit of an archive, whichever images bring them.
func TestBillsOfManyImages(t *testing.T) {
	image := withBills(t, func(*oci.Image) []oci.Artifact { return []oci.Artifact{document(oci.SPDXType, statedSPDX)} })
	limit := standardLimits()
	limit.bills = 2*int64(len(statedSPDX)) + 1
	list, err := scan(t.Context(), []*oci.Image{image, image, image, image}, Options{}, limit)
	if err != nil {
		t.Fatal(err)
	}
	for i, found := range list {
		if want := 2 - i/2; len(found.Bills) != want || len(found.Unread) != 2-want {
			t.Errorf("image %d: %d bills, not read: %+v", i, len(found.Bills), found.Unread)
		}
	}
}

// TestBroughtAffected finds a package that only the image lists, and marks it.
func TestBroughtAffected(t *testing.T) {
	text := strings.Replace(statedSPDX, `{"name": "app", "SPDXID": "SPDXRef-root"}`,
		`{"name": "x", "externalRefs": [{"referenceType": "purl", "referenceLocator": "pkg:npm/%40acme/lodash@4.17.20"}]}`, 1)
	image := withBills(t, func(*oci.Image) []oci.Artifact { return []oci.Artifact{document(oci.SPDXType, text)} })
	list, err := listImages(t.Context(), []*oci.Image{image}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{
		"pkg:npm/%40acme/lodash@<4.17.21": "@acme/lodash 4.17.20 brought-unverified: brought by the image, not verified",
		"pkg:cargo/serde@<1.0.2":          "serde 1.0.1 brought-unverified: brought by the image, not verified",
		"pkg:deb/debian/openssl":          "libssl3 3.0.11-1~deb12u2 made-by-solutionctl: source package openssl",
	} {
		q, err := ParseQuery(question)
		if err != nil {
			t.Fatal(err)
		}
		if limit := q.Limit(); (limit != "") != strings.HasPrefix(question, "pkg:cargo") {
			t.Errorf("%s: limit %q", question, limit)
		}
		found := q.Search(&schema.PackageList{Images: list}).Packages
		if len(found) != 1 {
			t.Fatalf("%s: %+v", question, found)
		}
		if got := fmt.Sprintf("%s %s %s: %s", found[0].Name, found[0].Version, string(found[0].Origin), found[0].Remark()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
