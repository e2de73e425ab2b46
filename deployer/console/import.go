package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/upload"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// Archives is a host that keeps archives, near this console: a [hostd.Desk] in this process, or a [hostd.Client] of one that
// has more rights. Tokens are those of the person; "" stands for whoever runs the program.
type Archives interface {
	Examine(ctx context.Context, token string, a hostd.Archive, sink report.Sink) (*host.Examination, error)
	Import(ctx context.Context, token string, a hostd.Archive, sink report.Sink) (*schema.ImportReport, error)
	Unimport(ctx context.Context, token string, v hostd.Version, sink report.Sink) (*schema.UnimportReport, error)
}

const (
	maxExamined = 64
	sweeping    = time.Hour
)

// imports are the archives on their way through a console.
type imports struct {
	spool *upload.Spool // nil: nothing is uploaded

	mu       sync.Mutex
	examined map[string]*examined // by upload, or by path
}

// examined is an archive that is being judged, or was.
type examined struct {
	user   string
	name   string
	size   int64
	done   chan struct{} // closed when the rest is there
	result *host.Examination
	err    error
	at     time.Time
}

func (e *examined) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// openImports opens the spool, and keeps it tidy until the console ends.
func (c *Console) openImports() (err error) {
	c.imports = &imports{examined: map[string]*examined{}}
	if c.Archives == nil || c.Uploads == "" {
		return nil
	}
	if c.imports.spool, err = upload.Open(c.Uploads, c.Now); err != nil {
		return err
	}
	c.operations.done.Go(func() {
		tick := time.NewTicker(sweeping)
		defer tick.Stop()
		for {
			c.imports.spool.Sweep()
			select {
			case <-tick.C:
			case <-c.ctx.Done():
				return
			}
		}
	})
	return nil
}

// credentials are those with which a person asks the host.
func (v *visit) credentials(ctx context.Context) (string, error) {
	if v.way == byLink {
		return "", nil
	}
	return v.bearer(ctx)
}

// barred says why the user may not ask something of the host; nil where that is not so.
func (v *visit) barred(verb string) *page.Denial {
	if v.way == byLink {
		return nil
	}
	missing, err := v.cluster.Missing(v.Context(), hostd.Right(verb))
	if err != nil || len(missing) == 0 {
		return nil // the host asks again
	}
	return &page.Denial{Reason: page.Text("denial.host"), Rule: cluster.Rules(missing...)}
}

// importing is where archives come from.
func (c *Console) importing(v *visit) (*answer, error) {
	v.frame.Section = page.SectionImport
	if c.Archives == nil {
		elsewhere := &page.Elsewhere{Reason: page.Text("import.elsewhere"), Command: report.Run("deploy import", "FILE.iso").String()}
		return &answer{document: struct {
			Command string `json:"command"`
		}{elsewhere.Command}, content: &page.Import{Elsewhere: elsewhere}}, nil
	}
	content, denied := &page.Import{}, v.barred(hostd.VerbImport)
	document := struct {
		Uploads []sentUpload `json:"uploads"`
	}{[]sentUpload{}}
	if c.imports.spool != nil {
		content.Upload = &page.Form{Action: page.Action{
			Label: page.Text("action.upload"), URL: "/import", Post: true, Weight: page.WeightPrimary, Denied: denied,
		}}
		for _, u := range c.imports.spool.Of(v.user) {
			shown := c.sent(u)
			document.Uploads = append(document.Uploads, shown)
			content.Uploads = append(content.Uploads, page.Upload{
				ID: u.ID, Name: u.Offer.Name, Received: shown.Received, Size: shown.Size, User: v.user, Changed: u.Changed(), Page: shown.Page,
				Actions: []page.Action{{Label: page.Text("action.discard"), URL: page.URL("uploads", u.ID, "discard"), Post: true}},
			})
		}
	}
	if c.ArchivePaths && v.way == byLink {
		content.Path = &page.Form{
			Action: page.Action{Label: page.Text("import.examine"), URL: "/import/path", Denied: denied},
			Inputs: []page.Input{{Name: "path", Label: page.Text("import.file"), Required: true}},
		}
	}
	return &answer{document: document, content: content}, nil
}

