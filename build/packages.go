package build

import (
	"bytes"
	"compress/gzip"
	"context"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema"
)

// Types of a bill of materials in a registry. Its only layer is compressed, so that the archive has its bytes once: as a file and as a blob.
const (
	spdxType           = "application/spdx+json"
	spdxCompressedType = "application/spdx+json+gzip"
	titleAnnotation    = "org.opencontainers.image.title"
)

// sbomFile is the place of the bill of materials of an image in the archive.
func sbomFile(ref schema.ImageRef) string {
	return path.Join("sbom", ref.Name, ref.Tag+".spdx.json.gz")
}

// addPackages puts a bill of materials of each image into the archive: as a file, and as an artifact that refers to the image, so that registries
// serve it. One that the project itself has at the same place stays. Layers are read once more for it.
func (p *Plan) addPackages(ctx context.Context, o Options) error {
	list, err := sbom.List(ctx, p.Solution, p.Images, sbom.Options{Sink: o.Sink})
	if err != nil {
		return err
	}
	for i, image := range p.Images {
		one := *list
		one.Images = nil
		for _, packages := range list.Images {
			if packages.Image == image.Ref.String() {
				one.Images = append(one.Images, packages)
			}
		}
		name := sbomFile(image.Ref)
		if len(one.Images) == 0 || p.has(name) { // an artifact has no packages
			continue
		}
		document, err := compressSPDX(&sbom.Document{PackageList: &one, Tool: o.SBOM})
		if err != nil {
			return err
		}
		p.addData(name, document)
		p.Images[i], err = oci.Attach(image, oci.Artifact{
			Type: spdxType, Layers: []oci.Blob{oci.BytesBlob(spdxCompressedType, document)},
			Annotations: map[string]string{titleAnnotation: image.Ref.Name + "-" + image.Ref.Tag + ".spdx.json.gz"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the archive has a file of this name already.
func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.files, func(f iso.File) bool { return f.Path == name })
}

// compressSPDX returns a document as SPDX, with an empty gzip header: the same bytes for the same packages.
func compressSPDX(document *sbom.Document) ([]byte, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err = document.SPDX(w); err != nil {
		return nil, err
	}
	err = w.Close()
	return slices.Clip(compressed.Bytes()), err
}
