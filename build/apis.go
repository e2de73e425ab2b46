package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// apiKinds are the kinds of objects that add to the API of a cluster.
var apiKinds = []string{"CustomResourceDefinition", "APIService"}

// checkAPIs refuses CRDs and APIServices in groups of the API server itself: no approval allows them, so that every host refuses to import
// the archive. Files that cannot be read as manifests are left to lint.
func (p *Plan) checkAPIs(ctx context.Context) error {
	objects := p.chartAPIs
	for _, file := range p.files {
		if !isManifest(file.Path) || file.Size > schema.MaxSize {
			continue
		}
		found, err := p.apisIn(ctx, file)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	for _, power := range powers.Judge(powers.Owner{Solution: p.Solution.Metadata.Name}, objects) {
		if power.Need == schema.NeedRefused && power.Name == schema.PowerDefinesForeignAPIs {
			return report.Errorf(report.Invalid, "%s: %s %s can %s, which no approval allows", power.File, power.Object.Kind, power.Object.Name, power.Why).
				WithHint("use a group of your own")
		}
	}
	return nil
}

// isManifest reports whether a file of the archive has objects for a cluster.
func isManifest(name string) bool {
	top, _, below := strings.Cut(name, "/")
	return below && slices.Contains([]string{"operator", "operators", "ui", "components"}, top) &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// apisIn returns the objects of a manifest, and of lists in it, that extend the API of a cluster.
func (p *Plan) apisIn(ctx context.Context, file iso.File) ([]powers.Object, error) {
	r, err := p.content[file.Key].Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, file.Size))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(apiKinds, func(kind string) bool { return bytes.Contains(data, []byte(kind)) }) {
		return nil, nil
	}
	documents, err := schema.ParseKubernetes(file.Path, data)
	if err != nil {
		return nil, nil //nolint:nilerr // lint reports it
	}
	var objects []powers.Object
	for _, document := range documents {
		if value, ok := document.Value().(map[string]any); ok {
			objects = appendAPI(objects, file.Path, value)
		}
	}
	return objects, nil
}

// apisOf returns the CRDs of a chart.
func apisOf(file string, c *chart.Chart) []powers.Object {
	manifests, err := c.CRDs()
	if err != nil {
		return nil // lint reports it
	}
	var objects []powers.Object
	for _, m := range manifests {
		objects = appendAPI(objects, file, m.Object)
	}
	return objects
}

func appendAPI(objects []powers.Object, file string, value map[string]any) []powers.Object {
	object := &unstructured.Unstructured{Object: value}
	if slices.Contains(apiKinds, strings.TrimSuffix(object.GetKind(), "List")) || object.GetKind() == "List" {
		objects = append(objects, powers.Object{File: file, Unstructured: object})
	}
	return objects
}
