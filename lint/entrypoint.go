package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

func checkOperatorImage(_ context.Context, t *subject, r *reporter) {
	if !t.ImagesKnown() {
		return
	}
	for _, o := range t.operators() {
		if t.image(o.image).Ref == o.image {
			continue
		}
		whose, setting := "the operator's image", operatorImageField
		if o.of != nil {
			whose, setting = "the image of component "+o.name+",", "image of the component"
		}
		r.Report(t.ManifestPlace(o.setting...), "name one of the archive's images in "+setting, "%s %s is not in the archive", whose, o.image)
	}
}

func checkEntryPoint(ctx context.Context, t *subject, r *reporter) {
	for _, o := range t.operators() {
		image := t.image(o.image)
		if image.Content == nil {
			continue
		}
		for _, variant := range variants(ctx, image.Content) {
			if o.of != nil {
				reportComponentImage(r, t.imagePlace(image.Ref), variant, o.name)
			} else {
				t.reportOperatorImage(ctx, r, t.imagePlace(image.Ref), variant)
			}
		}
	}
}

func reportComponentImage(r *reporter, at target.Place, v variant, component string) {
	switch {
	case len(v.layers) == 0:
		r.Report(at, replacePlaceholder, "%s: the image of component %s has %s", v.platform(), component, noContent)
	case strings.Join(v.config.Config.Entrypoint, "") == "":
		r.Report(at, "give it an ENTRYPOINT", "%s: the image of component %s has no entry point", v.platform(), component)
	}
}

func (t *subject) reportOperatorImage(ctx context.Context, r *reporter, at target.Place, v variant) {
	hint := fmt.Sprintf("put the executable %s into a directory of PATH", t.operatorName())
	found, severity := "", report.SeverityWarning
	if t.deep {
		severity = report.SeverityError
	}
	switch {
	case len(v.layers) == 0:
		hint, found = replacePlaceholder, "its image has "+noContent
	case t.deep:
		found = v.search(ctx, t.operatorName())
	default:
		found = v.judgeConfig(t.operatorName())
	}
	if found != "" {
		r.ReportAs(severity, at, hint, "%s: the operator cannot start: %s", v.platform(), found)
	}
}

// Faults of an image that has not been built yet.
const (
	noContent          = "no layers, like the placeholder that 'solutionctl init' makes"
	replacePlaceholder = "build the image, and name it as the source in solution.yaml: docker-archive:FILE, docker-daemon:NAME:TAG or docker://NAME:TAG"
)

// variant is an image for one platform.
type variant struct {
	config imageConfig
	layers []oci.Blob
}

// imageConfig is the part of an image's configuration that starts it.
type imageConfig struct {
	OS, Architecture string
	Config           struct{ Entrypoint, Cmd, Env []string }
}

// maxConfig is far above the size of any configuration.
const maxConfig = 4 << 20

// variants reads the configurations of an image. Manifests without one (attestations, artifacts) are left out, and so
// are unreadable ones: the rules on archives report them.
func variants(ctx context.Context, image *oci.Image) []variant {
	blobs := map[string]oci.Blob{}
	for _, blob := range image.Blobs {
		blobs[blob.Digest.String()] = blob
	}
	var all []variant
	for _, manifest := range image.Manifests {
		var m struct {
			Config struct{ Digest string }
			Layers []struct{ Digest string }
		}
		if json.Unmarshal(manifest.Data, &m) != nil {
			continue
		}
		var v variant
		config, ok := blobs[m.Config.Digest]
		if !ok || !readJSON(ctx, config, &v.config) || v.config.OS == "" || v.config.OS == "unknown" {
			continue
		}
		for _, layer := range m.Layers {
			v.layers = append(v.layers, blobs[layer.Digest])
		}
		all = append(all, v)
	}
	return all
}

func readJSON(ctx context.Context, blob oci.Blob, target any) bool {
	content, err := blob.Open(ctx, 0)
	if err != nil {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(content, maxConfig))
	return content.Close() == nil && err == nil && json.Unmarshal(data, target) == nil
}

func (v variant) platform() string { return v.config.OS + "/" + v.config.Architecture }

// searchPath lists the directories in which the container runtime looks for an executable.
func (v variant) searchPath() []string {
	for _, variable := range v.config.Config.Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			return strings.Split(value, ":")
		}
	}
	return strings.Split("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ":") // the default of runtimes
}

// judgeConfig returns the reason why the executable is probably not found, "" without one.
func (v variant) judgeConfig(name string) string {
	command := slices.Concat(v.config.Config.Entrypoint, v.config.Config.Cmd)
	switch {
	case len(command) == 0 || v.mentions(name):
		return ""
	case path.Base(command[0]) != name:
		return fmt.Sprintf("its Deployment starts %s, and the image was made to start %s", name, command[0])
	case path.IsAbs(command[0]) && !v.inSearchPath(command[0]):
		return fmt.Sprintf("its Deployment looks for %s in PATH, %s, and the image has it in %s", name, shorten(strings.Join(v.searchPath(), ":")), path.Dir(command[0]))
	}
	return ""
}

// mentions reports whether a variable holds the path of the executable: in images of the Operator SDK, OPERATOR does,
// and the entry point is a script.
func (v variant) mentions(name string) bool {
	return slices.ContainsFunc(v.config.Config.Env, func(variable string) bool {
		_, value, _ := strings.Cut(variable, "=")
		return path.IsAbs(value) && path.Base(value) == name && v.inSearchPath(value)
	})
}

func (v variant) inSearchPath(executable string) bool {
	return slices.ContainsFunc(v.searchPath(), func(dir string) bool { return path.Clean(dir) == path.Dir(executable) })
}
