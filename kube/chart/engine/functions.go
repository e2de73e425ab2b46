package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// functions are those of sprig but for what reads the environment and the network, and Helm's own. Those that belong to a
// rendering come on top, see [renderer.bind].
func functions() template.FuncMap {
	table := sprig.TxtFuncMap()
	delete(table, "env")
	delete(table, "expandenv")
	maps.Copy(table, template.FuncMap{
		"toYaml": toYAML, "mustToYaml": encodeYAML, "toYamlPretty": toYAMLPretty, "fromYaml": fromYAML, "fromYamlArray": fromYAMLArray,
		"toJson": toJSON, "mustToJson": encodeJSON, "fromJson": fromJSON, "fromJsonArray": fromJSONArray,
		"toToml": toTOML, "mustToToml": encodeTOML, "fromToml": fromTOML,
		"keys": keys, "values": values,
		"required": required, "fail": func(message string) (string, error) { return "", refusal(message) },
		"lookup":        func(_, _, _, _ string) map[string]any { return map[string]any{} },
		"getHostByName": func(string) string { return "" },
	})
	return table
}

// keys and values return what is in tables in the order of the keys; sprig's order varies.

func keys(tables ...map[string]any) []string {
	names := []string{}
	for _, t := range tables {
		names = append(names, slices.Sorted(maps.Keys(t))...)
	}
	return names
}

func values(table map[string]any) []any {
	list := []any{}
	for _, key := range keys(table) {
		list = append(list, table[key])
	}
	return list
}

// refusal is what a chart says to whom it does not let pass.
type refusal string

func (r refusal) Error() string { return string(r) }

// required refuses values that are missing or the empty text.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, refusal(message)
	}
	return value, nil
}

func encodeYAML(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(data), "\n"), err
}

func encodeJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

func encodeTOML(value any) (string, error) {
	var text strings.Builder
	err := toml.NewEncoder(&text).Encode(value)
	return text.String(), err
}

// What cannot be encoded is nothing, in YAML and JSON, and in TOML the error.

func toYAML(value any) string {
	text, err := encodeYAML(value)
	if err != nil {
		return ""
	}
	return text
}

func toYAMLPretty(value any) string {
	var text bytes.Buffer
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if encoder.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func toJSON(value any) string {
	text, err := encodeJSON(value)
	if err != nil {
		return ""
	}
	return text
}

func toTOML(value any) string {
	text, err := encodeTOML(value)
	if err != nil {
		return err.Error()
	}
	return text
}

// What cannot be decoded is a table whose "Error" is the reason, or a list of it alone.

func fromYAML(text string) map[string]any       { return table(text, unmarshalYAML) }
func fromJSON(text string) map[string]any       { return table(text, json.Unmarshal) }
func fromTOML(text string) map[string]any       { return table(text, toml.Unmarshal) }
func fromYAMLArray(text string) []any           { return array(text, unmarshalYAML) }
func fromJSONArray(text string) []any           { return array(text, json.Unmarshal) }
func unmarshalYAML(data []byte, into any) error { return yaml.Unmarshal(data, into) }

func table(text string, decode func([]byte, any) error) map[string]any {
	values := map[string]any{}
	if err := decode([]byte(text), &values); err != nil {
		values["Error"] = err.Error()
	}
	return values
}

func array(text string, decode func([]byte, any) error) []any {
	values := []any{}
	if err := decode([]byte(text), &values); err != nil {
		return []any{err.Error()}
	}
	return values
}
