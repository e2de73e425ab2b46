// Package target reads the target of checks: an archive, a directory with the content of one, or a project.
//
// A [Target] shows all three as the files of an archive. It reads each file once, splits the manifests into objects,
// renders the charts, and knows the place of everything: of an object's field in its file, and of that file as the user
// knows it. The checks are in package lint.
package target

import (
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Kind is the form of a target.
type Kind string

// The kinds of a target.
const (
	Project   Kind = "project"   // a directory with solution.yaml; FS shows the archive that would be built of it
	Directory Kind = "directory" // a directory with the content of an archive
	ISO       Kind = "iso"       // an archive in ISO 9660 format
)

// ProjectFile is the file of findings on parts of an archive that are made from a project and lie in no file of the archive.
const ProjectFile = "solution.yaml"

// Target is a project or an archive. It is read once, on first use, and is safe for concurrent use; results must not be
// changed.
type Target struct {
	FS   fs.FS // paths of an archive, whatever the kind
	Kind Kind

	// Solution is the manifest, nil where it cannot be read.
	Solution *schema.Solution
	// Build is solution.yaml of a project, else nil.
	Build *schema.SolutionBuild
	// Problems are faults of the manifest, or of solution.yaml.
	Problems []report.Finding
	// Images are the images of the archive, ordered by name and tag, without the payload.
	Images []Image
	// ChartImages are the artifacts of the charts; a project has none.
	ChartImages []*oci.Image
	// ImagesError is the reason why the images cannot be read.
	ImagesError error
	// Refusals are the errors of a build of the project.
	Refusals []Refusal
	// Broken is the reason why nothing can be read at all.
	Broken error

	// Reader and Size are the bytes of an ISO image, else nil and 0.
	Reader io.ReaderAt
	Size   int64

	sourcePath func(string) string
	project    *schema.Document // solution.yaml; nil without a project
	catalogue  *schemas.Catalogue
	releases   []*schemas.Release // that the Solution has to work with

	files       once[[]File]
	objects     once[[]*Object]
	definitions once[definitions]
	charts      once[[]Chart]
	mu          sync.Mutex
	texts       map[string]*parsed // of manifests
}

// once is a value that is found out when it is first asked for.
type once[T any] struct {
	sync.Once
	value T
}

func (o *once[T]) get(find func() T) T {
	o.Do(func() { o.value = find() })
	return o.value
}

// ImagesKnown is false when the images of an archive could not be read: then Images is empty.
func (t *Target) ImagesKnown() bool { return t.Broken == nil && t.ImagesError == nil }

// Image is an image that an archive has, or a project declares.
type Image struct {
	Ref schema.ImageRef
	// Content is the image itself; nil where it is not at hand: for an image that a build would pull.
	Content *oci.Image
	Unread  string // why Content is nil, unless Err is set
	Err     error  // why a build of the project would refuse the image
}

// Refusal is why a project cannot be built.
type Refusal struct {
	File string // in the archive; empty when it is about no single file
	Err  error
}

// File is one regular file outside of images/ and blobs/.
type File struct {
	Path string
	Size int64
}

// Part is the purpose of an object in the archive.
type Part string

// The parts of an archive that hold Kubernetes objects.
const (
	PartCRD        Part = "crd"        // operator/deploy/crds/**/*_crd.yaml
	PartSample     Part = "sample"     // operator/deploy/crds/**/*_cr.yaml: for people, never applied
	PartRole       Part = "role"       // operator/deploy/role.yaml, operators/*/role.yaml
	PartUnapplied  Part = "unapplied"  // whatever else lies below operator/deploy and operators
	PartCluster    Part = "cluster"    // operator/cluster, operators/*/cluster
	PartUI         Part = "ui"         // ui
	PartComponent  Part = "component"  // components
	PartMonitoring Part = "monitoring" // monitoring
	PartChart      Part = "chart"      // rendered from charts/*.tgz
)

// Applied reports whether some verb applies objects of this part.
func (p Part) Applied() bool { return p != PartSample && p != PartUnapplied }

// Object is one Kubernetes object of the archive; the items of a List are objects of their own.
type Object struct {
	Part             Part
	File             string
	APIVersion, Kind string
	Namespace, Name  string
	// Component is the one that a chart was rendered for; empty for other parts, and for charts of no component.
	Component string
	// Test is set on the hooks of a chart that Helm applies for a test alone: deploying starts none of them.
	Test bool
	// Value is the object as Kubernetes would decode it. In ui/ it keeps "{{ repository }}".
	Value map[string]any

	document *schema.Document // nil when it was rendered
	prefix   []string         // path of the object in the document
	template string           // of a chart
}

// Definition is a CustomResourceDefinition of the archive with the file it stands in.
type Definition struct {
	*crd.Definition
	File   string
	Part   Part
	Object *Object // nil when the file could not be taken for Kubernetes objects
}

// Chart is a Helm chart of the archive, rendered with the values that its component gives, or with its own.
type Chart struct {
	File      string
	Component string // name of the component in the manifest, "" when no component uses the chart
	*chart.Chart
	*chart.Rendering       // nil when it could not be rendered
	Err              error // why it could not be loaded or rendered

	options chart.Options // of the rendering
}

// Files returns every regular file outside of images/ and blobs/, ordered by path.
func (t *Target) Files() []File {
	return t.files.get(func() []File { return walkFiles(t.FS) })
}

// Has reports whether there is such a file outside of images/ and blobs/.
func (t *Target) Has(name string) bool {
	return slices.ContainsFunc(t.Files(), func(file File) bool { return file.Path == name })
}

// Objects returns the objects of every part, ordered by file and position. Files that cannot be read have none.
func (t *Target) Objects() []*Object { return t.objects.get(t.loadObjects) }

// Definitions returns the CustomResourceDefinitions of every part, ordered by file.
func (t *Target) Definitions() []Definition { return t.definitions.get(t.loadDefinitions).all }

// Charts returns the charts below charts/, ordered by file.
func (t *Target) Charts() []Chart { return t.charts.get(t.loadCharts) }
