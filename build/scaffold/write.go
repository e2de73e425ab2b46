package scaffold

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// maxVolumeID bounds the volume identifier of an image.
const maxVolumeID = 32

// solution writes solution.yaml: an image is a line.
func (b *builder) solution(images []schema.BuildImage) []byte {
	var text bytes.Buffer
	text.WriteString("# What the archive of this Solution is built from. Every field: solutionctl schema SolutionBuild\n")
	fmt.Fprintf(&text, "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata:\n  name: %s\nspec:\n  version: %s\n",
		scalar(b.options.Solution), b.project.Version)
	if name := b.options.Solution; len(name)+len(" ")+len(b.project.Version) > maxVolumeID { // the default name of a volume
		fmt.Fprintf(&text, "  volumeID: %s\n", scalar(strings.Trim(name[:min(len(name), maxVolumeID)], "-")))
	}
	text.WriteString("  images:\n")
	for _, image := range images {
		text.WriteString("    - " + imageLine(image) + "\n")
	}
	if len(b.apiGroups) > 0 {
		fmt.Fprintf(&text, "  customApiGroups: [%s]\n", inline(sortedKeys(b.apiGroups)))
	}
	if b.oldest < len(b.releases)-1 {
		fmt.Fprintf(&text, "  kubernetesVersion: %q\n", ">="+b.releases[b.oldest].Version())
	}
	if len(b.components) == 0 {
		return text.Bytes()
	}
	text.WriteString("  components:\n")
	for _, c := range b.components {
		writeComponent(&text, c)
	}
	return text.Bytes()
}

func writeComponent(text *bytes.Buffer, c schema.Component) {
	kind, source := c.Source()
	fmt.Fprintf(text, "    - name: %s\n      %s: %s\n", scalar(c.Name), kind, scalar(source))
	for _, f := range []struct{ name, value string }{{"values", c.Values}, {"scope", string(c.Scope)}, {"namespace", c.Namespace}} {
		if f.value != "" {
			fmt.Fprintf(text, "      %s: %s\n", f.name, scalar(f.value))
		}
	}
	if len(c.Namespaces) > 0 {
		fmt.Fprintf(text, "      namespaces: [%s]\n", inline(c.Namespaces))
	}
	for _, d := range c.DependsOn {
		fmt.Fprintf(text, "      dependsOn: [{component: %s}]\n", scalar(d.Component))
	}
}

func imageLine(i schema.BuildImage) string {
	line := "{name: " + scalar(i.Name)
	if i.Tag != "" {
		line += ", tag: " + strconv.Quote(i.Tag)
	}
	line += ", source: " + strconv.Quote(i.Source)
	if i.Origin != "" {
		line += ", origin: " + strconv.Quote(i.Origin)
	}
	return line + "}"
}

// inline writes a list of texts on one line.
func inline(texts []string) string {
	var list []string
	for _, text := range texts {
		list = append(list, scalar(text))
	}
	return strings.Join(list, ", ")
}

var plainText = lazyregexp.New(`^[A-Za-z][A-Za-z0-9./+-]*$`)

// scalar writes a text, in quotes where it could be read as something else: names in sources are any text.
func scalar(text string) string {
	if data, err := yaml.Marshal(text); err == nil && string(data) == text+"\n" && plainText.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
