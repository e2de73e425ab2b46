package build_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestArchiveHoldsTheProject(t *testing.T) {
	dir := newProject(t, 4096)
	path := filepath.Join(t.TempDir(), "demo.iso")
	result, err := planOf(t, dir, build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	if result.Images != 2 || result.Blobs != 6 || result.BytesSaved == 0 {
		t.Errorf("got %+v, want 2 images of 6 blobs, two of them shared", result)
	}
	data := readFile(t, path)
	a, err := archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	d, err := a.Describe()
	check(t, err)
	if d.ID != "demo-1.0.0" || d.VolumeID != "Demo 1.0.0" {
		t.Errorf("got id %q and volume id %q", d.ID, d.VolumeID)
	}
	var files []string
	for _, f := range d.Files {
		files = append(files, f.Path)
	}
	want := "charts/demo-1.0.0.tgz manifest.yaml operator/deploy/crds/demo_crd.yaml operator/deploy/role.yaml registry-config.inc.j2"
	if got := strings.Join(files, " "); got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
	info, err := fs.Stat(a, "manifest.yaml")
	check(t, err)
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !info.ModTime().Equal(want) {
		t.Errorf("files are dated %s, want the newest image's %s", info.ModTime(), want)
	}
}

// Files that readers of ISO 9660 would lose are named, except those that editors and version control leave everywhere.
func TestLeftOut(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"charts/web/templates/.htpasswd", "charts/web/templates/.htpasswd"},
		{"operator/.config/a/b.yaml", "operator/.config/"},
		{"ui/...", "ui/..."},
		{"ui/.gitea.yaml.template", "ui/.gitea.yaml.template"},
		{"ui/.swaps", "ui/.swaps"},
		{"ui/.role.yaml.swim", "ui/.role.yaml.swim"},
		{"ui/.git/config", ""},
		{"ui/.gitignore", ""},
		{"ui/.gitkeep", ""},
		{"ui/.github/workflows/ci.yaml", ""},
		{"charts/web/.helmignore", ""},
		{"operator/deploy/.DS_Store", ""},
		{"operator/deploy/.role.yaml.swp", ""},
		{"operator/deploy/.role.yaml.swo", ""},
		{"operator/deploy/.#role.yaml", ""},
		{".env", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t, 512)
			writeFiles(t, dir, map[string]string{test.name: "x"})
			want := []string{"operator/deploy/.env"}
			if test.want != "" {
				want = append(want, test.want)
				slices.Sort(want)
			}
			plan := planOf(t, dir, build.Options{})
			if !slices.Equal(plan.LeftOut, want) {
				t.Errorf("left out %q, want %q", plan.LeftOut, want)
			}
			for _, file := range plan.Files() {
				if strings.Contains("/"+file.Path, "/.") {
					t.Errorf("the archive has %s", file.Path)
				}
			}
		})
	}
}

// Two parts of an archive may be one directory of the project.
func TestLeftOutOnce(t *testing.T) {
	plan, err := tryPlan(t, t.Context(), newProject(t, 512), build.Overrides{Set: []string{"spec.ui={path: operator}"}}, build.Options{})
	check(t, err)
	if want := []string{"operator/deploy/.env"}; !slices.Equal(plan.LeftOut, want) {
		t.Errorf("left out %q, want %q", plan.LeftOut, want)
	}
}

// farthest is an archive that records the highest offset of a read.
type farthest struct {
	*bytes.Reader
	offset int64
}

func (f *farthest) ReadAt(p []byte, offset int64) (int, error) {
	f.offset = max(f.offset, offset+int64(len(p)))
	return f.Reader.ReadAt(p, offset)
}

// The content of an archive is known from its beginning, however many images come after it.
func TestLayersComeLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, newProject(t, 4<<20), build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	r := &farthest{Reader: bytes.NewReader(data)}
	_, err = archive.Open(r, int64(len(data)))
	check(t, err)
	if r.offset > 1<<20 {
		t.Errorf("the first %d of %d bytes had to be read", r.offset, len(data))
	}
}

