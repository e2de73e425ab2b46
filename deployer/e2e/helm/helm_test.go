// Package helm compares how charts are rendered with Helm's own engine, which is in this module only.
package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"golang.org/x/tools/txtar"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helm "helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/chart/engine"
)

var update = flag.Bool("update", false, "write what Helm makes of the corpus into it")

const (
	corpus      = "../../../kube/chart/engine/testdata"
	kubeVersion = "1.33.2-eks-1"
)

func TestCorpus(t *testing.T) {
	names, err := filepath.Glob(corpus + "/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, given := map[string]string{}, map[string]any{}
			for _, f := range archive.Files {
				switch {
				case f.Name == "given.yaml":
					if err = yaml.Unmarshal(f.Data, &given); err != nil {
						t.Fatal(err)
					}
				case f.Name != "error" && !strings.HasPrefix(f.Name, "want/"):
					files[f.Name] = string(f.Data)
				}
			}
			texts := compare(t, pack(files), given)
			if *update && texts != nil {
				write(t, name, archive, texts)
			}
		})
	}
}

// TestCharts renders the packages in the directory SOLUTIONCTL_CHARTS with their own values, and with those in their directories ci/.
func TestCharts(t *testing.T) {
	names, err := filepath.Glob(os.Getenv("SOLUTIONCTL_CHARTS") + "/*.tgz")
	if err != nil || len(names) == 0 {
		t.Skip("SOLUTIONCTL_CHARTS names no directory with charts")
	}
	var all, same, refused int
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for file, given := range valuesOf(t, data) {
			all++
			t.Run(filepath.Base(name)+"/"+file, func(t *testing.T) {
				switch texts := compare(t, data, given); {
				case t.Failed():
				case texts == nil:
					refused++
				default:
					same++
				}
			})
		}
	}
	t.Logf("of %d renderings of %d charts, %d are the same, %d refused by both, %d differ", all, len(names), same, refused, all-same-refused)
}

// BenchmarkCharts renders the packages in the directory SOLUTIONCTL_CHARTS with Helm's engine and with ours, one after the other, and
// compares the time of processors.
func BenchmarkCharts(b *testing.B) {
	names, err := filepath.Glob(os.Getenv("SOLUTIONCTL_CHARTS") + "/*.tgz")
	if err != nil || len(names) == 0 {
		b.Skip("SOLUTIONCTL_CHARTS names no directory with charts")
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(name), func(b *testing.B) {
			var times [2]time.Duration
			for b.Loop() {
				for i, with := range []func() (map[string]string, error){
					func() (map[string]string, error) { return renderWithHelm(data, nil) },
					func() (map[string]string, error) { return render(b, data, nil) },
				} {
					runtime.GC() // of what the other has left
					start := processorTime(b)
					if _, err := with(); err != nil {
						b.Fatal(err)
					}
					times[i] += processorTime(b) - start
				}
			}
			b.ReportMetric(float64(times[1])/float64(times[0]), "to-Helm")
		})
	}
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// valuesOf returns values that a chart is tested with, by their files, and under an empty name no values.
func valuesOf(t *testing.T, data []byte) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{"": nil}
	files, err := engine.Unpack(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name, "ci/") {
			given := map[string]any{}
			if yaml.Unmarshal(f.Data, &given) == nil && given != nil {
				all[f.Name] = given
			}
		}
	}
	return all
}

// TestRandomValues: whatever values meet whatever defaults, in charts whose subcharts have aliases, conditions, tags and imports.
func TestRandomValues(t *testing.T) {
	for seed := range uint64(300) {
		r := random{rand.New(rand.NewPCG(seed, 0))}
		files := map[string]string{}
		for place, dependencies := range map[string]string{
			"web": r.dependencies(), "web/charts/a": r.dependencies(), "web/charts/b": r.dependencies(),
			"web/charts/a/charts/b": "null", // Helm mixes up those of a chart that is there twice
		} {
			files[place+"/Chart.yaml"] = fmt.Sprintf("{apiVersion: v2, name: %s, version: 1.0.0, dependencies: %s}", path.Base(place), dependencies)
			files[place+"/values.yaml"] = r.table(3)
			files[place+"/templates/x.yaml"] = "{{ toYaml .Values }}\n{{ toYaml .Chart.Dependencies }}\n"
		}
		given := map[string]any{}
		if err := yaml.Unmarshal([]byte(r.table(4)), &given); err != nil {
			t.Fatal(err)
		}
		if t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, pack(maps.Clone(files)), given) }); t.Failed() {
			t.Fatalf("given %v\n%v", given, files)
		}
	}
}

