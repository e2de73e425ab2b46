package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

//go:embed static
var static embed.FS

// asset is a file that pages refer to. Its name has the digest of its content, so that browsers keep it for good.
type asset struct {
	path        string // below the base: /static/console.0123456789ab.css
	contentType string
	plain, gzip []byte
}

// assets are by the name in the source.
type assets map[string]*asset

func loadAssets() assets {
	all := assets{}
	for name, contentType := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "begun.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		content, err := static.ReadFile("static/" + name)
		if err != nil {
			panic(err) // it is part of the program
		}
		digest := sha256.Sum256(content)
		stem, extension, _ := strings.Cut(name, ".")
		all[name] = &asset{
			path:        "/static/" + stem + "." + hex.EncodeToString(digest[:6]) + "." + extension,
			contentType: contentType, plain: content, gzip: compress(content, gzip.BestCompression),
		}
	}
	return all
}

func compress(content []byte, level int) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, level)
	_, _ = w.Write(content) // a bytes.Buffer does not fail
	_ = w.Close()
	return b.Bytes()
}

// asset returns the path of a file that pages refer to.
func (p *Pages) asset(name string) (string, error) {
	a, ok := p.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return p.base + a.path, nil
}

// Static serves the files that pages refer to: paths that begin with /static/, without the base of the console.
func (p *Pages) Static() http.Handler {
	byPath := map[string]*asset{}
	for _, a := range p.assets {
		byPath[a.path] = a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := byPath[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.contentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		body := a.plain
		if takesGzip(w, r) {
			body = a.gzip
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the client has gone
	})
}

// Respond answers a request with a page, compressed where the browser takes that: the page of 200 environments has 8 KB instead
// of 250. Nothing is sent when the page cannot be rendered.
func (p *Pages) Respond(w http.ResponseWriter, r *http.Request, status int, v View) error {
	var b bytes.Buffer
	if err := p.Render(&b, v); err != nil {
		return err
	}
	body := b.Bytes()
	if takesGzip(w, r) {
		body = compress(body, gzip.BestSpeed)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser has gone
	return nil
}

// Begun is a page of which a part was sent.
type Begun struct {
	pages     *Pages
	body      io.Writer
	send, end func() error
	previewed bool
}

// Begin sends a browser the top of a page whose content takes long, with the title of a content like it, and the preview that this is. Such pages
// have no trail.
func (p *Pages) Begin(w http.ResponseWriter, r *http.Request, v View) (*Begun, error) {
	var out bytes.Buffer
	if err := p.render(&out, "begun", v); err != nil {
		return nil, err
	}
	b := &Begun{pages: p, body: w, send: http.NewResponseController(w).Flush, end: func() error { return nil }}
	if err := b.preview(&out, v); err != nil {
		return nil, err
	}
	if takesGzip(w, r) {
		zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		b.body, b.end = zipped, zipped.Close
		b.send = func() error { return errors.Join(zipped.Flush(), http.NewResponseController(w).Flush()) }
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // a proxy passes it on at once
	_, _ = out.WriteTo(b.body)       // the browser has gone, here and below
	_ = b.send()
	return b, nil
}

// Preview sends what is known of the content, if it is a preview. The rest of the page replaces it.
func (b *Begun) Preview(v View) error {
	var out bytes.Buffer
	if err := b.preview(&out, v); err != nil {
		return err
	}
	_, _ = out.WriteTo(b.body)
	_ = b.send()
	return nil
}

// identities are the attributes that an element of a page has alone.
var identities = strings.NewReplacer(` id="`, ` data-id="`)

func (b *Begun) preview(out *bytes.Buffer, v View) error {
	content, is := v.Content.(interface{ isPreview() bool })
	if !is || !content.isPreview() || b.previewed {
		return nil
	}
	var part bytes.Buffer
	if err := b.pages.render(&part, "preview", v); err != nil {
		return err
	}
	b.previewed = true
	_, _ = identities.WriteString(out, part.String()) // data has no quotation marks: they are escaped
	return nil
}

// IsTitled reports whether the page keeps the title that was sent: nothing was sent before begun, and after a preview there is another one.
func (b *Begun) IsTitled() bool { return b != nil && !b.previewed }

// Finish sends the rest, with the part of the frame below the title. Call it once; if it fails, nothing more was sent.
func (b *Begun) Finish(v View) error {
	part := "rest"
	if b.previewed {
		part = "again"
	}
	var out bytes.Buffer
	if err := b.pages.render(&out, part, v); err != nil {
		return err
	}
	_, _ = out.WriteTo(b.body)
	_ = b.end()
	return nil
}

// takesGzip reports whether the answer will be compressed, and sets its header.
func takesGzip(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return false
	}
	w.Header().Set("Content-Encoding", "gzip")
	return true
}
