package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pillar is the part metalk8s:solutions of the pillar by which MetalK8s shows Solutions to Salt.
type Pillar struct {
	// Available are the imported versions of each Solution.
	Available map[string][]ImportedSolution
	// Config is /etc/metalk8s/solutions.yaml; an empty configuration where there is none.
	Config *SolutionsConfiguration
	// Environments are the environments by name.
	Environments map[string]PillarEnvironment
	// Errors lists what could not be read; Salt's states check it and stop.
	Errors PillarErrors
}

// PillarErrors are the sentences that stand under "_errors", below each part and once more above all of them.
type PillarErrors struct{ Available, Config, Environments []string }

// PillarEnvironment is an environment in the pillar.
type PillarEnvironment struct {
	Name string `json:"name"`
	// Description is nil where no namespace of the environment has one.
	Description *string                    `json:"description,omitempty"`
	Namespaces  map[string]PillarNamespace `json:"namespaces"`
}

// PillarNamespace is a namespace of an environment in the pillar.
type PillarNamespace struct {
	// Config is the content of ConfigMap metalk8s-environment, Solution to version; null when it is absent or empty.
	Config map[string]string `json:"config"`
}

// MarshalJSON writes the value of metalk8s:solutions.
func (p *Pillar) MarshalJSON() ([]byte, error) {
	config := NewSolutionsConfiguration()
	if p.Config != nil {
		config.Archives = append(config.Archives, p.Config.allArchives()...)
		maps.Copy(config.Active, p.Config.Active)
	}
	tree := map[string]any{}
	var all []string
	for _, part := range []struct {
		name   string
		value  any
		errors []string
	}{
		{"available", p.Available, p.Errors.Available},
		{"config", config, p.Errors.Config},
		{"environments", p.Environments, p.Errors.Environments},
	} {
		object, err := toObject(part.value)
		if err != nil {
			return nil, fmt.Errorf("pillar: %s: %w", part.name, err)
		}
		if len(part.errors) > 0 {
			object["_errors"] = part.errors
			all = append(all, part.errors...)
		}
		tree[part.name] = object
	}
	if len(all) > 0 {
		tree["_errors"] = all
	}
	return compactJSON(tree)
}

// toObject turns a value into a tree of what JSON has; nil becomes an empty object.
func toObject(value any) (map[string]any, error) {
	data, err := compactJSON(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]any{}
	}
	return object, nil
}

// Marshal writes the pillar as YAML in the way that Salt's external pillar cmd_yaml takes it: from the top, metalk8s.
func (p *Pillar) Marshal() ([]byte, error) {
	object, err := toObject(map[string]any{"metalk8s": map[string]any{"solutions": p}})
	if err != nil {
		return nil, err
	}
	return marshal(object)
}

// encodeNumber writes a number as it stood in JSON, in a form that is a number to every reader of YAML.
func encodeNumber(n json.Number) *yaml.Node {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}
	}
	// Readers of YAML 1.1 want a point in front of the exponent and a sign behind it.
	if mantissa, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		if !strings.HasPrefix(exponent, "-") {
			exponent = "+" + strings.TrimPrefix(exponent, "+")
		}
		text = mantissa + "e" + exponent
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}
}

// encodeInterface writes what stands in a tree of JSON.
func encodeInterface(v reflect.Value) (*yaml.Node, error) {
	if v.IsNil() {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	if n, ok := reflect.TypeAssert[json.Number](v); ok {
		return encodeNumber(n), nil
	}
	return encode(v.Elem())
}
