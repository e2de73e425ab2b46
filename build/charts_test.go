package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// packedChart is a chart as `helm package` makes it, with more files given as name and content.
func packedChart(t *testing.T, name, version string, more ...string) string {
	t.Helper()
	text := "apiVersion: v2\nname: " + name + "\nversion: " + version + "\ndescription: a <chart>\n"
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	files := tar.NewWriter(zip)
	for pair := range slices.Chunk(append([]string{"Chart.yaml", text}, more...), 2) {
		check(t, files.WriteHeader(&tar.Header{Name: name + "/" + pair[0], Mode: 0o644, Size: int64(len(pair[1]))}))
		_, err := files.Write([]byte(pair[1]))
		check(t, err)
	}
	check(t, files.Close())
	check(t, zip.Close())
	return data.String()
}

// Each chart is an OCI artifact as well, and stored once.
func TestCharts(t *testing.T) {
	dir := newProject(t, 512)
	writeFiles(t, dir, map[string]string{
		"charts/web-1.0.0+x.tgz":      packedChart(t, "web", "1.0.0+x"),
		"charts/web-1.0.0+x.tgz.prov": "signed",
		"charts/cache.tgz":            packedChart(t, "cache", "2.0.0"),
	})
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, dir, build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	a, err := archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	d, err := a.Describe()
	check(t, err)
	var names []string
	for _, chart := range d.Charts {
		names = append(names, chart.Name)
	}
	if want := []string{"charts/cache:2.0.0", "charts/demo:1.0.0", "charts/web:1.0.0_x"}; !slices.Equal(names, want) {
		t.Errorf("charts are %v, want %v", names, want)
	}
	image := a.Images.Image(schema.ImageRef{Name: "charts/web", Tag: "1.0.0_x"})
	config, err := fs.ReadFile(a, "blobs/sha256/"+image.Blobs[0].Digest.Hex)
	check(t, err)
	if want := `{"name":"web","version":"1.0.0+x","description":"a \u003cchart\u003e","apiVersion":"v2"}`; string(config) != want {
		t.Errorf("configuration is %s, want %s", config, want)
	}
	for i, file := range []string{"charts/web-1.0.0+x.tgz", "charts/web-1.0.0+x.tgz.prov"} {
		if blob := "blobs/sha256/" + image.Blobs[i+1].Digest.Hex; !slices.Equal(sectionsOf(t, a, blob), sectionsOf(t, a, file)) {
			t.Errorf("%s and %s are stored twice", file, blob)
		}
	}
}

// sectionsOf returns the sections of a file in the image.
func sectionsOf(t *testing.T, a *archive.Archive, name string) []iso.Section {
	t.Helper()
	info, err := fs.Stat(a, name)
	check(t, err)
	return info.Sys().(*iso.Stat).Sections
}

func TestChartsRefused(t *testing.T) {
	for _, test := range []struct {
		name          string
		files         map[string]string
		message, hint string
	}{
		{"no chart", map[string]string{"charts/web-1.0.0.tgz": "text"}, "charts/web-1.0.0.tgz: chart: not a packaged chart", "helm package"},
		{
			"version of another file",
			map[string]string{"charts/web-1.0.0.tgz": packedChart(t, "web", "1.0.1")},
			"charts/web-1.0.0.tgz: it holds chart web in version 1.0.1", "call the file web-1.0.1.tgz",
		},
		{"name of another file", map[string]string{"charts/web-1.0.0.tgz": packedChart(t, "wed", "1.0.0")}, "it holds chart wed", "wed-1.0.0.tgz"},
		{
			"two files",
			map[string]string{"charts/web-1.0.0.tgz": packedChart(t, "web", "1.0.0"), "charts/web.tgz": packedChart(t, "web", "1.0.0")},
			"charts/web-1.0.0.tgz and charts/web.tgz are one chart in one version", "remove one",
		},
		{"upper case", map[string]string{"charts/Web.tgz": packedChart(t, "Web", "1.0.0")}, `charts/Web.tgz: chart name "Web" is not valid`, "lower-case"},
		{"path", map[string]string{"charts/b-1.0.0.tgz": packedChart(t, "a/b", "1.0.0")}, "charts/b-1.0.0.tgz: ", ""},
		{"no version", map[string]string{"charts/web.tgz": packedChart(t, "web", `""`)}, "charts/web.tgz: ", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t, 512)
			writeFiles(t, dir, test.files)
			_, err := tryPlan(t, t.Context(), dir, build.Overrides{}, build.Options{})
			if err == nil || report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.message) ||
				!strings.Contains(strings.Join(report.Hints(err), " "), test.hint) {
				t.Errorf("got %v with hints %q, want %q with %q", err, report.Hints(err), test.message, test.hint)
			}
		})
	}
}
