package engine

import (
	"maps"
	"slices"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// functions has sprig's functions, except those that read the environment and the network, and Helm's own, all within
// the budget. [renderer.bind] adds the functions of a rendering.
func (b *budget) functions() template.FuncMap {
	table := sprig.TxtFuncMap()
	delete(table, "env")
	delete(table, "expandenv")
	maps.Copy(table, template.FuncMap{
		"keys": keys, "values": values,
		"required": required, "fail": func(message string) (string, error) { return "", refusal(message) },
		"lookup":        func(_, _, _, _ string) map[string]any { return map[string]any{} },
		"getHostByName": func(string) string { return "" },
		"html":          template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	table = b.bounded(table, false)
	maps.Copy(table, b.textFunctions())
	maps.Copy(table, b.listFunctions())
	maps.Copy(table, b.expressions())
	maps.Copy(table, b.encoders())
	return table
}

// keys and values return the content of tables in the order of the keys; sprig's order varies.

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

// refusal is the error with which a chart refuses its values.
type refusal string

func (r refusal) Error() string { return string(r) }

// required refuses values that are missing or the empty text.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, refusal(message)
	}
	return value, nil
}
