package schema

import (
	"slices"
	"strings"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ClusterName is the name that people have for a cluster, so that they do not take one for another. `solutionctl deploy cluster name` prints it.
type ClusterName struct {
	Name string `json:"name" schema:"minLength=1 maxLength=40"`
	// Colour marks the name in the console: one of [ClusterColours].
	Colour string `json:"colour" schema:"enum=blue|green|amber|red|violet|grey"`
}

// ClusterColours are the colours of names. Text on each has enough contrast, light and dark.
func ClusterColours() []string { return []string{"blue", "green", "amber", "red", "violet", "grey"} }

// maxClusterName bounds a name, in characters.
const maxClusterName = 40

// NewClusterName returns a checked name.
func NewClusterName(name, colour string) (*ClusterName, error) {
	name = strings.TrimSpace(name)
	if name == "" || len([]rune(name)) > maxClusterName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, report.Errorf(report.Usage, "the name %q of a cluster must have 1 to %d characters, in one line", name, maxClusterName)
	}
	if !slices.Contains(ClusterColours(), colour) {
		return nil, report.Errorf(report.Usage, "the colour %q must be one of %s", colour, strings.Join(ClusterColours(), ", "))
	}
	return &ClusterName{Name: name, Colour: colour}, nil
}

// String returns the name with its colour.
func (n *ClusterName) String() string { return n.Name + " (" + n.Colour + ")" }

// StoredClusterName is the name of a cluster as it is stored in the ConfigMap solutionctl-system/clustername, key clustername.json.
type StoredClusterName struct {
	Stamp
	ClusterName
}
