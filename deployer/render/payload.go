package render

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The bounds of a payload. It ends up in the cluster's own database, so they are tight.
const (
	maxFile  = 8 << 20
	maxTotal = 32 << 20
	maxFiles = 25_000
)

// Names in an encoded payload: the data of the images, and the directory of the files.
const (
	headFile = "payload.json"
	filesDir = "files/"
)

// payloadReader is the first version of the program that reads the format. The version that writes does not matter: the
// digest of a payload stays the same.
const payloadReader = "0.1.0"

// Payload is everything of an archive that some operation reads, but its images. It is in memory, independent of the
// archive, and never modified.
type Payload struct {
	fs.FS
	Solution *schema.Solution // with the defaults filled in, see [schema.Solution.Merged]
	Images   []Image          // ordered by name and tag

	files  map[string][]byte
	names  []string                 // of the files, sorted
	parsed sync.Map                 // parsed files
	charts func() ([]object, error) // the definitions and Namespaces of its charts
	// applications returns the packed definitions of applications, see [Payload.packApplications].
	applications func() ([]byte, error)
}

// Image is an image of the archive.
type Image = schema.PayloadImage

// FromArchive reads the payload of an archive, without SBOMs, statements about vulnerabilities, documentation and files for serving images.
func FromArchive(a *archive.Archive) (*Payload, error) {
	files := newMemoryFiller()
	err := fs.WalkDir(a.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"images", "blobs", "sbom", "vex", "docs"}, name):
			return fs.SkipDir
		case entry.IsDir() || slices.Contains([]string{"index.json", "oci-layout", "registry-config.inc.j2"}, name):
			return nil
		case !entry.Type().IsRegular():
			return report.Errorf(report.Invalid, "%s is not a regular file", name)
		}
		f, err := a.Open(name)
		if err != nil {
			return err
		}
		err = files.add(name, f)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, image := range a.Images.Images() {
		images = append(images, Image{Ref: image.Ref, Digest: image.Root.Digest.String(), Origin: cmp.Or(a.Solution.Spec.ImageOrigins[image.Ref], image.Origin)})
	}
	return newPayload(files.files, images)
}

func newPayload(files map[string][]byte, images []Image) (*Payload, error) {
	data, ok := files[archive.ManifestFile]
	if !ok {
		return nil, report.Errorf(report.Invalid, "%s is missing", archive.ManifestFile)
	}
	solution, _, err := schema.ParseSolution(archive.ManifestFile, data)
	if err != nil {
		return nil, err
	}
	refs := make([]schema.ImageRef, len(images))
	for i, image := range images {
		refs[i] = image.Ref
	}
	p := &Payload{FS: memoryFS(files), Solution: solution.Merged(refs), Images: images, files: files, names: slices.Sorted(maps.Keys(files))}
	p.charts, p.applications = sync.OnceValues(p.chartDefinitions), sync.OnceValues(p.packApplications)
	return p, nil
}

// Size returns the size of the files of the payload, in bytes.
func (p *Payload) Size() (size int) {
	for _, data := range p.files {
		size += len(data)
	}
	return size
}

// Image returns an image of the archive by its name and tag.
func (p *Payload) Image(ref schema.ImageRef) (Image, bool) {
	i, found := slices.BinarySearchFunc(p.Images, ref, func(i Image, ref schema.ImageRef) int { return i.Ref.Compare(ref) })
	if !found {
		return Image{}, false
	}
	return p.Images[i], true
}

// Parts returns the parts of the archive, see [archive.Archive.Parts].
func (p *Payload) Parts() []string {
	_, image := p.Image(p.Solution.OperatorImage())
	return archive.PartsOf(p, image)
}

// ReleaseNotes returns the release notes, "" where there are none that can be shown: lint reports why.
func (p *Payload) ReleaseNotes() string {
	notes, err := archive.ReleaseNotes(p)
	if err != nil {
		return ""
	}
	return notes
}

func (p *Payload) hasOperator() bool { return slices.Contains(p.Parts(), schema.NodeOperator) }

// HasOperators reports whether the archive has an operator: its own, or one of a component.
func (p *Payload) HasOperators() bool {
	return p.hasOperator() || slices.ContainsFunc(p.Solution.Spec.Components, func(c schema.Component) bool { return c.Operator != "" })
}