// showExamination shows the judgement on an upload.
func (c *Console) showExamination(v *visit) (*answer, error) {
	id := v.PathValue("id")
	e := c.known(v, id)
	if e == nil {
		u, err := c.upload(v)
		if err != nil {
			return nil, err
		}
		if !u.Complete() {
			return &answer{to: "/import"}, nil
		}
		if e, err = c.examine(v, id, &examined{name: u.Offer.Name, size: u.Offer.Chunks.Size}, uploaded(u)); err != nil {
			return nil, err
		}
	}
	actions := page.Form{
		Action: page.Action{Label: page.Text("action.importThis"), URL: page.URL("import", id), Post: true, Weight: page.WeightPrimary},
		Cancel: page.Link{URL: "/import"},
	}
	return c.examinationPage(v, e, page.URL("import", id, "events"), actions), nil
}

// showPath shows the judgement on a file of this host.
func (c *Console) showPath(v *visit) (*answer, error) {
	path, source, err := c.atPath(v)
	if err != nil {
		return nil, err
	}
	e := c.known(v, path)
	if e == nil || e.over() { // it may be another file by now
		f, err := sign.Open(path)
		if err != nil {
			return nil, err
		}
		size := f.Size
		if err = f.Close(); err != nil {
			return nil, err
		}
		if e, err = c.examine(v, path, &examined{name: path, size: size}, source); err != nil {
			return nil, err
		}
	}
	select { // there are no events for a path
	case <-e.done:
	case <-v.Context().Done():
	}
	actions := page.Form{
		Action: page.Action{
			Label: page.Text("action.importThis"), URL: "/import/path", Post: true, Weight: page.WeightPrimary, Fields: []page.Hidden{{Name: "path", Value: path}},
		},
		Cancel: page.Link{URL: "/import"},
	}
	return c.examinationPage(v, e, "", actions), nil
}

// opener opens an archive with its signatures.
type opener func() (hostd.Archive, error)

func uploaded(u *upload.Upload) opener {
	return func() (hostd.Archive, error) {
		f, err := u.Open()
		return hostd.Archive{Name: u.Offer.Name, File: f, Bundles: u.Offer.Bundles}, err
	}
}

// atPath is the file of this host that a form names. Only whoever runs the program names files.
func (c *Console) atPath(v *visit) (path string, source opener, err error) {
	path = strings.TrimSpace(v.FormValue("path"))
	if !c.ArchivePaths || v.way != byLink {
		return "", nil, report.Errorf(report.Forbidden, "only whoever runs the console names files of its host")
	}
	if !strings.HasPrefix(path, "/") {
		return "", nil, report.Errorf(report.Usage, "%q is not a path that begins with /", path)
	}
	return path, func() (hostd.Archive, error) {
		bundles, err := sign.FindBundles(path)
		if err != nil {
			return hostd.Archive{}, err
		}
		f, err := sign.Open(path)
		if err != nil {
			return hostd.Archive{}, err
		}
		return hostd.Archive{Name: path, File: f.File, Bundles: bundles}, nil
	}, nil
}

// known is what a user has had examined; nil for nothing.
func (c *Console) known(v *visit, key string) *examined {
	c.imports.mu.Lock()
	defer c.imports.mu.Unlock()
	e := c.imports.examined[v.user+" "+key]
	if e != nil && e.over() && e.err != nil && !refused(e.err) {
		return nil // it could not be judged: again
	}
	return e
}

// examine begins to judge an archive. What is refused is not kept.
func (c *Console) examine(v *visit, key string, e *examined, open opener) (*examined, error) {
	token, err := v.credentials(v.Context())
	if err != nil {
		return nil, err
	}
	e.user, e.done, e.at = v.user, make(chan struct{}), c.Now()
	i, full := c.imports, v.user+" "+key
	i.mu.Lock()
	defer i.mu.Unlock()
	if other := i.examined[full]; other != nil && !other.over() {
		return other, nil
	}
	for len(i.examined) >= maxExamined {
		oldest := ""
		for k, other := range i.examined {
			if other.over() && (oldest == "" || other.at.Before(i.examined[oldest].at)) {
				oldest = k
			}
		}
		if oldest == "" {
			return nil, report.Errorf(report.Unavailable, "%d archives are being examined", len(i.examined)).WithHint("wait until one of them is done")
		}
		delete(i.examined, oldest)
	}
	i.examined[full] = e
	c.operations.done.Go(func() {
		defer close(e.done)
		a, err := open()
		if err == nil {
			e.result, err = c.Archives.Examine(c.ctx, token, a, nil)
			err = errors.Join(err, a.File.Close())
		}
		if e.err = err; refused(err) {
			c.discard(e.user, key)
		}
	})
	return e, nil
}

