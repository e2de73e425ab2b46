package build

import (
	"bytes"
	"compress/gzip"
	"context"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema"
)

// spdxType is the type of a bill of materials in a registry, and of its only layer. The layer is not compressed, unlike the file in the archive:
// scanners that find it by its image read it as it is.
const spdxType = "application/spdx+json"

const titleAnnotation = "org.opencontainers.image.title"

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
		if _, has := p.file(name); has || len(one.Images) == 0 { // an artifact has no packages
			continue
		}
		var document bytes.Buffer
		if err = (&sbom.Document{PackageList: &one, Tool: o.SBOM}).SPDX(&document); err != nil {
			return err
		}
		compressed, err := compress(document.Bytes())
		if err != nil {
			return err
		}
		p.addData(name, compressed)
		layer := oci.BytesBlob(spdxType, document.Bytes())
		layer.Annotations = map[string]string{titleAnnotation: image.Ref.Name + "-" + image.Ref.Tag + ".spdx.json"}
		p.Images[i], err = oci.Attach(image, oci.Artifact{Type: spdxType, Layers: []oci.Blob{layer}})
		if err != nil {
			return err
		}
	}
	return nil
}

// attachStatements attaches the OpenVEX documents of the archive to the images that they are about, so that registries serve them.
func (p *Plan) attachStatements(statements *sbom.Statements) (err error) {
	for i, image := range p.Images {
		for _, name := range statements.Files(image.Ref.String()) {
			file, ok := p.file(name)
			if !ok || len(image.Platforms()) == 0 { // an artifact has no packages
				continue
			}
			layer := p.content[file.Key].Blob
			layer.MediaType, layer.Annotations = sbom.StatementType, map[string]string{titleAnnotation: path.Base(name)}
			if p.Images[i], err = oci.Attach(p.Images[i], oci.Artifact{Type: sbom.StatementType, Layers: []oci.Blob{layer}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// compress returns the data with an empty gzip header: the same bytes for the same data.
func compress(data []byte) ([]byte, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return nil, err
	}
	err = w.Close()
	return slices.Clip(compressed.Bytes()), err
}
