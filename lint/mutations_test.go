package lint_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint"
)

// mutation changes one thing in the archive of the example Solution, so that one rule has a finding. One of files,
// fault and project is set.
type mutation struct {
	files   func(fstest.MapFS)
	fault   string                        // of isoFaults
	project func(files map[string]string) // of the project: solution.yaml and archive/

	images     []testImage // instead of those of the example
	iso, deep  bool
	kubernetes string
	against    func(fstest.MapFS) // makes the older version out of the example
}

// mutations are the mutations of every rule.
func mutations() map[string]mutation {
	all := map[string]mutation{}
	for _, group := range []map[string]mutation{
		isoMutations(), archiveMutations(), documentMutations(), kubernetesMutations(),
		operatorMutations(), monitoringMutations(), completenessMutations(), upgradeMutations(),
	} {
		maps.Copy(all, group)
	}
	return all
}

const exampleProject = "../example-solution"

// exampleImages stand for the images of the example, which take long to compile.
var exampleImages = []testImage{
	{ref: "example-solution-operator:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}, entrypoint: "/usr/local/bin/example-solution-operator"},
	{ref: "example-solution-server:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}, entrypoint: "/server"},
	{ref: "example-solution-ui:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}, entrypoint: "/ui"},
}

// buildExample builds the archive of a release of the example as the command does, with small images.
func buildExample(tb testing.TB, project string, images []testImage) []byte {
	tb.Helper()
	dir := tb.TempDir()
	check(tb, os.CopyFS(dir, layoutOf(tb, images)))
	var overrides build.Overrides
	for _, image := range images {
		overrides.Images = append(overrides.Images, image.ref+"=oci:"+dir+":"+image.ref)
	}
	loaded, err := build.Load(project, overrides)
	check(tb, err)
	defer loaded.Close() //nolint:errcheck // a directory that was only read
	resolver := oci.NewResolver(oci.Options{BaseDir: loaded.Dir})
	defer resolver.Close() //nolint:errcheck // files that were only read
	plan, err := build.NewPlan(tb.Context(), loaded, resolver, build.Options{})
	check(tb, err)
	path := filepath.Join(dir, "example.iso")
	_, err = plan.Write(tb.Context(), path, build.WriteOptions{})
	check(tb, err)
	data, err := os.ReadFile(path)
	check(tb, err)
	return data
}

// builtExample is the archive of the example; it is built once.
var builtExample = func() func(testing.TB) []byte {
	var once sync.Once
	var data []byte
	return func(tb testing.TB) []byte {
		tb.Helper()
		once.Do(func() { data = buildExample(tb, exampleProject, exampleImages) })
		return data
	}
}()

// mutated opens the example with the mutation.
func (m mutation) target(tb testing.TB) *judged {
	tb.Helper()
	data := builtExample(tb)
	var t *judged
	switch {
	case m.project != nil:
		t = openProject(tb, mutatedProject(tb, m.project))
	case m.fault != "":
		t = openISO(tb, damage(tb, data, m.fault))
	default:
		image, err := iso.Open(bytes.NewReader(data), int64(len(data)))
		check(tb, err)
		files := copyFS(tb, image)
		m.files(files)
		if m.images != nil {
			replaceImages(tb, files, m.images)
		}
		if m.iso {
			t = openISO(tb, imageOf(tb, files, "Example Solution 1.0.0"))
			break
		}
		t = openDirectory(tb, files)
	}
	t.deep = m.deep
	if m.kubernetes != "" {
		check(tb, t.JudgeFor(m.kubernetes))
	}
	if m.against != nil {
		image, err := iso.Open(bytes.NewReader(data), int64(len(data)))
		check(tb, err)
		older := copyFS(tb, image)
		m.against(older)
		t.against = openDirectory(tb, older).Target
	}
	return t
}

func replaceImages(tb testing.TB, files fstest.MapFS, images []testImage) {
	tb.Helper()
	for name := range files {
		switch top, _, _ := strings.Cut(name, "/"); top {
		case "images", "blobs", "index.json", "registry-config.inc.j2":
			delete(files, name)
		}
	}
	addImages(tb, files, images)
}

// mutatedProject copies the files of the example's project that an archive is made of.
func mutatedProject(tb testing.TB, change func(map[string]string)) string {
	tb.Helper()
	dir := tb.TempDir()
	files := map[string]string{}
	for name, file := range copyFS(tb, os.DirFS(exampleProject)) {
		if top, _, _ := strings.Cut(name, "/"); top == "archive" || name == "solution.yaml" || name == "README.md" {
			files[name] = string(file.Data)
		}
	}
	change(files)
	for name, text := range files {
		path := filepath.Join(dir, name)
		check(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		check(tb, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// edit replaces text that a file must have.
func edit(name, old, text string) func(fstest.MapFS) {
	return func(files fstest.MapFS) {
		file := files[name]
		if file == nil || !bytes.Contains(file.Data, []byte(old)) {
			panic(fmt.Sprintf("%s has no %q", name, old))
		}
		files[name] = &fstest.MapFile{Data: bytes.Replace(file.Data, []byte(old), []byte(text), 1)}
	}
}

// put adds a file, or replaces it.
func put(name, text string) func(fstest.MapFS) {
	return func(files fstest.MapFS) { files[name] = &fstest.MapFile{Data: []byte(text)} }
}

// TestMutations proves every rule by one mutation of the example Solution.
func TestMutations(t *testing.T) {
	builtExample(t)
	all := mutations()
	for _, rule := range lint.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			m, ok := all[rule.ID]
			if !ok {
				t.Fatal("there is no mutation")
			}
			if findings := of(rule.ID, run(t, m.target(t), rule.ID)); len(findings) == 0 {
				t.Error("the mutation causes no finding")
			}
		})
	}
}

// TestExample makes sure that there is nothing to say about the example, as a project and as an archive.
func TestExample(t *testing.T) {
	for kind, target := range map[string]*judged{
		"project": openProject(t, exampleProject),
		"iso":     openISO(t, builtExample(t)),
	} {
		t.Run(kind, func(t *testing.T) {
			target.deep = true
			if findings := run(t, target); len(findings) > 0 {
				t.Errorf("findings:\n%s", text(findings))
			}
		})
	}
}

// TestExampleReleases checks the same for the later releases. The releases exist to cause the findings about upgrades.
func TestExampleReleases(t *testing.T) {
	older := builtExample(t)
	for _, release := range []struct {
		version string
		webhook bool
		upgrade []string // rules that say something about the upgrade from the release before
	}{
		{version: "1.1.0", webhook: true},
		{version: "2.0.0", upgrade: []string{"SOL701", "SOL703"}}, // v1alpha1 goes, and the operator may do more
	} {
		t.Run(release.version, func(t *testing.T) {
			images := slices.Clone(exampleImages)
			if release.webhook {
				images = append(images, testImage{ref: "example-solution-webhook:1.0.0", platforms: images[0].platforms, entrypoint: "/webhook"})
			}
			for i := range images {
				images[i].ref = strings.Replace(images[i].ref, "1.0.0", release.version, 1)
			}
			project := exampleProject + "/releases/" + release.version
			data := buildExample(t, project, images)
			for kind, target := range map[string]*judged{"project": openProject(t, project), "iso": openISO(t, data)} {
				target.deep = true
				if findings := run(t, target); len(findings) > 0 {
					t.Errorf("%s: findings:\n%s", kind, text(findings))
				}
			}
			target := openISO(t, data)
			target.against = openISO(t, older).Target
			findings := run(t, target)
			var rules []string
			for _, f := range findings {
				rules = append(rules, f.Rule)
			}
			slices.Sort(rules)
			if diff := cmp.Diff(release.upgrade, slices.Compact(rules)); diff != "" {
				t.Errorf("%s\n%s", diff, text(findings))
			}
			older = data
		})
	}
}
