package lint

import (
	"io"
	"io/fs"
	"sync"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/chart"
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/lint/kube"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Kind says what a target is.
type Kind string

// The kinds of a target.
const (
	Project   Kind = "project"   // a directory with solution.yaml; FS shows the archive that would be built of it
	Directory Kind = "directory" // a directory with the content of an archive
	ISO       Kind = "iso"       // an archive in ISO 9660 format
)

// Target is what is judged. What rules ask of it is read when it is first asked for, once. Rules may run at the same
// time; what they are given must not be changed.
type Target struct {
	FS   fs.FS // paths of an archive, whatever the kind
	Name string
	Kind Kind

	// Solution is the manifest, and never nil where rules of the groups operator, monitoring, completeness and upgrade
	// run: without a readable manifest only the others do.
	Solution *schema.Solution
	// Build is solution.yaml of a project, else nil.
	Build *schema.SolutionBuild
	// Images are the images of the archive, ordered by name and tag, without the payload.
	Images []Image
	// ImagesKnown is false when the images of an archive could not be read: then Images says nothing.
	ImagesKnown bool

	// Reader and Size are the bytes of an ISO image, else nil and 0.
	Reader io.ReaderAt
	Size   int64

	Deep       bool          // read every blob
	Kubernetes *kube.Release // to judge for
	Catalogue  *kube.Catalogue
	Against    *Target // the older version, or nil

	releases    []*kube.Release  // that the Solution has to work with
	broken      error            // why the ISO image cannot be read
	imagesError error            // why the images cannot be read
	problems    []report.Finding // of manifest.yaml
	store       *oci.Store
	sourcePath  func(string) string
	files       func() []File
	objects     func() []*Object
	definitions func() []Definition
	charts      func() []Chart
	validated   func() map[*Object][]kube.Problem
	isoFindings func() []report.Finding
	uses        func() []Use
	mu          sync.Mutex
	documents   map[string]*parsed
	crdProblems map[string][]crd.Problem // of files, filled by definitions
	judging     sync.Mutex
	judgements  map[int][]crd.Problem
}

// Image is an image that an archive has, or a project declares.
type Image struct {
	Ref schema.ImageRef
	// Content is the image itself; nil where it is not at hand: for an image that a build would pull.
	Content *oci.Image
}

// File is one regular file outside of images/ and blobs/.
type File struct {
	Path string
	Size int64
}

// Part is what an object is in the archive for.
type Part string

// The parts of an archive that hold Kubernetes objects.
const (
	PartCRD        Part = "crd"        // operator/deploy/crds/**/*_crd.yaml
	PartSample     Part = "sample"     // operator/deploy/crds/**/*_cr.yaml: for people, never applied
	PartRole       Part = "role"       // operator/deploy/role.yaml
	PartUnapplied  Part = "unapplied"  // whatever else lies below operator/deploy
	PartCluster    Part = "cluster"    // operator/cluster
	PartUI         Part = "ui"         // ui
	PartComponent  Part = "component"  // components
	PartMonitoring Part = "monitoring" // monitoring
	PartChart      Part = "chart"      // rendered from charts/*.tgz
)

// Applied tells whether some verb applies objects of this part.
func (p Part) Applied() bool { return p != PartSample && p != PartUnapplied }

// Object is one Kubernetes object of the archive; the items of a List are objects of their own.
type Object struct {
	Part             Part
	File             string
	APIVersion, Kind string
	Namespace, Name  string
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
}

// Files returns every regular file outside of images/ and blobs/, ordered by path.
func (t *Target) Files() []File { return t.files() }

// Objects returns the objects of every part, ordered by file and position. Files that cannot be read have none.
func (t *Target) Objects() []*Object { return t.objects() }

// Definitions returns the CustomResourceDefinitions of every part, ordered by file.
func (t *Target) Definitions() []Definition { return t.definitions() }

// Charts returns the charts below charts/, ordered by file.
func (t *Target) Charts() []Chart { return t.charts() }

// SourcePath returns the path of a file as the user knows it: for a project, that of the file that would be copied.
func (t *Target) SourcePath(name string) string {
	if t.sourcePath == nil {
		return name
	}
	return t.sourcePath(name)
}
