// Package archives has the pages of the console about archives: uploads, their examination, imports, unimports, and the content of versions.
//
// An archive is uploaded in pieces that match its signatures (package upload), examined by the [Host] that keeps
// archives, shown with its content, and imported when the user confirms it.
package archives

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/upload"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// Host is a host that keeps archives, near this console: a [hostd.Desk] in this process, or a [hostd.Client] of a
// process with more privileges. Each token is that of the user; "" means the user who runs the program.
type Host interface {
	Examine(ctx context.Context, token string, a hostd.Archive, sink report.Sink) (*host.Examination, error)
	Import(ctx context.Context, token string, a hostd.Archive, sink report.Sink) (*schema.ImportReport, error)
	Unimport(ctx context.Context, token string, v hostd.Version, sink report.Sink) (*schema.UnimportReport, error)
	Facts(ctx context.Context, token string, v hostd.Version, sink report.Sink) (*schema.ArchiveFacts, error)
}

const (
	maxExamined = 64
	sweeping    = time.Hour
)

// Options say which archives a console takes.
type Options struct {
	Host    Host   // nil where it is another one
	Uploads string // the directory for archives on their way, of this user alone; "" takes none
	Paths   bool   // users who log in by a link name archives by their path on this host
}

// Pages are the pages about archives: uploads, their examination, imports and unimports.
type Pages struct {
	Options
	server *web.Server
	spool  *upload.Spool // nil: nothing is uploaded

	mu       sync.Mutex
	examined map[string]*examined // by upload, or by path
}

// New opens the spool, and keeps it tidy until the server ends.
func New(server *web.Server, o Options) (*Pages, error) {
	p := &Pages{Options: o, server: server, examined: map[string]*examined{}}
	if p.Host == nil || p.Uploads == "" {
		return p, nil
	}
	var err error
	if p.spool, err = upload.Open(p.Uploads, server.Now); err != nil {
		return nil, err
	}
	server.Operations.Background(func() {
		tick := time.NewTicker(sweeping)
		defer tick.Stop()
		for {
			p.spool.Sweep()
			select {
			case <-tick.C:
			case <-server.Context.Done():
				return
			}
		}
	})
	return p, nil
}

// AddRoutes adds the pages to those of a console.
func (p *Pages) AddRoutes(mux *http.ServeMux) {
	for pattern, h := range map[string]web.Handler{
		"GET /import":                                 p.importing,
		"GET /import/{id}":                            p.showExamination,
		"GET /import/path":                            p.showPath,
		"GET /solutions/{solution}/unimport":          p.askUnimport,
		"GET /solutions/{solution}/content/{version}": p.showContent,
		"POST /import/{id}":                           p.importUpload,
		"POST /import/path":                           p.importPath,
		"POST /uploads/{id}/discard":                  p.discardUpload,
		"POST /solutions/{solution}/unimport":         p.unimport,
	} {
		mux.Handle(pattern, p.server.Handle(h))
	}
	mux.Handle("POST /import", p.server.SignedIn(p.sendForm))
	mux.Handle("POST /uploads", p.tus(p.beginUpload))
	mux.Handle("HEAD /uploads/{id}", p.tus(p.sendOffset))
	mux.Handle("PATCH /uploads/{id}", p.tus(p.takePiece))
	mux.Handle("DELETE /uploads/{id}", p.tus(p.endUpload))
	mux.Handle("GET /import/{id}/events", p.server.Stream(p.followExamination))
}

// credentials returns the token with which a user sends requests to the host.
func credentials(ctx context.Context, v *web.Visit) (string, error) {
	if v.Way == session.ByLink {
		return "", nil
	}
	return v.Bearer(ctx)
}

// asUser has the host do something that takes long and that can be repeated. If the token of the user ends meanwhile, it is repeated with
// another one.
func asUser[T any](ctx context.Context, v *web.Visit, do func(token string) (T, error)) (T, error) {
	if v.Way == session.ByLink {
		return do("")
	}
	var none T
	token, err := v.Fresh(ctx)
	if err != nil {
		return none, err
	}
	done, err := do(token)
	if report.CodeOf(err) != report.Unauthenticated {
		return done, err
	}
	another, failed := v.Fresh(ctx)
	if failed != nil || another == token {
		return done, err
	}
	return do(another)
}

// denialOnHost explains why the user is not allowed to use a verb of the host; nil if they are.
func denialOnHost(v *web.Visit, verb string) *page.Denial {
	if v.Way == session.ByLink {
		return nil
	}
	missing, err := v.Cluster.Missing(v.Context(), rights.OnArchives(verb))
	if err != nil || len(missing) == 0 {
		return nil // the host asks again
	}
	return &page.Denial{Reason: page.Text("denial.host"), Rule: cluster.Rules(missing...)}
}