// IsMonitored reports whether the archive can have objects that Prometheus or Grafana select.
func (p *Payload) IsMonitored() bool {
	if p.Solution.OperatorMetrics() != nil {
		return true
	}
	for name, data := range p.files {
		if strings.HasPrefix(name, "monitoring/") || strings.HasPrefix(name, "charts/") || bytes.Contains(data, []byte(monitoringGroup)) ||
			bytes.Contains(data, []byte(schema.LabelDashboard)) {
			return true
		}
	}
	return false
}

// SpareCharts are the charts of the archive that no component deploys.
func (p *Payload) SpareCharts() []string {
	return slices.DeleteFunc(p.below("charts"), func(file string) bool {
		used := func(c schema.Component) bool { return path.Clean(c.Chart) == file }
		return path.Ext(file) != ".tgz" || slices.ContainsFunc(p.Solution.Spec.Components, used)
	})
}

// below lists the files in a directory and the directories in it, sorted.
func (p *Payload) below(dir string) []string {
	first, _ := slices.BinarySearch(p.names, dir+"/")
	last := first
	for last < len(p.names) && strings.HasPrefix(p.names[last], dir+"/") {
		last++
	}
	return slices.Clone(p.names[first:last])
}

// manifests lists the YAML files directly in a directory, sorted.
func (p *Payload) manifests(dir string) []string {
	return slices.DeleteFunc(p.below(dir), func(name string) bool { return path.Dir(name) != dir || path.Ext(name) != ".yaml" })
}

// Encode returns the payload as one document, the same bytes for the same payload: a tar file, compressed by gzip.
func (p *Payload) Encode() ([]byte, error) {
	data, err := schema.MarshalStored(schema.PayloadHead{Stamp: schema.NewStamp("payload", payloadReader), Images: append([]Image{}, p.Images...)})
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	write := func(name string, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o444, Size: int64(len(data)), Format: tar.FormatPAX}); err != nil {
			return fmt.Errorf("encode payload: %s: %w", name, err)
		}
		_, err := w.Write(data)
		return err
	}
	if err := write(headFile, data); err != nil {
		return nil, err
	}
	for _, name := range p.names {
		if err := write(filesDir+name, p.files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// DecodePayload reads what [Payload.Encode] returned. Data may be hostile: everything is bounded and checked.
func DecodePayload(data []byte) (*Payload, error) {
	p, err := decode(data)
	if err == nil {
		return p, nil
	}
	err = fmt.Errorf("payload: %w", err)
	if report.CodeOf(err) == report.Refused { // a newer format
		return nil, err
	}
	return nil, report.As(report.Corrupt, err).WithHint("import the archive again")
}

func decode(data []byte) (*Payload, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	compressed.Multistream(false)
	r := tar.NewReader(io.LimitReader(compressed, maxTotal+maxFiles*4*512))
	files := newMemoryFiller()
	var head *schema.PayloadHead
	for {
		header, err := r.Next()
		switch name := ""; {
		case errors.Is(err, io.EOF):
			if head == nil {
				return nil, fmt.Errorf("%s is missing", headFile)
			}
			return newPayload(files.files, head.Images)
		case err != nil:
			return nil, err
		case head == nil:
			if header.Name != headFile {
				return nil, fmt.Errorf("have %q, want %s", header.Name, headFile)
			}
			if head, err = readHead(r); err != nil {
				return nil, err
			}
		default:
			name, _ = strings.CutPrefix(header.Name, filesDir)
			if header.Typeflag != tar.TypeReg || filesDir+name != header.Name {
				return nil, fmt.Errorf("%q is not a file in %s", header.Name, filesDir)
			}
			if err := files.add(name, r); err != nil {
				return nil, err
			}
		}
	}
}

func readHead(r io.Reader) (*schema.PayloadHead, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return nil, err
	}
	head, err := schema.ParseStored[schema.PayloadHead]("payload", headFile, data)
	if err != nil {
		return nil, err
	}
	sorted := func(a, b Image) int { return a.Ref.Compare(b.Ref) }
	if !slices.IsSortedFunc(head.Images, sorted) || len(slices.CompactFunc(slices.Clone(head.Images), func(a, b Image) bool { return a.Ref == b.Ref })) < len(head.Images) {
		return nil, fmt.Errorf("%s: the images are not sorted", headFile)
	}
	return head, nil
}
