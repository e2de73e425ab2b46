package oci_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

func textBlob(t *testing.T, text string) oci.Blob {
	t.Helper()
	digest, size, err := v1.SHA256(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return oci.Blob{Descriptor: oci.Descriptor{Digest: digest, Size: size}, Open: openText(text)}
}

// web is a chart, which may have a file by which it is verified.
func web(t *testing.T, version, provenance string) *oci.Image {
	t.Helper()
	c := oci.Chart{Name: "web", Version: version, Config: []byte(`{"name":"web","version":"` + version + `"}`), Content: textBlob(t, "package "+version)}
	if provenance != "" {
		blob := textBlob(t, provenance)
		c.Provenance = &blob
	}
	image, err := oci.ChartImage(c)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestChartImage(t *testing.T) {
	image := web(t, "1.0.0+x", "signed")
	if got := image.Ref.String(); got != "charts/web:1.0.0_x" {
		t.Errorf("called %s", got)
	}
	descriptor := func(mediaType, text string) string {
		b := textBlob(t, text)
		return fmt.Sprintf(`{"mediaType":"application/vnd.cncf.helm.%s","size":%d,"digest":"%s"}`, mediaType, b.Size, b.Digest)
	}
	want := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":` + descriptor("config.v1+json", `{"name":"web","version":"1.0.0+x"}`) +
		`,"layers":[` + descriptor("chart.content.v1.tar+gzip", "package 1.0.0+x") + "," + descriptor("chart.provenance.v1.prov", "signed") +
		`],"annotations":{"org.opencontainers.image.title":"web","org.opencontainers.image.version":"1.0.0+x"}}`
	if got := string(image.Manifests[0].Data); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, e := range layoutOf(t, image) {
		if strings.HasPrefix(e.Path, "images/") {
			t.Errorf("%s: MetalK8s would take it for an image", e.Path)
		}
		if e.Path == "index.json" && bytes.Contains(e.Data, []byte("org.opencontainers.image.ref.name")) {
			t.Errorf("earlier programs would refuse the archive: %s", e.Data)
		}
	}
}

func TestChartNames(t *testing.T) {
	for _, test := range []struct{ name, version, message string }{
		{"Web", "1.0.0", `chart name "Web" is not valid`},
		{"a/b", "1.0.0", `chart name "a/b" is not valid`},
		{"..", "1.0.0", `chart name ".." is not valid`},
		{"", "1.0.0", `chart name "" is not valid`},
		{"web", "", `tag "" of chart web is not valid`},
		{"web", "1.0.0-" + strings.Repeat("x", 200), "of chart web is not valid"},
	} {
		_, err := oci.ChartImage(oci.Chart{Name: test.name, Version: test.version, Content: textBlob(t, "package")})
		checkError(t, err, report.Invalid, test.message, "")
	}
}

// Charts and the payload are beside the images, and never among them.
func TestStoreOfCharts(t *testing.T) {
	files := mapFS(t, layoutOf(t, append(solution(t), payload(t), web(t, "1.0.0", ""), web(t, "1.1.0", "signed"))...))
	store, err := oci.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := refsOf(store.Images()), refsOf(solution(t)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("images are %v, want %v", got, want)
	}
	if got, want := refsOf(store.Artifacts()), []string{"charts/web:1.0.0", "charts/web:1.1.0", "payload:1.0.0"}; !slices.Equal(got, want) {
		t.Errorf("artifacts are %v, want %v", got, want)
	}
	if got, want := refsOf(store.Charts()), []string{"charts/web:1.0.0", "charts/web:1.1.0"}; !slices.Equal(got, want) {
		t.Errorf("charts are %v, want %v", got, want)
	}
	chart, err := store.Find(t.Context(), "charts/web:1.1.0", nil)
	if err != nil || len(chart.Blobs) != 3 || string(readBlob(t, chart.Blobs[1])) != "package 1.1.0" {
		t.Errorf("found %+v, %v", chart, err)
	}
	_, err = store.Find(t.Context(), "web", nil)
	checkError(t, err, report.NotFound, `it holds no image named "web"`, "operator:1.0.0")
}

func refsOf(images []*oci.Image) []string {
	refs := make([]string, len(images))
	for i, image := range images {
		refs[i] = image.Ref.String()
	}
	return refs
}

func TestStoreOfHostileCharts(t *testing.T) {
	for _, test := range []struct {
		name, called, message string // in the annotation
	}{
		{"directory above", "charts/..:1", "index.json: image name"},
		{"several components", "charts/a/b:1", "index.json: image name"},
		{"no tag", "charts/web", "has no tag"},
		{"template", "charts/{{web:1", "index.json: image name"},
		{"twice", "charts/web:1.1.0", "two images are named charts/web:1.1.0"},
		{"artifact of a later version", "sboms/web:1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := mapFS(t, layoutOf(t, web(t, "1.0.0", ""), web(t, "1.1.0", "")))
			renamed := bytes.ReplaceAll(files["index.json"].Data, []byte("charts/web:1.0.0"), []byte(test.called))
			files["index.json"] = &fstest.MapFile{Data: renamed}
			store, err := oci.Open(files)
			if test.message != "" {
				checkError(t, err, report.Invalid, test.message, "")
			} else if err != nil || len(store.Charts()) != 1 {
				t.Errorf("got %v, want one chart", err)
			}
		})
	}
}

func ExampleChartImage() {
	image, err := oci.ChartImage(oci.Chart{Name: "web", Version: "1.2.0+build.7", Config: []byte(`{"name":"web","version":"1.2.0+build.7"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(image.Ref, len(image.Blobs), image.Root.ArtifactType)
	// Output: charts/web:1.2.0_build.7 2 application/vnd.cncf.helm.config.v1+json
}
