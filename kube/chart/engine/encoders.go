package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
)

// Costs of encoders and decoders for each byte of a text, and for each value: memory in bytes, work in nanoseconds.
const (
	jsonMemory, jsonValueMemory, jsonWork, jsonValueWork = 8, 48, 20, 300
	yamlMemory, yamlValueMemory, yamlWork, yamlValueWork = 10, 400, 100, 4000

	yamlTextWork = 20_000 // of decoding a text besides
)

// encoders are the functions that encode and decode. A value that cannot be encoded is "" in YAML and JSON, and the
// error in TOML. A text that cannot be decoded is a table whose "Error" is the reason, or a list of it alone.
func (b *budget) encoders() template.FuncMap {
	table := template.FuncMap{
		"toToml": func(value any) (string, error) {
			text, err := b.encode("toToml", encodeTOML, value)
			if _, ok := errors.AsType[excess](err); ok || err == nil {
				return text, err
			}
			return err.Error(), nil
		},
		"mustToToml": func(value any) (string, error) { return b.encode("mustToToml", encodeTOML, value) },
	}
	for name, encode := range map[string]func(any) (string, error){
		"Yaml": encodeYAML, "Json": encodeJSON, "PrettyJson": encodePrettyJSON, "RawJson": encodeRawJSON,
	} {
		table["mustTo"+name] = func(value any) (string, error) { return b.encode("mustTo"+name, encode, value) }
		table["to"+name] = b.lenient("to"+name, encode)
	}
	table["toYamlPretty"] = b.lenient("toYamlPretty", encodeYAMLPretty)
	table["toRawJson"] = table["mustToRawJson"]
	for name, decode := range map[string]func([]byte, any) error{"Yaml": unmarshalYAML, "Json": json.Unmarshal, "Toml": toml.Unmarshal} {
		table["from"+name] = func(text string) (map[string]any, error) { return b.table("from"+name, text, decode) }
	}
	table["fromYamlArray"] = func(text string) ([]any, error) { return b.array("fromYamlArray", text, unmarshalYAML) }
	table["fromJsonArray"] = func(text string) ([]any, error) { return b.array("fromJsonArray", text, json.Unmarshal) }
	table["mustFromJson"] = func(text string) (value any, err error) {
		err = b.decode("mustFromJson", text, func(data []byte) (any, error) {
			failure := json.Unmarshal(data, &value)
			return value, failure
		})
		return value, err
	}
	return table
}

// errEndless is the error of encoding/json for a value that contains itself.
var errEndless = errors.New("json: unsupported value: encountered a cycle")

func (b *budget) lenient(name string, encode func(any) (string, error)) any {
	return func(value any) (string, error) {
		text, err := b.encode(name, encode, value)
		if _, ok := errors.AsType[excess](err); ok || err == nil {
			return text, err
		}
		return "", nil
	}
}

func (b *budget) encode(name string, encode func(any) (string, error), value any) (string, error) {
	s := measure(value, maxText)
	if s.deep && strings.HasSuffix(name, "Yaml") || s.deep && strings.Contains(name, "Json") {
		if endless(value) {
			return "", errEndless
		}
	}
	err := b.judge(name, &s)
	if err != nil {
		return "", err
	}
	memory, work := jsonMemory*s.bytes+jsonValueMemory*s.values, jsonWork*s.bytes+jsonValueWork*s.values
	if !strings.Contains(name, "Json") {
		memory, work = yamlMemory*s.bytes+yamlValueMemory*s.values, yamlWork*s.bytes+yamlValueWork*s.values
	}
	if err = b.spend(work); err != nil {
		return "", err
	}
	release, err := b.reserve(memory)
	if err != nil {
		return "", err
	}
	defer release()
	text, err := encode(value)
	if err != nil {
		return "", err
	}
	return text, b.keepText(text)
}

func encodeYAML(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(data), "\n"), err
}

func encodeYAMLPretty(value any) (string, error) {
	var text bytes.Buffer
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func encodeJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

func encodePrettyJSON(value any) (string, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	return string(data), err
}

func encodeRawJSON(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(&value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func encodeTOML(value any) (string, error) {
	var text strings.Builder
	err := toml.NewEncoder(&text).Encode(value)
	return text.String(), err
}

func unmarshalYAML(data []byte, into any) error {
	if err := schema.CheckYAML("text", data); err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

// decode decodes a text within the budget, and counts its values.
func (b *budget) decode(name, text string, decode func([]byte) (any, error)) error {
	n, values := int64(len(text)), int64(0)
	memory, work := int64(jsonMemory), int64(jsonWork)
	if strings.Contains(name, "Json") {
		values = jsonValues(text)
		memory, work = n*memory/4+values*jsonValueMemory, n*work+values*jsonValueWork
	} else {
		marks, _, err := schema.SizeYAML("text", []byte(text))
		if err != nil { // it has this form as well
			marks = len(text)
		}
		values = int64(marks)
		memory, work = n*yamlMemory/4+values*yamlValueMemory, yamlTextWork+n*yamlWork+values*yamlValueWork
	}
	if err := b.spend(callCost + work); err != nil {
		return err
	}
	release, err := b.reserve(memory)
	if err != nil {
		return err
	}
	defer release()
	value, err := decode([]byte(text))
	if err != nil {
		return err
	}
	s := measure(value, maxSmall)
	return b.keepSmall(s.bytes + s.values*entrySize)
}

// jsonValues is how many values JSON has at most.
func jsonValues(text string) (count int64) {
	for i := range len(text) {
		switch text[i] {
		case ',', ':', '[', '{':
			count++
		}
	}
	return count
}

func (b *budget) table(name, text string, decode func([]byte, any) error) (map[string]any, error) {
	values := map[string]any{}
	err := b.decode(name, text, func(data []byte) (any, error) {
		if err := decode(data, &values); err != nil {
			values["Error"] = err.Error()
		}
		return values, nil
	})
	return values, err
}

func (b *budget) array(name, text string, decode func([]byte, any) error) ([]any, error) {
	values := []any{}
	err := b.decode(name, text, func(data []byte) (any, error) {
		if err := decode(data, &values); err != nil {
			values = []any{err.Error()}
		}
		return values, nil
	})
	return values, err
}
