package target

import (
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OpenISO opens an archive in ISO 9660 format. Faults of the image are not errors: rules report them.
func OpenISO(r io.ReaderAt, size int64) (*Target, error) {
	t := &Target{Kind: ISO, Reader: r, Size: size, FS: nothing{}}
	image, err := iso.Open(r, size)
	if err != nil {
		t.Broken = err
		return t, t.setReleases()
	}
	t.FS = image
	t.readManifest()
	t.readImages()
	return t, t.setReleases()
}

// OpenDirectory takes a directory with the content of an archive.
func OpenDirectory(fsys fs.FS, name string) (*Target, error) {
	t := &Target{Kind: Directory, FS: fsys}
	if _, err := fs.Stat(fsys, archive.ManifestFile); err != nil {
		return nil, report.Errorf(report.Invalid, "%s has neither solution.yaml nor %s: this is not a Solution", name, archive.ManifestFile).
			WithHint("name a project, an archive or a directory with the content of an archive; make a project with: solutionctl init DIR")
	}
	t.readManifest()
	t.readImages()
	return t, t.setReleases()
}

// Source is a project: the archive that would be built of it, and where its files come from.
type Source struct {
	FS         fs.FS
	Build      *schema.SolutionBuild
	Solution   *schema.Solution
	Images     []Image
	SourcePath func(name string) string
	Project    *schema.Document // solution.yaml
	Refusals   []Refusal
}

// OpenProject takes a project that would be built.
func OpenProject(s Source) (*Target, error) {
	t := &Target{Kind: Project, FS: s.FS, Build: s.Build, Solution: s.Solution, Images: s.Images, sourcePath: s.SourcePath, project: s.Project, Refusals: s.Refusals}
	return t, t.setReleases()
}

// OpenRefused takes a project whose solution.yaml a parser refused: its problems are all there is to say. Any other
// error is returned.
func OpenRefused(err error) (*Target, error) {
	problems := schema.Problems(err)
	if len(problems) == 0 {
		return nil, err
	}
	t := &Target{Kind: Project, FS: nothing{}, Broken: err}
	for _, f := range problems {
		f.Path = ProjectFile
		t.Problems = append(t.Problems, f)
	}
	return t, t.setReleases()
}

// setReleases makes the rules judge for every release of Kubernetes that the manifest allows; where it allows none that
// is known, for the oldest one.
func (t *Target) setReleases() error {
	catalogue, err := schemas.Load()
	if err != nil {
		return err
	}
	t.catalogue = catalogue
	allowed := slices.DeleteFunc(catalogue.Versions(), func(version string) bool { return !t.allows(version) })
	if len(allowed) == 0 {
		allowed = catalogue.Versions()[:1]
	}
	for _, version := range allowed {
		release, err := catalogue.Release(version)
		if err != nil {
			return err
		}
		t.releases = append(t.releases, release)
	}
	return nil
}

// allows reports whether the manifest lets the Solution run on some patch of a minor release.
func (t *Target) allows(version string) bool {
	if t.Solution == nil || t.Solution.Spec.KubernetesVersion == "" {
		return true
	}
	wanted, err := schema.ParseRange(t.Solution.Spec.KubernetesVersion)
	if err != nil {
		return true // a rule reports it
	}
	return slices.ContainsFunc([]string{".0", ".999"}, func(patch string) bool {
		ok, err := wanted.ContainsKubernetes("v" + version + patch)
		return err == nil && ok
	})
}

// JudgeFor makes the rules judge for one release of Kubernetes only, such as "1.34".
func (t *Target) JudgeFor(version string) error {
	release, err := t.catalogue.Release(version)
	if err != nil {
		return err
	}
	t.releases = []*schemas.Release{release}
	return nil
}

// Releases returns the releases of Kubernetes that the Solution has to work with, oldest first; there is at least one.
func (t *Target) Releases() []*schemas.Release { return t.releases }

// Kubernetes returns the oldest of the releases.
func (t *Target) Kubernetes() *schemas.Release { return t.releases[0] }

// KnowsKubernetes returns an error for a release that is not supported.
func (t *Target) KnowsKubernetes(version string) error {
	_, err := t.catalogue.Release(version)
	return err
}

func (t *Target) readManifest() {
	data, err := t.Text(archive.ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return // a rule reports it
	}
	var warnings []report.Finding
	if err == nil {
		t.Solution, warnings, err = schema.ParseSolution(archive.ManifestFile, data)
	}
	t.Problems = append(t.Problems, warnings...)
	if err == nil {
		return
	}
	problems := schema.Problems(err)
	if len(problems) == 0 {
		problems = []report.Finding{{Severity: report.SeverityError, Path: archive.ManifestFile, Message: err.Error()}}
	}
	t.Problems = append(t.Problems, problems...)
}

func (t *Target) readImages() {
	store, err := oci.Open(t.FS)
	if err != nil {
		t.ImagesError = err
		return
	}
	for _, image := range store.Images() {
		t.Images = append(t.Images, Image{Ref: image.Ref, Content: image})
	}
	t.ChartImages = store.Charts()
}

// nothing is the file system of an image that cannot be read.
type nothing struct{}

func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