// discard removes the upload of this name, if there is one.
func (c *Console) discard(user, id string) {
	if c.imports.spool == nil {
		return
	}
	u, err := c.imports.spool.Find(user, id)
	if err == nil {
		err = u.Discard()
	}
	if err != nil && report.CodeOf(err) != report.NotFound {
		c.Sink.Emit(report.Event{Step: "remove an upload", Name: id, State: report.Warning, Note: err.Error()})
	}
}

// refused tells an archive that may not be imported from one of which nobody knows.
func refused(err error) bool {
	return err != nil && slices.Contains([]int{3, 4, 5, 6}, report.CodeOf(err).ExitStatus())
}

// examinationPage shows what is known of an archive by now.
func (c *Console) examinationPage(v *visit, e *examined, events string, actions page.Form) *answer {
	v.frame.Section = page.SectionImport
	v.frame.Trail = []page.Link{{Label: page.Text("import.title"), URL: "/import"}}
	content := &page.Examination{Name: e.name, Size: e.size}
	if !e.over() {
		v.frame.Reload, v.frame.Feed, content.Busy = 2, events, true
		return &answer{status: http.StatusAccepted, document: struct {
			Name string `json:"name"`
			Busy bool   `json:"busy"`
		}{e.name, true}, content: content}
	}
	a := &answer{document: e.result, content: content}
	if e.err != nil {
		a.status, a.document, content.Problem = statusOf(e.err), failureOf(e.err), page.ProblemOf(e.err)
	} else {
		actions.Action.Denied = v.barred(hostd.VerbImport)
		content.Form = actions
	}
	if r := e.result; r != nil {
		content.Solution, content.Version, content.Verdict, content.Signers = r.Solution, r.Version, r.Verdict, r.Signers
		if r.Brings != nil {
			content.Lint, content.Brings = &schema.LintTarget{Findings: r.Findings}, c.brings(v, r)
		}
	}
	return a
}

// brings says what an archive would bring, in comparison with what is active.
func (c *Console) brings(v *visit, r *host.Examination) []string {
	var lines []string
	if r.Known {
		lines = append(lines, page.Text("brings.known"))
	}
	line := page.Count("brings.images", len(r.Brings.Images))
	if s, err := c.look(v.Context(), v.identity); err == nil {
		if active := s.active(r.Solution); active != "" && active != r.Version {
			if known, err := v.deployer(nil).Records.Imports(v.Context()); err == nil {
				line += page.Text("brings.new", newImages(r, known, active), active)
			}
		}
	}
	lines = append(lines, line)
	for _, name := range r.Brings.Definitions {
		lines = append(lines, page.Text("brings.definition", name))
	}
	for _, d := range r.Brings.DependsOn {
		lines = append(lines, page.Text("brings.dependency", d.Solution, d.Version))
	}
	return lines
}

// newImages is how many images of an archive the active version does not have.
func newImages(r *host.Examination, known []schema.Import, active string) int {
	n := 0
	for _, i := range known {
		if i.Name != r.Solution || i.Version != active {
			continue
		}
		for _, image := range r.Brings.Images {
			if !slices.Contains(slices.Collect(maps.Values(i.Images)), image.Digest) {
				n++
			}
		}
	}
	return n
}

// active is the active version of a Solution, "" without one.
func (s *snapshot) active(solution string) string {
	for _, one := range s.status.Solutions {
		if one.Name == solution {
			return one.Active
		}
	}
	return ""
}

