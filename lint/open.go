package lint

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/lint/kube"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OpenISO takes an archive in ISO 9660 format. It never fails: what is wrong with the image are findings.
func OpenISO(r io.ReaderAt, size int64, name string) (*Target, error) {
	t := &Target{Name: name, Kind: ISO, Reader: r, Size: size, FS: nothing{}}
	image, err := iso.Open(r, size)
	if err != nil {
		t.broken = err
		return t, t.setUp()
	}
	t.FS = image
	t.readManifest()
	t.readImages()
	return t, t.setUp()
}

// OpenDirectory takes a directory with the content of an archive.
func OpenDirectory(fsys fs.FS, name string) (*Target, error) {
	t := &Target{Name: name, Kind: Directory, FS: fsys}
	if _, err := fs.Stat(fsys, archive.ManifestFile); err != nil {
		return nil, report.Errorf(report.Invalid, "%s has neither solution.yaml nor %s: this is not a Solution", name, archive.ManifestFile).
			WithHint("name a project, an archive or a directory with the content of an archive; make a project with: solutionctl init")
	}
	t.readManifest()
	t.readImages()
	return t, t.setUp()
}

// Source is a project: the archive that would be built of it, and where its files come from.
type Source struct {
	FS         fs.FS
	Build      *schema.SolutionBuild
	Solution   *schema.Solution
	Images     []Image
	SourcePath func(name string) string
}

// OpenProject takes a project that would be built.
func OpenProject(s Source, name string) (*Target, error) {
	t := &Target{
		Name: name, Kind: Project, FS: s.FS, Build: s.Build, Solution: s.Solution, Images: s.Images, ImagesKnown: true,
		sourcePath: s.SourcePath,
	}
	return t, t.setUp()
}

// setUp makes everything that is read when it is first asked for, and judges for the oldest release that the manifest
// allows.
func (t *Target) setUp() error {
	t.documents, t.crdProblems, t.judgements = map[string]*parsed{}, map[string][]crd.Problem{}, map[int][]crd.Problem{}
	t.files = sync.OnceValue(func() []File { return walkFiles(t.FS) })
	t.objects = sync.OnceValue(t.loadObjects)
	t.definitions = sync.OnceValue(t.loadDefinitions)
	t.charts = sync.OnceValue(t.loadCharts)
	t.validated = sync.OnceValue(t.validateObjects)
	t.isoFindings = sync.OnceValue(t.isoChecks)
	t.uses = sync.OnceValue(t.findUses)
	var err error
	if t.Catalogue, err = kube.Load(); err != nil {
		return err
	}
	return t.judgeForRange()
}

func (t *Target) judgeForRange() error {
	for _, version := range t.Catalogue.Versions() {
		if t.allows(version) {
			release, err := t.Catalogue.Release(version)
			if err != nil {
				return err
			}
			t.releases = append(t.releases, release)
		}
	}
	if len(t.releases) == 0 { // the range lies outside of what is known
		release, err := t.Catalogue.Release(t.Catalogue.Versions()[0])
		if err != nil {
			return err
		}
		t.releases = []*kube.Release{release}
	}
	t.Kubernetes = t.releases[0]
	return nil
}

// allows tells whether the manifest lets the Solution run on some patch of a minor release.
func (t *Target) allows(version string) bool {
	if t.Solution == nil || t.Solution.Spec.KubernetesVersion == "" {
		return true
	}
	wanted, err := schema.ParseRange(t.Solution.Spec.KubernetesVersion)
	if err != nil {
		return true // a rule reports it
	}
	for _, patch := range []string{".0", ".999"} {
		if ok, err := wanted.ContainsKubernetes("v" + version + patch); err == nil && ok {
			return true
		}
	}
	return false
}

// JudgeFor makes the rules judge for one release of Kubernetes only, such as "1.34".
func (t *Target) JudgeFor(version string) error {
	release, err := t.Catalogue.Release(version)
	if err != nil {
		return err
	}
	t.Kubernetes, t.releases = release, []*kube.Release{release}
	return nil
}

// Releases returns the releases of Kubernetes that the Solution has to work with, oldest first.
func (t *Target) Releases() []*kube.Release { return t.releases }

func (t *Target) readManifest() {
	data, err := t.Text(archive.ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return // a rule reports it
	}
	var warnings []report.Finding
	if err == nil {
		t.Solution, warnings, err = schema.ParseSolution(archive.ManifestFile, data)
	}
	t.problems = append(t.problems, warnings...)
	if err == nil {
		return
	}
	problems := schema.Problems(err)
	if len(problems) == 0 {
		problems = []report.Finding{{Severity: report.SeverityError, Path: archive.ManifestFile, Message: err.Error()}}
	}
	t.problems = append(t.problems, problems...)
}

func (t *Target) readImages() {
	t.store, t.imagesError = oci.Open(t.FS)
	if t.imagesError != nil {
		return
	}
	t.ImagesKnown = true
	for _, image := range t.store.Images() {
		if image.Root.ArtifactType != oci.PayloadType {
			t.Images = append(t.Images, Image{Ref: image.Ref, Content: image})
		}
	}
}

// nothing is the file system of an image that cannot be read.
type nothing struct{}

func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func encode(value any) ([]byte, error) { return json.Marshal(value) }

// OpenRefused takes a project whose solution.yaml a parser refused: the problems are its findings. Any other error is
// returned.
func OpenRefused(err error, name string) (*Target, error) {
	problems := schema.Problems(err)
	if len(problems) == 0 {
		return nil, err
	}
	t := &Target{Name: name, Kind: Project, FS: nothing{}, broken: err}
	for _, f := range problems {
		f.Path = projectFile
		t.problems = append(t.problems, f)
	}
	return t, t.setUp()
}