// The same input gives the same bytes: in another directory, with other file times, with other workers, from another
// kind of source.
func TestSameBytes(t *testing.T) {
	dir := newProject(t, 64<<10)
	out := t.TempDir()
	write := func(name string, plan *build.Plan, jobs int) []byte {
		path := filepath.Join(out, name)
		_, err := plan.Write(t.Context(), path, build.WriteOptions{Jobs: jobs})
		check(t, err)
		return readFile(t, path)
	}
	want := write("a.iso", planOf(t, dir, build.Options{}), 1)

	copied := filepath.Join(t.TempDir(), "elsewhere")
	check(t, os.CopyFS(copied, os.DirFS(dir)))
	check(t, filepath.WalkDir(copied, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)))
	}))
	plan := planOf(t, copied, build.Options{})
	if got := write("b.iso", plan, 7); !bytes.Equal(got, want) {
		t.Error("another directory, file times and number of workers give other bytes")
	}
	check(t, plan.Verify(t.Context(), bytes.NewReader(want), int64(len(want))))
}

// The same digests give the same bytes from any source: the name of an image in a flag, a mirror or a layout is
// recorded nowhere.
func TestSameBytesFromElsewhere(t *testing.T) {
	dir := newProject(t, 4096)
	sources := func(overrides []string) (settings []string) {
		for i, text := range overrides {
			_, source, _ := strings.Cut(text, "=")
			settings = append(settings, fmt.Sprintf("spec.images[%d].source=%s", i, source))
		}
		return settings
	}
	published, internal := pushImages(t, dir, nil), pushImages(t, dir, nil)
	host := func(overrides []string) string { return strings.Split(overrides[0], "/")[2] }
	index := filepath.Join(dir, "images", "index.json")
	const refName = `"org.opencontainers.image.ref.name":`
	check(t, os.WriteFile(index, bytes.ReplaceAll(readFile(t, index), []byte(refName),
		[]byte(`"io.containerd.image.name": "registry.internal.example/acme/x:9", `+refName)), 0o644))
	layouts := []string{"demo-operator=oci:" + dir + "/images:operator", "demo-ui=oci:" + dir + "/images:ui"}
	origins := []string{"spec.images[0].origin=ghcr.io/acme/operator:1", "spec.images[1].origin=ghcr.io/acme/ui:1"}

	for _, test := range []struct {
		name string
		set  []string // values of solution.yaml
		want string
	}{
		{"a registry", sources(published), host(published) + "/operator:1.0.0"},
		{"a layout", nil, ""},
		{"a layout with origins", origins, "ghcr.io/acme/operator:1"},
		{"a registry with origins", append(sources(published), origins...), "ghcr.io/acme/operator:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []byte
			for _, way := range []struct {
				name    string
				images  []string
				mirrors map[string][]string
			}{
				{name: "as solution.yaml says"},
				{name: "--mirror", mirrors: map[string][]string{host(published): {"http://" + host(internal)}}},
				{name: "--image docker:", images: internal},
				{name: "--image oci:", images: layouts},
			} {
				plan, err := planFrom(t, dir, build.Overrides{Set: test.set, Images: way.images}, oci.Options{Mirrors: way.mirrors})
				check(t, err)
				path := filepath.Join(t.TempDir(), "demo.iso")
				_, err = plan.Write(t.Context(), path, build.WriteOptions{})
				check(t, err)
				got := readFile(t, path)
				if want == nil {
					want = got
				}
				if sha256.Sum256(got) != sha256.Sum256(want) {
					t.Errorf("%s: other bytes", way.name)
				}
				if bytes.Contains(got, []byte(host(internal))) || bytes.Contains(got, []byte("registry.internal")) {
					t.Errorf("%s: the archive names the source of today", way.name)
				}
				if origin := plan.Solution.Spec.ImageOrigins[plan.Images[0].Ref]; origin != test.want || plan.Images[0].Origin != test.want {
					t.Errorf("%s: origin %q in the manifest and %q in the layout, want %q", way.name, origin, plan.Images[0].Origin, test.want)
				}
			}
		})
	}
}

// An image that is named only by a flag has no origin, and a source that is not read any more leaves no credentials.
func TestSourceOfFlagIsNoOrigin(t *testing.T) {
	dir := newProject(t, 512)
	pushed := strings.Replace(pushImages(t, dir, nil)[0], "demo-operator=", "", 1)
	plan, err := tryPlan(t, t.Context(), dir, build.Overrides{
		Set:       []string{"spec.images[0].source=docker://user:secret@registry.example/operator:1"},
		Images:    []string{"demo-operator=" + pushed},
		AddImages: []string{"extra=" + pushed},
	}, build.Options{})
	check(t, err)
	if len(plan.Images) != 3 || len(plan.Solution.Spec.ImageOrigins) != 0 {
		t.Errorf("%d images with the origins %v", len(plan.Images), plan.Solution.Spec.ImageOrigins)
	}
}

