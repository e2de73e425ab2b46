package page

import (
	"html/template"
	"time"
)

// functions are what templates can call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":   p.asset,
		"href":    p.href,
		"url":     func(segments ...string) (string, error) { return p.href(URL(segments...)) },
		"text":    Text,
		"count":   count,
		"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	}
}
