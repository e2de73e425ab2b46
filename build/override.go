package build

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Overrides change a solution.yaml from outside, for continuous integration. The result is judged as if it had been
// written so.
type Overrides struct {
	Version   string
	Platforms []string
	Images    []string // NAME:TAG=SOURCE or NAME=SOURCE; changes the source of an image of the project
	AddImages []string // the same; adds an image
	Set       []string // PATH=VALUE, such as spec.images[0].source=oci:images; VALUE is YAML
}

// parseBuild returns the document and, by position, the sources that flags give its images. A flag has the present
// place of an image, which is not its origin. So such a source is not in the document, whose sources become origins.
func parseBuild(file string, data []byte, overrides Overrides) (*schema.SolutionBuild, map[int]string, error) {
	settings, err := overrides.settings()
	if err != nil {
		return nil, nil, err
	}
	build, err := schema.ParseSolutionBuild(file, data, settings...)
	if err != nil {
		return nil, nil, err
	}
	sources := map[int]string{}
	for _, text := range overrides.Images {
		image, err := parseImage("--image", text, filepath.Dir(file))
		if err != nil {
			return nil, nil, err
		}
		index, err := findImage(&build.Spec, image)
		if err != nil {
			return nil, nil, err
		}
		sources[index] = image.source
	}
	for _, text := range overrides.AddImages {
		image, err := parseImage("--add-image", text, filepath.Dir(file))
		if err != nil {
			return nil, nil, err
		}
		more, err := addImage(&build.Spec, image)
		if err != nil {
			return nil, nil, err
		}
		settings = append(settings, more...)
		sources[len(build.Spec.Images)] = image.source
		if build, err = schema.ParseSolutionBuild(file, data, settings...); err != nil {
			return nil, nil, err
		}
	}
	for i := range sources {
		image := &build.Spec.Images[i]
		added := i >= len(build.Spec.Images)-len(overrides.AddImages)
		if added || oci.FullReference(image.OriginName()) == "" { // for example one with a password, which was not checked
			image.Source = ""
		}
	}
	return build, sources, nil
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

// imageAssignment is NAME[:TAG]=SOURCE.
type imageAssignment struct {
	flag, name, tag, source string
}

// parseImage parses a flag. Paths are relative to the current directory, as the shell completes them.
func parseImage(flag, text, projectDir string) (imageAssignment, error) {
	ref, source, found := strings.Cut(text, "=")
	a := imageAssignment{flag: flag}
	a.name, a.tag, _ = strings.Cut(ref, ":")
	if !found || a.name == "" || source == "" {
		return a, report.Errorf(report.Usage, "image %q is not NAME:TAG=SOURCE", oci.Redact(text)).
			WithHint("for example %s ui:1.0.0=oci-archive:ui.tar", flag)
	}
	var err error
	a.source, err = oci.RelativeSource(source, projectDir)
	return a, err
}

// ref is the reference of the image in a build.
func (a imageAssignment) ref(spec *schema.BuildSpec) schema.ImageRef {
	return spec.ImageRef(schema.BuildImage{Name: a.name, Tag: a.tag})
}

func (a imageAssignment) setting(index int, field, value string) schema.Setting {
	return schema.Setting{Path: []string{"spec", "images", strconv.Itoa(index), field}, Value: value, Source: a.flag}
}

// findImage returns the position of an image of the project. Its tag can be left out where the name is unique.
func findImage(spec *schema.BuildSpec, a imageAssignment) (int, error) {
	refs := spec.ImageRefs()
	if i := slices.Index(refs, a.ref(spec)); i >= 0 {
		return i, nil
	}
	named := func(ref schema.ImageRef) bool { return ref.Name == a.name }
	if i := slices.IndexFunc(refs, named); i >= 0 && a.tag == "" && !slices.ContainsFunc(refs[i+1:], named) {
		return i, nil
	}
	return 0, noSuchImage(a, schema.Strings(refs))
}

func noSuchImage(a imageAssignment, refs []string) error {
	wanted := a.name
	if a.tag != "" {
		wanted += ":" + a.tag
	}
	err := report.Errorf(report.Usage, "--image: the project has no image %s", wanted)
	near, best := "", 4 // more changes than that are another word
	for _, ref := range refs {
		name, _, _ := strings.Cut(ref, ":")
		for _, candidate := range []string{ref, name} {
			if distance := report.EditDistance(wanted, candidate); distance < best {
				near, best = candidate, distance
			}
		}
	}
	if near != "" {
		return err.WithHint("did you mean %s? To add an image, use --add-image", near)
	}
	return err.WithHint("it has %s; to add an image, use --add-image", cmp.Or(strings.Join(refs, ", "), "none"))
}

// addImage appends an image.
func addImage(spec *schema.BuildSpec, a imageAssignment) ([]schema.Setting, error) {
	if ref := a.ref(spec); slices.Contains(spec.ImageRefs(), ref) {
		return nil, report.Errorf(report.Usage, "--add-image: the project has the image %s already", ref).
			WithHint("to take it from another source, use --image")
	}
	index := len(spec.Images)
	settings := []schema.Setting{a.setting(index, "name", a.name), a.setting(index, "source", a.source)}
	if a.tag != "" {
		settings = append(settings, a.setting(index, "tag", a.tag))
	}
	return settings, nil
}
