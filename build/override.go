package build

import (
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Overrides change a solution.yaml from outside, for continuous integration. The result is judged as if it had been
// written so.
type Overrides struct {
	Version   string
	Platforms []string
	Images    []string // NAME:TAG=SOURCE or NAME=SOURCE; changes the image of that name and tag, or adds it
	Set       []string // PATH=VALUE, such as spec.images[0].source=oci:images; VALUE is YAML
}

func parseBuild(file string, data []byte, overrides Overrides) (*schema.SolutionBuild, error) {
	settings, err := overrides.settings()
	if err != nil {
		return nil, err
	}
	build, err := schema.ParseSolutionBuild(file, data, settings...)
	if err != nil || len(overrides.Images) == 0 {
		return build, err
	}
	for _, assignment := range overrides.Images {
		image, err := imageSettings(&build.Spec, assignment)
		if err != nil {
			return nil, err
		}
		settings = append(settings, image...)
		if build, err = schema.ParseSolutionBuild(file, data, settings...); err != nil {
			return nil, err
		}
	}
	return build, nil
}

// settings are the overrides that name their field themselves.
func (o Overrides) settings() ([]schema.Setting, error) {
	var settings []schema.Setting
	if o.Version != "" {
		settings = append(settings, schema.Setting{Path: []string{"spec", "version"}, Value: o.Version, Source: "--version"})
	}
	if len(o.Platforms) > 0 {
		settings = append(settings, schema.Setting{
			Path: []string{"spec", "platforms"}, Value: "[" + strings.Join(o.Platforms, ", ") + "]", Source: "--platform",
		})
	}
	for _, text := range o.Set {
		setting, err := schema.ParseSetting("--set", text)
		if err != nil {
			return nil, err
		}
		settings = append(settings, setting)
	}
	return settings, nil
}

// imageSettings sets the source of one image of the project, or appends an image.
func imageSettings(spec *schema.BuildSpec, assignment string) ([]schema.Setting, error) {
	name, source, found := strings.Cut(assignment, "=")
	if !found || name == "" || source == "" {
		return nil, report.Errorf(report.Usage, "image %q is not NAME:TAG=SOURCE", assignment).
			WithHint("for example --image ui:1.0.0=oci-archive:ui.tar")
	}
	name, tag, _ := strings.Cut(name, ":")
	ref := spec.ImageRef(schema.BuildImage{Name: name, Tag: tag})
	index := 0
	for index < len(spec.Images) && spec.ImageRef(spec.Images[index]) != ref {
		index++
	}
	set := func(field, value string) schema.Setting {
		return schema.Setting{Path: []string{"spec", "images", strconv.Itoa(index), field}, Value: value, Source: "--image"}
	}
	if index < len(spec.Images) {
		return []schema.Setting{set("source", source)}, nil
	}
	settings := []schema.Setting{set("name", name), set("source", source)}
	if tag != "" {
		settings = append(settings, set("tag", tag))
	}
	return settings, nil
}