// followExamination tells a browser that an archive was judged.
func (c *Console) followExamination(v *visit) (follower, func(), error) {
	e := c.known(v, v.PathValue("id"))
	if e == nil {
		return nil, nil, report.Errorf(report.NotFound, "there is no such upload of yours")
	}
	return func(ctx context.Context, _ string) ([]event, error) {
		select {
		case <-e.done:
			return []event{{name: "end"}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func() {}, nil
}

// importUpload imports an upload that was examined.
func (c *Console) importUpload(v *visit) (*answer, error) {
	id := v.PathValue("id")
	u, err := c.upload(v)
	if err != nil {
		return nil, err
	}
	e := c.known(v, id)
	if e == nil || !e.over() {
		return &answer{to: page.URL("import", id)}, nil
	}
	return c.beginImport(v, e, uploaded(u), func() { c.discard(v.user, id) })
}

// importPath imports a file of this host that was examined.
func (c *Console) importPath(v *visit) (*answer, error) {
	path, source, err := c.atPath(v)
	if err != nil {
		return nil, err
	}
	e := c.known(v, path)
	if e == nil || !e.over() {
		return &answer{to: page.Query("/import/path", "path", path)}, nil
	}
	return c.beginImport(v, e, source, func() {})
}

// beginImport starts an import. The host judges the archive again: what is imported is what it reads then. Over is called when
// the archive is not needed any more.
func (c *Console) beginImport(v *visit, e *examined, open opener, over func()) (*answer, error) {
	if e.err != nil {
		return nil, e.err
	}
	planned := &schema.Operation{
		Operation: hostd.VerbImport, Solution: e.result.Solution, Version: e.result.Version, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
	}
	return c.begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		token, err := v.credentials(ctx)
		if err != nil {
			return nil, err
		}
		a, err := open()
		if err != nil {
			return nil, err
		}
		done, err := c.Archives.Import(ctx, token, a, sink)
		err = errors.Join(err, a.File.Close())
		if err == nil || refused(err) {
			over()
		}
		return carriedOut(planned, err, done != nil, func() []string { return done.Notices }), err
	})
}

// carriedOut is what an operation on the host has come to.
func carriedOut(planned *schema.Operation, err error, told bool, notices func() []string) *schema.Operation {
	result := *planned
	result.Planned = err != nil
	if told {
		result.Notices = append(result.Notices, notices()...)
	}
	return &result
}

// askUnimport says what an unimport takes away, and asks for the name of it.
func (c *Console) askUnimport(v *visit) (*answer, error) {
	o, err := c.unimportOf(v)
	if err != nil {
		return nil, err
	}
	v.frame.Section = page.SectionSolutions
	v.frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.Solution, URL: page.URL("solutions", o.Solution)}}
	at := page.URL("solutions", o.Solution)
	return &answer{document: o, content: &page.Confirmation{
		Heading: (&schema.Operation{Operation: hostd.VerbUnimport, Solution: o.Solution, Version: o.Version}).Heading(),
		Warnings: []page.Notice{
			{Tone: page.ToneWarn, Text: page.Text("unimport.goes", o.Solution+"-"+o.Version)},
			{Tone: page.ToneInfo, Text: page.Text("unimport.again")},
		},
		Form: page.Form{
			Action: page.Action{
				Label: page.Text("action.unimport"), URL: page.Query(at+"/unimport", "version", o.Version), Post: true, Weight: page.WeightDanger,
				Confirm: o.Solution + "-" + o.Version, Denied: v.barred(hostd.VerbUnimport),
			},
			Cancel: page.Link{URL: at},
		},
	}}, nil
}

// unimportOf is the version that a page is about. One that is used stays.
func (c *Console) unimportOf(v *visit) (o hostd.Version, err error) {
	if c.Archives == nil {
		return o, report.Errorf(report.Refused, "archives are removed on the host that keeps them").
			WithHint("run it there: %s", report.Run("deploy unimport", v.PathValue("solution"), v.FormValue("version")))
	}
	o = hostd.Version{Solution: v.PathValue("solution"), Version: v.FormValue("version")}
	if _, err = schema.ParseVersion(o.Version); err != nil {
		return o, report.Errorf(report.Usage, "%q is not a version", o.Version)
	}
	return o, v.deployer(nil).Records.CheckUnused(v.Context(), o.Solution, o.Version)
}

// unimport takes a version away.
func (c *Console) unimport(v *visit) (*answer, error) {
	o, err := c.unimportOf(v)
	if err != nil {
		return nil, err
	}
	if id := o.Solution + "-" + o.Version; v.PostFormValue("confirm") != id {
		return nil, report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", id)
	}
	planned := &schema.Operation{
		Operation: hostd.VerbUnimport, Solution: o.Solution, Version: o.Version, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
	}
	return c.begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		token, err := v.credentials(ctx)
		if err != nil {
			return nil, err
		}
		done, err := c.Archives.Unimport(ctx, token, o, sink)
		return carriedOut(planned, err, done != nil, func() []string { return done.Notices }), err
	})
}

// unimportAction leads to the page that asks; nil where nothing is removed from here.
func (c *Console) unimportAction(v *visit, solution, version string) []page.Action {
	if c.Archives == nil {
		return nil
	}
	return []page.Action{{
		Label: page.Text("action.unimport") + " " + version, URL: page.Query(page.URL("solutions", solution)+"/unimport", "version", version),
		Weight: page.WeightDanger, Denied: v.barred(hostd.VerbUnimport),
	}}
}
