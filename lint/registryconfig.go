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
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// location is one location of registry-config.inc.j2.
type location struct {
	key  string // modifier and path, without quotes
	body string // in words separated by one space
	line int
}

// readLocations takes a registry configuration apart: locations, one after the other, with comments between them.
func readLocations(text string) (list []location, strays []location) {
	var current *location
	for i, line := range strings.Split(text, "\n") {
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "" || strings.HasPrefix(words, "#"):
		case current != nil && words == "}":
			list = append(list, *current)
			current = nil
		case current != nil:
			current.body += words + " "
		case strings.HasPrefix(words, "location ") && strings.HasSuffix(words, "{"):
			key := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(words, "location "), "{"))
			current = &location{key: strings.ReplaceAll(key, `"`, ""), line: i + 1}
		default:
			strays = append(strays, location{key: words, line: i + 1})
		}
	}
	if current != nil {
		strays = append(strays, *current)
	}
	return list, strays
}

// templateText matches text that Jinja would interpret.
var templateText = lazyregexp.New(`\{\{[^}]*\}\}|\{%|\{#`)

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
	for i, line := range strings.Split(text, "\n") {
		for _, match := range templateText.FindAllStringIndex(line, -1) {
			found := line[match[0]:match[1]]
			switch strings.TrimSpace(strings.Trim(found, "{}")) {
			case "repository", "registry_root":
			default:
				r.Report(target.Place{File: registryConfigFile, Line: i + 1, Column: match[0] + 1},
					"use {{ repository }} and {{ registry_root }} only", "MetalK8s does not fill in %s", shorten(found))
			}
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
			r.Report(at, "keep one of them", "location %s is there already; nginx refuses the configuration", l.key)
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