// random makes YAML of few names, so that they meet.
type random struct{ *rand.Rand }

func (r random) one(of ...string) string { return of[r.IntN(len(of))] }

func (r random) name() string {
	return r.one("a", "b", "c", "web", "two", "global", "tags", "exports", "on")
}

func (r random) table(depth int) string {
	var entries []string
	for _, key := range slices.Compact(slices.Sorted(slices.Values([]string{r.name(), r.name(), r.name(), r.name()}))) {
		entries = append(entries, strconv.Quote(key)+": "+r.value(depth-1))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

func (r random) value(depth int) string {
	if depth > 0 && r.IntN(3) > 0 {
		return r.table(depth)
	}
	return r.one("null", "1", "text", "true", "false", "[1, null]", "{}")
}

func (r random) dependencies() string {
	switch r.IntN(4) {
	case 0:
		return "null"
	case 1:
		return "[]"
	}
	dependency := func(imports, more string) string {
		return fmt.Sprintf(`{name: %s, version: "*", condition: %q, tags: [%s], import-values: %s%s}`,
			r.one("a", "b", "none"), r.one("", "on", "a.on,b.on", "two.on", "c"), r.one("", "a", "a, on"), imports, more)
	}
	// No more than one import: of what meets, Helm writes some into the values that it is imported from.
	imports := r.one("[]", "[c]", "[{child: a, parent: c}]", "[{child: exports, parent: .}]", "[{child: global.c, parent: a.b}]")
	return "[" + dependency(imports, r.one("", ", alias: c")) + ", " + dependency("[]", ", alias: two") + "]"
}

// TestDocuments: texts are cut into documents as by Helm, also where parsers of YAML cut in other ways.
func TestDocuments(t *testing.T) {
	const text = " \n# one\n--- # two\nkind: A\n---# three\nkind: B\n---kind: C\n---apiVersion: v1\nkind: D\n---\r\nkind: E\n---\t\n\n\nkind: F\n" +
		"data:\n  a: |\n    ---\n    ----- BEGIN -----\n--- {kind: G}\n---"
	c, err := chart.Load(bytes.NewReader(pack(map[string]string{
		"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/templates/x.yaml": text,
	})))
	if err != nil {
		t.Fatal(err)
	}
	rendering, err := c.Render(t.Context(), chart.Options{StandIns: true})
	if err != nil {
		t.Fatal(err)
	}
	documents := release.SplitManifests(text)
	delete(documents, "manifest-0") // the comment, which is nothing to apply
	if len(rendering.Manifests) != len(documents) {
		t.Errorf("%d documents, want %d", len(rendering.Manifests), len(documents))
	}
	for i, m := range rendering.Manifests {
		if want := documents[fmt.Sprintf("manifest-%d", i+1)]; string(m.Text) != want {
			t.Errorf("got %q, want %q", m.Text, want)
		}
	}
}

// compare renders a chart twice and returns the texts, nil when both engines refuse it.
func compare(t *testing.T, data []byte, given map[string]any) map[string]string {
	t.Helper()
	want, wantErr := renderWithHelm(data, given)
	got, err := render(t, data, given)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("got error  %v\nHelm's      %v", err, wantErr)
	}
	if err != nil {
		t.Logf("both refuse: %v\nHelm: %v", err, wantErr)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := got[name]; !ok || text != want[name] {
			t.Errorf("%s: got %s", name, difference(text, want[name]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d templates, want %d", len(got), len(want))
	}
	return want
}

// TestMetadata checks that the metadata beside a chart in a registry are as Helm writes them.
func TestMetadata(t *testing.T) {
	const metadata = `{apiVersion: v2, name: web, version: 1.2.0-rc.1+a, appVersion: 1.10, kubeVersion: ">=1.20", type: application, deprecated: true,
description: "a <b>", home: h, icon: i, condition: c, tags: t, sources: [s], keywords: [k, 5], annotations: {b: "1", a: "&"},
maintainers: [{name: n, email: e, url: u}, {name: m}],
dependencies: [{name: d, version: "*", repository: r, condition: x.y, tags: [a], enabled: true, import-values: [a, {child: b, parent: c}], alias: e}]}`
	data := pack(map[string]string{"web/Chart.yaml": metadata, "web/charts/d/Chart.yaml": "{apiVersion: v2, name: d, version: 1.0.0}"})
	ours, err := chart.Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(theirs.Metadata)
	if err != nil || string(got) != string(want) {
		t.Errorf("got  %s\nwant %s, %v", got, want, err)
	}
}

// difference shows the first line that differs.
func difference(got, want string) string {
	have, line := strings.Split(got, "\n"), 0
	for line < len(have) && strings.HasPrefix(want, strings.Join(have[:line+1], "\n")+"\n") {
		line++
	}
	wanted := append(strings.Split(want, "\n"), "")
	return fmt.Sprintf("in line %d\n%q, want\n%q", line+1, append(have, "")[line], wanted[min(line, len(wanted)-1)])
}

func renderWithHelm(data []byte, given map[string]any) (map[string]string, error) {
	c, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if err = chartutil.ProcessDependencies(c, given); err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.HelmVersion.KubeClientVersion, capabilities.HelmVersion.GoVersion = "v1.36", "" // in tests, the former is another one
	capabilities.APIVersions = slices.Sorted(slices.Values(capabilities.APIVersions))            // their order varies
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	capabilities.KubeVersion = *version
	release := common.ReleaseOptions{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true}
	values, err := util.ToRenderValuesWithSchemaValidation(c, given, release, capabilities, true)
	if err != nil {
		return nil, err
	}
	functions := constant()
	functions["keys"] = func(tables ...map[string]any) (names []string) { // Helm's order varies
		for _, t := range tables {
			names = append(names, slices.Sorted(maps.Keys(t))...)
		}
		return names
	}
	functions["values"] = func(table map[string]any) (list []any) {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			list = append(list, table[key])
		}
		return list
	}
	return helm.Engine{CustomTemplateFuncs: functions}.Render(c, values)
}

func render(tb testing.TB, data []byte, given map[string]any) (map[string]string, error) {
	tb.Helper()
	files, err := engine.Unpack(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	c, err := engine.Load(files)
	if err != nil {
		return nil, err
	}
	if c, err = c.Enable(given); err != nil {
		return nil, err
	}
	values, err := c.Complete(given)
	if err != nil {
		return nil, err
	}
	capabilities, err := engine.NewCapabilities(kubeVersion, nil)
	if err != nil {
		return nil, err
	}
	return c.Render(tb.Context(), engine.Input{
		Values: values, Capabilities: capabilities, Functions: constant(), Release: engine.Release{Name: "rel", Namespace: "ns", Revision: 1},
	})
}

// constant are functions whose results would not be the same twice.
func constant() template.FuncMap {
	text := func(name string) func(...any) string {
		return func(arguments ...any) string { return fmt.Sprint(name, arguments) }
	}
	pair := func(...any) map[string]any { return map[string]any{"Cert": "certificate", "Key": "key"} }
	table := template.FuncMap{
		"now":     func() time.Time { return time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC) },
		"randInt": func(low, _ int) int { return low }, "ago": text("ago"),
	}
	for _, name := range []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric"} {
		table[name] = func(count int) string { return strings.Repeat("x", count) }
	}
	for _, name := range []string{"randBytes", "shuffle", "uuidv4", "bcrypt", "htpasswd", "encryptAES", "genPrivateKey"} {
		table[name] = text(name)
	}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		table[name] = pair
	}
	return table
}

func TestDefaults(t *testing.T) {
	got, err := engine.NewCapabilities("", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(common.DefaultVersionSet))
	if *update {
		if err = os.WriteFile("../../../kube/chart/engine/apiversions.txt", []byte(strings.Join(want, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got.APIVersions, want) {
		t.Errorf("API versions: got\n%q\nwant\n%q", got.APIVersions, want)
	}
	if have := common.DefaultCapabilities.HelmVersion.Version; got.HelmVersion.Version != have {
		t.Errorf("Helm's version: got %s, want %s", got.HelmVersion.Version, have)
	}
}

// pack makes a package of files whose names begin with the chart's directory; those below x.tgz/ are packages in it.
func pack(files map[string]string) []byte {
	packages := map[string]map[string]string{}
	for name, content := range files {
		if file, inside, ok := strings.Cut(name, ".tgz/"); ok {
			if packages[file] == nil {
				packages[file] = map[string]string{}
			}
			packages[file][inside] = content
			delete(files, name)
		}
	}
	for file, inside := range packages {
		files[file+".tgz"] = string(pack(inside))
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644}))
		_, more := archive.Write([]byte(files[name]))
		err = errors.Join(err, more)
	}
	if err = errors.Join(err, archive.Close(), zip.Close()); err != nil {
		panic(err) // writing to memory
	}
	return packed.Bytes()
}

// write puts the texts into a test.
func write(t *testing.T, name string, archive *txtar.Archive, texts map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	for _, template := range slices.Sorted(maps.Keys(texts)) {
		archive.Files = append(archive.Files, txtar.File{Name: "want/" + template, Data: []byte(texts[template])})
	}
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
