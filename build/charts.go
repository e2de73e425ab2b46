package build

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// charts are the artifacts of the charts that were added so far.
func (p *Plan) charts(ctx context.Context) ([]*oci.Image, error) {
	var charts []*oci.Image
	files := map[schema.ImageRef]string{}
	for _, file := range p.files {
		if dir, base := path.Split(file.Path); dir != "charts/" || path.Ext(base) != ".tgz" {
			continue
		}
		image, err := p.chart(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Path, err)
		}
		if other := files[image.Ref]; other != "" {
			return nil, report.Errorf(report.Invalid, "%s and %s are one chart in one version", other, file.Path).WithHint("remove one of the two files")
		}
		files[image.Ref] = file.Path
		charts = append(charts, image)
	}
	return charts, nil
}

// chart is the artifact of a chart, over the bytes of its file.
func (p *Plan) chart(ctx context.Context, file iso.File) (*oci.Image, error) {
	content := p.content[file.Key].Blob
	r, err := content.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	loaded, err := chart.Load(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if err = loaded.CheckFile(file.Path); err != nil {
		return nil, err
	}
	p.chartAPIs = append(p.chartAPIs, apisOf(file.Path, loaded)...)
	artifact := oci.Chart{Name: loaded.Name, Version: loaded.Version, Content: content, Provenance: p.provenance(file.Path)}
	if artifact.Config, err = loaded.Metadata(); err != nil {
		return nil, err
	}
	return oci.ChartImage(artifact)
}

// provenance is the file beside a chart by which Helm verifies it, nil when there is none.
func (p *Plan) provenance(chart string) *oci.Blob {
	file, ok := p.file(chart + ".prov")
	if !ok {
		return nil
	}
	blob := p.content[file.Key].Blob
	return &blob
}