// importing is where archives come from.
func (p *Pages) importing(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionImport
	if p.Host == nil {
		elsewhere := &page.Elsewhere{Reason: page.Text("import.elsewhere"), Command: report.Run("deploy import", "FILE.iso").String()}
		return &web.Answer{Document: struct {
			Command string `json:"command"`
		}{elsewhere.Command}, Content: &page.Import{Elsewhere: elsewhere}}, nil
	}
	content, denied := &page.Import{}, denialOnHost(v, rights.VerbImport)
	document := struct {
		Uploads []sentUpload `json:"uploads"`
	}{[]sentUpload{}}
	if p.spool != nil {
		content.Upload = &page.Form{Action: page.Action{
			Label: page.Text("action.upload"), URL: "/import", Post: true, Weight: page.WeightPrimary, Denied: denied,
		}}
		for _, u := range p.spool.Of(v.User) {
			shown := p.sent(u)
			document.Uploads = append(document.Uploads, shown)
			content.Uploads = append(content.Uploads, page.Upload{
				ID: u.ID, Name: u.Offer.Name, Received: shown.Received, Size: shown.Size, User: v.User, Changed: u.Changed(), Page: shown.Page,
				Actions: []page.Action{{Label: page.Text("action.discard"), URL: page.URL("uploads", u.ID, "discard"), Post: true}},
			})
		}
	}
	if p.Paths && v.Way == session.ByLink {
		content.Path = &page.Form{
			Action: page.Action{Label: page.Text("import.examine"), URL: "/import/path", Denied: denied},
			Inputs: []page.Input{{Name: "path", Label: page.Text("import.file"), Required: true}},
		}
	}
	return &web.Answer{Document: document, Content: content}, nil
}

// showPath shows the judgement on a file of this host.
func (p *Pages) showPath(v *web.Visit) (*web.Answer, error) {
	path, source, err := p.atPath(v)
	if err != nil {
		return nil, err
	}
	e := p.known(v, path)
	if e == nil || e.over() { // it may be another file by now
		f, err := media.OpenNoFollow(path)
		if err != nil {
			return nil, err
		}
		size := f.Size
		if err = f.Close(); err != nil {
			return nil, err
		}
		if e, err = p.examine(v, path, &examined{name: path, size: size}, source); err != nil {
			return nil, err
		}
	}
	select { // there are no events for a path
	case <-e.done:
	case <-v.Context().Done():
	}
	actions := page.Form{
		Action: page.Action{
			Label: page.Text("action.importThis"), URL: "/import/path", Post: true, Weight: page.WeightPrimary,
			Fields: []page.Hidden{{Name: "path", Value: path}, {Name: "sha256", Value: digestOf(e)}},
		},
		Cancel: page.Link{URL: "/import"},
	}
	return p.examinationPage(v, e, "", actions), nil
}

// digestOf is the digest of an archive as it was examined; "" without one.
func digestOf(e *examined) string {
	if !e.over() || e.result == nil {
		return ""
	}
	return e.result.SHA256
}

// opener opens an archive with its signatures.
type opener func() (hostd.Archive, error)

func uploaded(u *upload.Upload) opener {
	return func() (hostd.Archive, error) {
		f, err := u.Open()
		return hostd.Archive{Name: u.Offer.Name, File: f, Bundles: u.Offer.Bundles}, err
	}
}

// atPath returns the file of this host that a form names. Only the user who runs the program can name files.
func (p *Pages) atPath(v *web.Visit) (path string, source opener, err error) {
	path = strings.TrimSpace(v.FormValue("path"))
	if !p.Paths || v.Way != session.ByLink {
		return "", nil, report.Errorf(report.Forbidden, "only the user who runs the console can name files of its host")
	}
	if !strings.HasPrefix(path, "/") {
		return "", nil, report.Errorf(report.Usage, "%q is not a path that begins with /", path)
	}
	return path, func() (hostd.Archive, error) {
		bundles, err := sign.FindBundles(path)
		if err != nil {
			return hostd.Archive{}, err
		}
		f, err := media.OpenNoFollow(path)
		if err != nil {
			return hostd.Archive{}, err
		}
		return hostd.Archive{Name: path, File: f.File(), Bundles: bundles}, nil
	}, nil
}

// importUpload imports an upload that was examined.
func (p *Pages) importUpload(v *web.Visit) (*web.Answer, error) {
	id := v.PathValue("id")
	u, err := p.upload(v)
	if err != nil {
		return nil, err
	}
	e := p.known(v, id)
	if e == nil || !e.over() {
		return &web.Answer{To: page.URL("import", id)}, nil
	}
	return p.beginImport(v, e, uploaded(u), func() { p.discard(v.User, id) })
}

// importPath imports a file of this host that was examined.
func (p *Pages) importPath(v *web.Visit) (*web.Answer, error) {
	path, source, err := p.atPath(v)
	if err != nil {
		return nil, err
	}
	e := p.known(v, path)
	if e == nil || !e.over() {
		return &web.Answer{To: page.Query("/import/path", "path", path)}, nil
	}
	return p.beginImport(v, e, source, func() {})
}

// beginImport starts an import. The host verifies the archive again as it reads it, and refuses another one than the user has seen. over is
// called when the archive is not needed any more.
func (p *Pages) beginImport(v *web.Visit, e *examined, open opener, over func()) (*web.Answer, error) {
	if e.err != nil {
		return nil, e.err
	}
	expect := cmp.Or(v.PostFormValue("sha256"), digestOf(e))
	planned := &schema.Operation{
		Operation: rights.VerbImport, Solution: e.result.Solution, Version: e.result.Version, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
	}
	return p.server.Begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		a, err := open()
		if err != nil {
			return nil, err
		}
		a.Expect = expect
		done, err := asUser(ctx, v, func(token string) (*schema.ImportReport, error) { return p.Host.Import(ctx, token, a, sink) })
		err = errors.Join(err, a.File.Close())
		if err == nil || refused(err) {
			over()
		}
		return carriedOut(planned, err, done != nil, func() []string { return done.Notices }), err
	})
}

// carriedOut returns the result of an operation on the host.
func carriedOut(planned *schema.Operation, err error, done bool, notices func() []string) *schema.Operation {
	result := *planned
	result.Planned = err != nil
	if done {
		result.Notices = append(result.Notices, notices()...)
	}
	return &result
}
