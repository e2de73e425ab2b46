package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EnvironmentConfiguration is the desired content of an environment. 'solutionctl deploy apply' applies it.
type EnvironmentConfiguration struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Spec       EnvironmentContents `json:"spec"`
}

// EnvironmentContents are the Solutions that an environment is to have.
type EnvironmentContents struct {
	Name      string              `json:"name"`
	Solutions []SolutionSelection `json:"solutions"`
}

// SolutionSelection is a Solution as an environment is to have it. What is empty stays as it was there.
type SolutionSelection struct {
	Name string `json:"name"`
	// Version is an imported one; the active one where it is empty.
	Version    string                   `json:"version,omitempty"`
	Profiles   []string                 `json:"profiles,omitempty"`
	Components map[string]ComponentWish `json:"components,omitempty"`
	// Values are the values of charts, by component.
	Values map[string]map[string]any `json:"values,omitempty"`
	// ValuesFrom are values that are secret, by component. They override Values.
	ValuesFrom map[string]ValuesSource `json:"valuesFrom,omitempty"`
	Accept     Acceptance              `json:"accept,omitzero"`
}

// ComponentWish selects or deselects a component. In documents it is true, false or the word default.
type ComponentWish string

// The wishes.
const (
	ComponentWanted   ComponentWish = "true"
	ComponentUnwanted ComponentWish = "false"
	ComponentDefault  ComponentWish = "default" // back to the vendor's default
)

// MarshalJSON writes true, false or "default".
func (w ComponentWish) MarshalJSON() ([]byte, error) {
	if w == ComponentWanted || w == ComponentUnwanted {
		return []byte(w), nil
	}
	return json.Marshal(string(w))
}

// UnmarshalJSON reads true, false or "default".
func (w *ComponentWish) UnmarshalJSON(data []byte) error {
	switch text := ComponentWish(bytes.Trim(data, `"`)); {
	case text == ComponentDefault && data[0] == '"', string(data) == string(text) && (text == ComponentWanted || text == ComponentUnwanted):
		*w = text
		return nil
	default:
		return fmt.Errorf("%s is not true, false or default", data)
	}
}

// ValuesSource names the Secret that contains confidential values.
type ValuesSource struct {
	// Secret is one of namespace solutionctl-system, with YAML below the key values.yaml.
	Secret string `json:"secret"`
}

// Acceptance lists the risks that the user accepts.
type Acceptance struct {
	ClusterWide bool     `json:"clusterWide,omitempty"` // that operators have their ClusterRoles in all namespaces
	Hazards     []string `json:"hazards,omitempty"`     // reasons for which roles are refused
	// Powers lists the accepted powers in the form of --allow: NAME, or NAME:KIND/[NAMESPACE/]NAME. These accept every
	// version; with @sha256:DIGEST at the end, as refusals print it, only powers with the same effects.
	Powers []string `json:"powers,omitempty"`
}
