// Package metrics writes metrics in the text format of Prometheus, version 0.0.4, for a server's answer and for
// node_exporter's textfile collector: https://prometheus.io/docs/instrumenting/exposition_formats.
//
// Start with a [Page]: each [Page.Family] begins a family, and its methods write the series of it. A family is written
// at once and in one piece. [Textfile] is a page for node_exporter. The package does not detect duplicate series:
// Prometheus refuses them.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the media type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is the type of a metric family.
type Kind string

// The kinds of families.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Page is a text in the making; the zero Page is empty. It is not for several goroutines at once.
type Page struct{ text bytes.Buffer }

// Family begins a family. Its name and the names of its labels are letters, digits and underscores.
func (p *Page) Family(name string, kind Kind, help string) Family {
	fmt.Fprintf(&p.text, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, escape(help), kind)
	return Family{page: p, name: name}
}

// WriteTo writes the page and empties it.
func (p *Page) WriteTo(w io.Writer) (int64, error) { return p.text.WriteTo(w) }

// Family is the one that a page has begun last.
type Family struct {
	page *Page
	name string
}

// Add writes a series. Labels are names, each followed by its value, which may be any text.
func (f Family) Add(value float64, labels ...string) { f.add("", value, labels) }

// Histogram writes the series of a histogram. counts has one number for each bucket, without the ones below it; there is
// one more than bounds, for values above the last bound. sum is the sum of all values.
func (f Family) Histogram(bounds []float64, counts []uint64, sum float64, labels ...string) {
	var total uint64
	for i, count := range counts {
		total += count
		bound := "+Inf"
		if i < len(bounds) {
			bound = number(bounds[i])
		}
		f.add("_bucket", float64(total), append(slices.Clip(labels), "le", bound))
	}
	f.add("_sum", sum, labels)
	f.add("_count", float64(total), labels)
}

func (f Family) add(suffix string, value float64, labels []string) {
	text := &f.page.text
	text.WriteString(f.name + suffix)
	for i := 0; i < len(labels); i += 2 {
		before := ","
		if i == 0 {
			before = "{"
		}
		quoted := strings.ReplaceAll(escape(strings.ToValidUTF8(labels[i+1], "\uFFFD")), `"`, `\"`)
		text.WriteString(before + labels[i] + `="` + quoted + `"`)
	}
	if len(labels) > 0 {
		text.WriteByte('}')
	}
	text.WriteString(" " + number(value) + "\n")
}

// number writes whole numbers, such as times, without an exponent.
func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// escape escapes the characters that the format reserves.
func escape(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "\n", `\n`)
}