// The bytes of an archive are a format: a newer tool writes the same ones. When this test fails, either something
// depends on the machine, or the format changed, which the changelog has to say.
func TestGoldenArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "project.iso")
	_, err := planOf(t, "testdata/project", build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	const want = "e1c0cb5fd4e1898ef9fd73fa6cd493fcba9d7469bc091fad755017ba107a4d62"
	if got := fmt.Sprintf("%x", sha256.Sum256(readFile(t, path))); got != want {
		t.Errorf("the archive has the digest %s, want %s", got, want)
	}
}

func TestTruncatedLayer(t *testing.T) {
	dir := newProject(t, 64<<10)
	plan := planOf(t, dir, build.Options{})
	blobs := filepath.Join(dir, "images", "blobs", "sha256")
	check(t, os.Truncate(largest(t, blobs), 1000))
	_, err := plan.Write(t.Context(), filepath.Join(t.TempDir(), "demo.iso"), build.WriteOptions{})
	if report.CodeOf(err) != report.Corrupt {
		t.Errorf("got %v (%s), want %s", err, report.CodeOf(err), report.Corrupt)
	}
}

func TestVerifyNoticesEveryChange(t *testing.T) {
	dir := newProject(t, 4096)
	plan := planOf(t, dir, build.Options{})
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := plan.Write(t.Context(), path, build.WriteOptions{ImplantMD5: true})
	check(t, err)
	good := readFile(t, path)
	check(t, plan.Verify(t.Context(), bytes.NewReader(good), int64(len(good))))
	for _, offset := range []int{16*2048 + 40, 19 * 2048, len(good) / 2, len(good) - 4096} {
		bad := bytes.Clone(good)
		bad[offset] ^= 1
		if err := plan.Verify(t.Context(), bytes.NewReader(bad), int64(len(bad))); report.CodeOf(err) != report.Irreproducible {
			t.Errorf("byte %d changed: got %v, want %s", offset, err, report.Irreproducible)
		}
	}
	if err := plan.Verify(t.Context(), bytes.NewReader(good[:len(good)-2048]), int64(len(good)-2048)); report.CodeOf(err) != report.Irreproducible {
		t.Errorf("truncated: got %v", err)
	}
}

func TestArchiveTime(t *testing.T) {
	dir := newProject(t, 512)
	given := time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)
	if got := planOf(t, dir, build.Options{BuildTime: &given}).ModTime; !got.Equal(given) {
		t.Errorf("given: got %s", got)
	}
	plan, err := tryPlan(t, t.Context(), dir, build.Overrides{Set: []string{"spec.buildTime=2021-03-03T03:03:03Z"}}, build.Options{})
	check(t, err)
	if want := time.Date(2021, 3, 3, 3, 3, 3, 0, time.UTC); !plan.ModTime.Equal(want) {
		t.Errorf("of the project: got %s, want %s", plan.ModTime, want)
	}
}

