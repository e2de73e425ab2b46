package schema

import (
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// App is one instance of an application: a custom resource of a Solution in an environment. `solutionctl deploy app get`,
// `create`, `set` and `scale` print one.
type App struct {
	Environment string    `json:"environment"`
	Namespace   string    `json:"namespace"`
	Solution    string    `json:"solution"`
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Name        string    `json:"name"`
	Health      AppHealth `json:"health"`
	Created     time.Time `json:"created"`
	// Reasons say what is in the way, one sentence each.
	Reasons []string `json:"reasons"`
	// Values are the spec; absent in lists.
	Values map[string]any `json:"values,omitempty"`
	// Objects lists the objects of the instance, each followed by the objects that it owns; absent in lists.
	Objects []AppObject `json:"objects,omitempty"`
	// Events lists the Kubernetes events of the instance and its objects, the newest first; absent unless requested.
	Events []ObjectEvent `json:"events,omitzero"`
}

// AppHealth is the condition of an instance.
type AppHealth string

// The healths of instances.
const (
	AppReady       AppHealth = "ready"
	AppProgressing AppHealth = "progressing"
	AppFailed      AppHealth = "failed"
	AppDeleting    AppHealth = "deleting"
)

// AppObject is an object that an instance owns, directly or through another one.
type AppObject struct {
	ObjectRef
	// Depth is 1 for what the instance owns itself, 2 for what such an object owns, and so on.
	Depth  int       `json:"depth" schema:"minimum=1"`
	Health AppHealth `json:"health"`
	Reason string    `json:"reason,omitempty"`
}

// AppList holds the instances of an environment. `solutionctl deploy app list` prints it.
type AppList struct {
	Apps []App `json:"apps"`
	// Notices name the custom resources of Solutions that were removed, one sentence each. No operator serves them.
	Notices []string `json:"notices,omitempty"`
}

// AppForm holds the fields of an instance that a user may fill in. `solutionctl deploy app fields` prints it.
type AppForm struct {
	Solution   string     `json:"solution"`
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Fields     []AppField `json:"fields"`
}

// AppField is one field of an [AppForm], or a value of a chart.
type AppField struct {
	Path        string   `json:"path"` // below spec: "storage.size"
	Type        string   `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Default     string   `json:"default,omitempty"` // JSON
	Choices     []string `json:"choices,omitempty"`
	Limits      string   `json:"limits,omitempty"` // in words
	Description string   `json:"description,omitempty"`

	// Details are the whole description, where that is only its first sentence.
	Details string `json:"details,omitempty"`
	// Min and Max bound a number, both included.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// MinLength and MaxLength bound the characters of a text, or the items of a list.
	MinLength *int64 `json:"minLength,omitempty"`
	MaxLength *int64 `json:"maxLength,omitempty"`
	// Pattern is a regular expression that a text matches somewhere.
	Pattern string `json:"pattern,omitempty"`
	// Format is that of a text, such as date-time, as JSON Schema calls it.
	Format string `json:"format,omitempty"`
	// Secret is true when the value must not be shown on a screen.
	Secret bool `json:"secret,omitempty"`
	// Items is any item of a list, or any value of a map; it has no path.
	Items *AppField `json:"items,omitempty"`
	// Fields lists the fields of an item that is an object; their paths are relative to the item.
	Fields []AppField `json:"fields,omitempty"`
}

// Describe sets the description to the first sentence of a text, and the details to all of it, where that is more. Line breaks mean nothing.
func (f *AppField) Describe(text string) {
	text = strings.Join(strings.Fields(text), " ")
	f.Description, f.Details = text, ""
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		f.Description, f.Details = text[:end[1]-2], text
	}
}

// sentenceEnd matches the end of a word, a point, and the begin of the next sentence: "e.g. " is not an end.
var sentenceEnd = lazyregexp.New(`[[:word:])"']{2}\. [[:upper:]("']`)

// IsSecretPath reports whether the path of a field ends with the name of a password, and not with that of a Secret.
func IsSecretPath(path string) bool { return secretName.MatchString(path) }

var secretName = lazyregexp.New(`(?i)(^|\.)([a-z]*password|passphrase|token|api_?key|private_?key|secret_?key)$`)
