package oci

import (
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// The media types of a Helm chart in a registry, see https://github.com/helm/community/blob/main/hips/hip-0006.md.
const (
	ChartConfigType     = "application/vnd.cncf.helm.config.v1+json"
	ChartContentType    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// chartPrefix begins the names of charts, and of nothing else: those of images have one component.
const chartPrefix = "charts/"

// artifactName is the annotation that names a chart in index.json. The usual annotation would do, but earlier programs
// refuse an archive in which it has a slash, and skip entries without it.
const artifactName = "io.solutionctl.artifact"

// Chart is a packaged Helm chart.
type Chart struct {
	Name, Version string
	Config        []byte // Chart.yaml as JSON
	Content       Blob   // the package
	Provenance    *Blob  // the file .prov beside it; nil: there is none
}

// ChartImage returns the OCI artifact that `helm pull` reads a chart from, called charts/NAME with the version as its tag; a
// tag has no +, for which Helm writes _. The package is its layer as it is. A payload and a chart are in the OCI image layout
// only, see [Layout].
func ChartImage(c Chart) (*Image, error) {
	ref := schema.ImageRef{Name: c.Name, Tag: strings.ReplaceAll(c.Version, "+", "_")}
	if err := checkName("chart", ref); err != nil {
		return nil, err
	}
	ref.Name = chartPrefix + ref.Name
	layers := []Blob{c.Content}
	layers[0].MediaType = ChartContentType
	if c.Provenance != nil {
		layers = append(layers, *c.Provenance)
		layers[1].MediaType = chartProvenanceType
	}
	config := blobDescriptor(ChartConfigType, c.Config)
	m := v1.Manifest{
		Config:      config,
		Annotations: map[string]string{layerTitle: c.Name, "org.opencontainers.image.version": c.Version},
	}
	for _, layer := range layers {
		m.Layers = append(m.Layers, layer.Descriptor)
	}
	root, err := encodeManifest(m, ChartConfigType)
	if err != nil {
		return nil, err
	}
	return &Image{
		Ref: ref, Root: root.Descriptor, Manifests: []Manifest{root}, Blobs: append([]Blob{bytesBlob(config, c.Config)}, layers...),
	}, nil
}

func isChart(image *Image) bool { return strings.HasPrefix(image.Ref.Name, chartPrefix) }

// isArtifact reports whether an image is the payload or a chart, which do not run.
func isArtifact(image *Image) bool { return isPayload(image) || isChart(image) }

// entryName returns the annotation that names an image in index.json, and the name.
func entryName(image *Image) (annotation, name string) {
	if isChart(image) {
		return artifactName, image.Ref.String()
	}
	return refName, image.Ref.String()
}

// nameOf is the inverse of entryName. The name is empty for manifests that refer to an image, and for artifacts of
// later versions.
func nameOf(d Descriptor) (schema.ImageRef, error) {
	if text := d.Annotations[refName]; text != "" {
		return schema.ParseImageRef(text)
	}
	text, isChart := strings.CutPrefix(d.Annotations[artifactName], chartPrefix)
	if !isChart {
		return schema.ImageRef{}, nil
	}
	ref, err := schema.ParseImageRef(text)
	ref.Name = chartPrefix + ref.Name
	return ref, err
}
