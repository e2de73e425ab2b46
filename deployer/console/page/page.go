// Package page is the look and the text of the console: views, templates, one style sheet, one script and the words on
// it.
//
// A [View] is a page as data: the frame that surrounds every page, and its content, one type for each kind of page,
// made of documents of package schema. [Pages.Render] writes it as HTML that works without the script; [Pages.Static]
// serves the files that a page refers to. The package makes no requests and decides nothing: a possible action is an
// [Action], and one that the user is not allowed to take is an Action with a [Denial].
//
// Everything that is shown may come from a hostile archive or cluster. It is escaped by html/template, made visible
// where it contains control or formatting characters, and never becomes a link: URLs are paths of the console, made by
// [URL]. The one exception is the user interface of a Solution, as its Ingress names it: see [ExternalLink].
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
)

// templates are layout.html and parts.html, and a file in pages for each kind of content, by its name.
//
//go:embed templates
var templates embed.FS

// ContentSecurityPolicy is the policy of all pages: nothing inline, nothing from elsewhere, and no conversion of
// strings to HTML or code, which the script does not need.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Pages renders the pages of one console.
type Pages struct {
	base   string
	assets assets
	common *template.Template // what all pages have; it is never executed

	mu   sync.Mutex
	sets map[string]*template.Template // of the pages that were shown, by the name of the content: each has a copy of common
}

// New returns the pages of a console below a path, such as "/solutions"; "" is the root of its origin.
func New(base string) (*Pages, error) {
	p := &Pages{base: base, sets: map[string]*template.Template{}, assets: loadAssets()}
	var err error
	p.common, err = template.New("").Option("missingkey=error").Funcs(p.functions()).ParseFS(templates, "templates/*.html")
	return p, err
}

// set returns the templates of a content. They are parsed when a page with it is shown first: a console may wait for its
// first visitor for long.
func (p *Pages) set(content string) (*template.Template, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.sets[content]; set != nil {
		return set, nil
	}
	text, err := templates.ReadFile("templates/pages/" + content + ".html")
	if err != nil {
		return nil, err
	}
	set, err := p.common.Clone()
	if err != nil {
		return nil, err
	}
	if _, err = set.New("content").Parse(string(text)); err != nil {
		return nil, err
	}
	p.sets[content] = set
	return set, nil
}

// Render writes a page. Nothing is written when it fails.
func (p *Pages) Render(w io.Writer, v View) error { return p.render(w, "page", v) }

// render writes a page or one of the two parts of it.
func (p *Pages) render(w io.Writer, part string, v View) error {
	set, err := p.set(v.Content.name())
	if err != nil {
		return fmt.Errorf("template of %T: %w", v.Content, err)
	}
	var b bytes.Buffer
	if err = set.ExecuteTemplate(&b, part, v); err != nil {
		return fmt.Errorf("render %s %s: %w", part, v.Content.name(), err)
	}
	// All invisible characters of the data become visible here, in one place: the templates have none, and the
	// replacements have no meaning in HTML.
	_, err = io.WriteString(w, report.Clean(b.String()))
	return err
}

// URL returns the path of a page below the base of the console, of segments that are escaped: URL("environments", "shop").
func URL(segments ...string) string {
	var b strings.Builder
	for _, segment := range segments {
		b.WriteString("/" + url.PathEscape(segment))
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// href completes a path of the console. Anything else is a mistake in the view: data must never become a link.
func (p *Pages) href(to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
		return "", fmt.Errorf("%q is not a path of the console", to)
	}
	return p.base + to, nil
}

// Query adds parameters to a path, names and values in turn; those without a value are left out.
func Query(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Add(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
