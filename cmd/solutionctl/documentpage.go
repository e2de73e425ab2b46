package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// jsonSchema is the part of a JSON Schema that a reference page shows.
type jsonSchema struct {
	Title       string                `json:"title"`
	Description string                `json:"description"`
	Type        any                   `json:"type"`
	Ref         string                `json:"$ref"`
	Const       any                   `json:"const"`
	Enum        []any                 `json:"enum"`
	Default     any                   `json:"default"`
	Required    []string              `json:"required"`
	Properties  map[string]jsonSchema `json:"properties"`
	Items       *jsonSchema           `json:"items"`
	Additional  json.RawMessage       `json:"additionalProperties"`
	Defs        map[string]jsonSchema `json:"$defs"`
}

func loadSchema(kind string) *jsonSchema {
	var s jsonSchema
	if err := json.Unmarshal(schema.JSONSchema(kind), &s); err != nil {
		panic(fmt.Sprintf("the schema of %s is not JSON: %v", kind, err)) // it is part of the program
	}
	return &s
}

// documentTitle describes a kind of document in a few words.
func documentTitle(kind string) string {
	_, title, _ := strings.Cut(loadSchema(kind).Title, ": ")
	return title
}

func documentPageName(kind string) string { return "document_" + kind + ".md" }

// documentPage is the reference of one kind of document: a row for each field.
func documentPage(kind string) []byte {
	s := loadSchema(kind)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n`solutionctl schema %s` prints the JSON Schema. Fields in bold must be there.\n\n", s.Title, s.Description, kind)
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	s.writeFields(&b, s, "")
	return b.Bytes()
}

// resolve follows a reference to a definition of the same schema; what stands beside the reference stays.
func (s jsonSchema) resolve(root *jsonSchema) jsonSchema {
	if s.Ref == "" {
		return s
	}
	target := root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")].resolve(root)
	if s.Description != "" {
		target.Description = s.Description
	}
	if s.Default != nil {
		target.Default = s.Default
	}
	return target
}

func (s jsonSchema) writeFields(b *bytes.Buffer, root *jsonSchema, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name].resolve(root)
		path := prefix + name
		shown := "`" + path + "`"
		if slices.Contains(s.Required, name) {
			shown = "**" + shown + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", shown, cell(field.typeName(root)), cell(field.meaning()))
		if field.Items != nil {
			field, path = field.Items.resolve(root), path+"[]"
		}
		field.writeFields(b, root, path+".")
	}
}

func (s jsonSchema) typeName(root *jsonSchema) string {
	switch {
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case len(s.Enum) > 0:
		var values []string
		for _, value := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", value))
		}
		return strings.Join(values, " or ")
	case s.Items != nil:
		return "list of " + s.Items.resolve(root).typeName(root)
	case len(s.Properties) == 0 && strings.HasPrefix(string(s.Additional), "{"):
		return "mapping"
	case s.Type == nil:
		return "any"
	default:
		return fmt.Sprint(s.Type)
	}
}

func (s jsonSchema) meaning() string {
	if s.Default != nil {
		return strings.TrimSpace(fmt.Sprintf("%s Default: `%v`.", s.Description, s.Default))
	}
	return s.Description
}