func TestBadProjects(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(dir string) error
		change build.Overrides
		code   report.Code
		want   string
	}{
		{
			name:  "no document",
			spoil: func(dir string) error { return os.Remove(filepath.Join(dir, "solution.yaml")) },
			code:  report.Usage, want: "solution.yaml",
		},
		{
			name:  "an image is missing from its source",
			spoil: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "images")) },
			want:  "image demo-",
			code:  report.Invalid,
		},
		{name: "a directory that is named and missing", change: build.Overrides{Set: []string{"spec.paths.charts=none"}}, code: report.Invalid, want: "charts"},
		{
			name: "several platforms for the old form of the registry configuration",
			spoil: func(dir string) error {
				index, err := random.Index(100, 1, 2)
				if err != nil {
					return err
				}
				p, err := layout.Write(filepath.Join(dir, "multi"), empty.Index)
				if err != nil {
					return err
				}
				return p.AppendIndex(index)
			},
			change: build.Overrides{Set: []string{"spec.registryConfig=legacy", "spec.images[1].source=oci:multi"}},
			code:   report.Invalid, want: "not [demo-ui:1.0.0]",
		},
		{name: "a platform that no image has", change: build.Overrides{Platforms: []string{"linux/s390x"}}, code: report.Invalid, want: "linux/s390x"},
		{name: "the payload's name", change: build.Overrides{AddImages: []string{"payload=oci:images:ui"}}, code: report.Invalid, want: "payload"},
		{name: "an image that is no assignment", change: build.Overrides{Images: []string{"ui"}}, code: report.Usage, want: "NAME:TAG=SOURCE"},
		{name: "a setting below nothing", change: build.Overrides{Set: []string{"spec.version.x=1"}}, code: report.Usage, want: "spec.version"},
		{name: "a setting outside a list", change: build.Overrides{Set: []string{"spec.images[7].tag=1"}}, code: report.Usage, want: "spec.images[7]"},
		{name: "a version that is none", change: build.Overrides{Version: "v1"}, code: report.Invalid, want: "spec.version"},
		{name: "a volume id that is too long", change: build.Overrides{Set: []string{"spec.volumeID=" + strings.Repeat("x", 33)}}, code: report.Invalid, want: "volume"},
		{
			name: "a link that leaves the project",
			spoil: func(dir string) error {
				return os.Symlink("/etc/passwd", filepath.Join(dir, "operator", "passwd"))
			},
			code: report.Invalid, want: "passwd",
		},
		{
			name: "a name that ISO 9660 readers lose",
			spoil: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "operator", strings.Repeat("n", 250)), nil, 0o644)
			},
			code: report.Invalid, want: "nnn",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t, 512)
			if test.spoil != nil {
				check(t, test.spoil(dir))
			}
			_, err := tryPlan(t, t.Context(), dir, test.change, build.Options{})
			if report.CodeOf(err) != test.code || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%s), want %s about %q", err, report.CodeOf(err), test.code, test.want)
			}
		})
	}
}

func TestCancelledBuildIsInterrupted(t *testing.T) {
	plan := planOf(t, newProject(t, 4096), build.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := t.TempDir()
	_, err := plan.Write(ctx, filepath.Join(out, "demo.iso"), build.WriteOptions{})
	if report.CodeOf(err) != report.Interrupted {
		t.Errorf("got %v, want %s", err, report.Interrupted)
	}
	if got := names(t, out); got != "[- demo.iso.partial]" {
		t.Errorf("the directory holds %s, want the partial file only", got)
	}
}

func TestDamagedLayerPublishesNothing(t *testing.T) {
	dir := newProject(t, 64<<10)
	plan := planOf(t, dir, build.Options{})
	layer := largest(t, filepath.Join(dir, "images", "blobs", "sha256"))
	data := readFile(t, layer)
	data[len(data)/2] ^= 1
	check(t, os.WriteFile(layer, data, 0o644))
	out := t.TempDir()
	path := filepath.Join(out, "demo.iso")
	check(t, os.WriteFile(path, []byte("the archive of yesterday"), 0o644))
	_, err := plan.Write(t.Context(), path, build.WriteOptions{})
	if report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), "demo-") {
		t.Errorf("got %v (%s), want %s naming the image", err, report.CodeOf(err), report.Corrupt)
	}
	if got := string(readFile(t, path)); got != "the archive of yesterday" {
		t.Errorf("the published archive changed: %.40q", got)
	}
}

// largest is the name of the largest file in a directory.
func largest(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var name string
	var size int64
	for _, entry := range entries {
		info, err := entry.Info()
		check(t, err)
		if info.Size() > size {
			name, size = entry.Name(), info.Size()
		}
	}
	return filepath.Join(dir, name)
}

func TestSecondBuildOfTheSameArchiveIsRefused(t *testing.T) {
	plan := planOf(t, newProject(t, 512<<10), build.Options{})
	path := filepath.Join(t.TempDir(), "demo.iso")
	var second error
	_, err := plan.Write(t.Context(), path, build.WriteOptions{Sink: sinkFunc(func(report.Event) {
		if second == nil {
			_, second = plan.Write(t.Context(), path, build.WriteOptions{})
		}
	})})
	check(t, err)
	if second == nil || !strings.Contains(second.Error(), "another process") {
		t.Errorf("got %v, want a refusal", second)
	}
}

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }
