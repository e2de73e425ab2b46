package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
)

// location is one location of registry-config.inc.j2.
type location struct {
	key  string // modifier and path, without quotes
	body string // in words separated by one space
	line int
}

// readLocations takes a registry configuration apart: locations, one after the other, with comments between them. It ends at a line too many
// that is none of these.
func readLocations(text string) (list []location, strays []location) {
	var current *location
	var body strings.Builder
	at := 0
	for line := range strings.SplitSeq(text, "\n") {
		at++
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "" || strings.HasPrefix(words, "#"):
		case current != nil && words == "}":
			current.body = body.String()
			list = append(list, *current)
			current = nil
			body.Reset()
		case current != nil:
			body.WriteString(words + " ")
		case strings.HasPrefix(words, "location ") && strings.HasSuffix(words, "{"):
			key := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(words, "location "), "{"))
			current = &location{key: strings.ReplaceAll(key, `"`, ""), line: at}
		default:
			strays = append(strays, location{key: words, line: at})
			if len(strays) > maxFindings {
				return list, strays
			}
		}
	}
	if current != nil {
		strays = append(strays, *current)
	}
	return list, strays
}

func checkRegistryConfig(_ context.Context, t *subject, r *reporter) {
	data, err := t.Text(registryConfigFile)
	if errors.Is(err, fs.ErrNotExist) || t.Kind == target.Project {
		return
	}
	if err != nil {
		r.Report(target.InFile(registryConfigFile), "", "the file cannot be read: %v", err)
		return
	}
	checkVariables(r, string(data))
	if !t.ImagesKnown() {
		return
	}
	have, strays := readLocations(string(data))
	for _, stray := range strays {
		r.Report(target.Place{File: registryConfigFile, Line: stray.line}, "build the archive again", "only locations are expected here, got %q", shorten(stray.key))
	}
	compareLocations(r, have, t.contents())
}

func checkVariables(r *reporter, text string) {
	for at, found := range templatesIn(registryConfigFile, text) {
		switch strings.TrimSpace(strings.Trim(found, "{}")) {
		case "repository", "registry_root":
		default:
			r.Report(at, "use {{ repository }} and {{ registry_root }} only", "MetalK8s does not fill in %s", found)
		}
	}
}

// compareLocations compares with the form that has more of the locations as they are.
func compareLocations(r *reporter, have []location, images []*oci.Image) {
	want, err := expectedLocations(images, oci.Extended)
	if err != nil {
		return // the images have names that other rules report
	}
	if legacy, err := expectedLocations(images, oci.Legacy); err == nil && matching(have, legacy) > matching(have, want) {
		want = legacy
	}
	served := map[string]bool{}
	for _, l := range have {
		at := target.Place{File: registryConfigFile, Line: l.line}
		body, known := want[l.key]
		switch {
		case served[l.key]:
			r.Report(at, "keep one of them", "location %s is there already; nginx refuses the configuration", shorten(l.key))
		case !known:
			r.Report(at, "build the archive again", "location %s serves nothing of this archive", shorten(l.key))
		case body != l.body:
			r.Report(at, "build the archive again", "location %s does not serve what the archive has; expected %q", shorten(l.key), shorten(body))
		}
		served[l.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !served[key] {
			r.Report(target.InFile(registryConfigFile), "build the archive again", "location %s is missing", shorten(key))
		}
	}
	for _, image := range images {
		if key := fmt.Sprintf("= /v2/{{ repository }}/%s/manifests/%s", image.Ref.Name, image.Ref.Tag); !served[key] && want[key] == "" {
			r.Report(target.InFile(registryConfigFile), "build the archive with: solutionctl build, which serves every media type",
				"image %s is not served: the legacy form leaves out %s", image.Ref, image.Root.MediaType)
		}
	}
}

func expectedLocations(images []*oci.Image, form string) (map[string]string, error) {
	text, err := oci.RegistryConfig(images, form)
	if err != nil {
		return nil, err
	}
	list, _ := readLocations(string(text))
	bodies := map[string]string{}
	for _, l := range list {
		bodies[l.key] = l.body
	}
	return bodies, nil
}

func matching(have []location, want map[string]string) (n int) {
	for _, l := range have {
		if want[l.key] == l.body {
			n++
		}
	}
	return n
}

// shorten keeps a message on one line of reasonable length.
func shorten(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
