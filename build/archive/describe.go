package archive

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Description holds the content of an archive. `solutionctl inspect` prints it.
type Description struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	DisplayName string `json:"displayName"`
	VolumeID    string `json:"volumeID,omitempty"`
	Size        int64  `json:"size,omitempty"` // of the image, in bytes

	DependsOn      []schema.Dependency `json:"dependsOn,omitempty"`      // on other Solutions
	SupportedUntil string              `json:"supportedUntil,omitempty"` // a day

	ReleaseNotes string `json:"releaseNotes,omitempty"`

	Images []ImageDescription `json:"images"`
	Charts []ChartDescription `json:"charts"` // as artifacts, for `helm pull`; archives of older programs have none
	CRDs   []CRDDescription   `json:"crds"`
	Roles  []RoleDescription  `json:"roles"`
	Files  []FileDescription  `json:"files"` // all but those of the images
}

// ImageDescription is one image of an archive.
type ImageDescription struct {
	Name      string            `json:"name"` // name:tag
	Digest    string            `json:"digest"`
	MediaType string            `json:"mediaType"`
	Platforms []schema.Platform `json:"platforms"`
	Size      int64             `json:"size"` // of its distinct blobs, in bytes
	Blobs     int               `json:"blobs"`
	Origin    string            `json:"origin,omitempty"`
}

// ChartDescription is one chart of an archive, as an OCI artifact.
type ChartDescription struct {
	Name   string `json:"name"` // charts/name:tag
	Digest string `json:"digest"`
	Size   int64  `json:"size"` // of the package and its configuration, in bytes
}

// FileDescription is one file of an archive.
type FileDescription struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Describe lists the content of the archive. It reads directories, CRDs and roles, and no layer.
func (a *Archive) Describe() (*Description, error) {
	s := a.Solution
	d := &Description{
		ID: s.ID(), Name: s.Metadata.Name, Version: s.Spec.Version, DisplayName: s.DisplayName(),
		VolumeID: a.volumeID, Size: a.size, DependsOn: s.Spec.DependsOn, SupportedUntil: s.Spec.SupportedUntil, Images: []ImageDescription{}, Charts: []ChartDescription{},
	}
	for _, image := range a.Images.Images() {
		d.Images = append(d.Images, a.DescribeImage(image))
	}
	for _, chart := range a.Images.Charts() {
		described := a.DescribeImage(chart)
		d.Charts = append(d.Charts, ChartDescription{described.Name, described.Digest, described.Size})
	}
	var err error
	if d.ReleaseNotes, err = ReleaseNotes(a.FS); err != nil {
		d.ReleaseNotes = "" // lint reports why
	}
	if d.Files, err = a.files(); err != nil {
		return nil, err
	}
	if d.CRDs, err = a.crds(); err != nil {
		return nil, err
	}
	d.Roles, err = a.roles()
	return d, err
}

// Parts lists those nodes of the graph of components that are none, and that the archive has: its operator, its user interface.
func (a *Archive) Parts() []string {
	image := func(i *oci.Image) bool { return i.Ref == a.Solution.OperatorImage() }
	return PartsOf(a, slices.ContainsFunc(a.Images.Images(), image))
}

// PartsOf lists the parts by the files of an archive, and by whether it has the image of an operator.
func PartsOf(files fs.FS, image bool) []string {
	var parts []string
	if HasOperator(files, image) {
		parts = append(parts, schema.NodeOperator)
	}
	if manifests, err := fs.Glob(files, "ui/*.yaml"); err == nil && len(manifests) > 0 {
		parts = append(parts, schema.NodeUI)
	}
	return parts
}

// HasOperator reports whether a Solution has an operator of its own: it has the image of one, or the rights of one. Definitions alone
// do not make one: those of components are activated from operator/deploy/crds as well.
func HasOperator(files fs.FS, image bool) bool {
	_, err := fs.Stat(files, RoleFile)
	return image || err == nil
}

// DescribeImage returns the description of an image of the archive.
func (a *Archive) DescribeImage(image *oci.Image) ImageDescription {
	d := ImageDescription{
		Name: image.Ref.String(), Digest: image.Root.Digest.String(), MediaType: string(image.Root.MediaType),
		Platforms: image.Platforms(), Blobs: len(image.Blobs), Origin: a.Solution.Spec.ImageOrigins[image.Ref],
	}
	for _, blob := range image.Blobs {
		d.Size += blob.Size
	}
	return d
}

// files lists the files that are not part of an image, sorted.
func (a *Archive) files() ([]FileDescription, error) {
	files := []FileDescription{}
	err := fs.WalkDir(a.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "images" || name == "blobs"):
			return fs.SkipDir
		case entry.IsDir() || name == "index.json" || name == "oci-layout":
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files = append(files, FileDescription{name, info.Size()})
		return nil
	})
	slices.SortFunc(files, func(a, b FileDescription) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

// documents parses a YAML file of the archive, and adds its bytes to those of the files before it.
func (a *Archive) documents(name string, total *int) ([]*schema.Document, error) {
	data, err := ReadDocument(a.FS, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if *total += len(data); *total > maxDocuments {
		return nil, report.Errorf(report.Invalid, "%s: the CustomResourceDefinitions, or the roles, have more than %d MiB", name, maxDocuments>>20)
	}
	return schema.ParseYAML(name, data)
}

// crdFiles lists the files that activation applies: below operator/deploy/crds, named *_crd.yaml.
func (a *Archive) crdFiles() ([]string, error) {
	var names []string
	err := walkIfPresent(a.FS, path.Join("operator", "deploy", "crds"), func(name string) {
		if strings.HasSuffix(name, "_crd.yaml") {
			names = append(names, name)
		}
	})
	return names, err
}

func walkIfPresent(fsys fs.FS, dir string, visit func(name string)) error {
	if _, err := fs.Stat(fsys, dir); err != nil {
		return nil //nolint:nilerr // an archive without the directory has none of its files
	}
	return fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			visit(name)
		}
		return err
	})
}
