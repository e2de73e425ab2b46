package archives

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

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

// showExamination shows the judgement on an upload.
func (p *Pages) showExamination(v *web.Visit) (*web.Answer, error) {
	id := v.PathValue("id")
	e := p.known(v, id)
	if e == nil {
		u, err := p.upload(v)
		if err != nil {
			return nil, err
		}
		if !u.Complete() {
			return &web.Answer{To: "/import"}, nil
		}
		if e, err = p.examine(v, id, &examined{name: u.Offer.Name, size: u.Offer.Chunks.Size}, uploaded(u)); err != nil {
			return nil, err
		}
	}
	actions := page.Form{
		Action: page.Action{Label: page.Text("action.importThis"), URL: page.URL("import", id), Post: true, Weight: page.WeightPrimary},
		Cancel: page.Link{URL: "/import"},
	}
	over := e.over()
	shown := p.examinationPage(v, e, page.URL("import", id, "events"), actions)
	if over && e.err != nil && !refused(e.err) {
		p.forget(v, id, e) // it could not be judged: the next request examines it again
	}
	return shown, nil
}

// known returns an archive that the user has had examined; nil for none.
func (p *Pages) known(v *web.Visit, key string) *examined {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.examined[v.User+" "+key]
}

// forget drops an examination.
func (p *Pages) forget(v *web.Visit, key string, e *examined) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.examined[v.User+" "+key] == e {
		delete(p.examined, v.User+" "+key)
	}
}

// examine starts to check an archive. A refused one is not kept.
func (p *Pages) examine(v *web.Visit, key string, e *examined, open opener) (*examined, error) {
	if _, err := credentials(v.Context(), v); err != nil {
		return nil, err
	}
	e.user, e.done, e.at = v.User, make(chan struct{}), p.server.Now()
	full := v.User + " " + key
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.examined[full]; other != nil && !other.over() {
		return other, nil
	}
	for len(p.examined) >= maxExamined {
		oldest := ""
		for k, other := range p.examined {
			if other.over() && (oldest == "" || other.at.Before(p.examined[oldest].at)) {
				oldest = k
			}
		}
		if oldest == "" {
			return nil, report.Errorf(report.Unavailable, "%d archives are being examined", len(p.examined)).WithHint("wait until one of them is done")
		}
		delete(p.examined, oldest)
	}
	p.examined[full] = e
	p.server.Operations.Background(func() {
		defer close(e.done)
		a, err := open()
		if err == nil {
			e.result, err = asUser(p.server.Context, v, func(token string) (*host.Examination, error) { return p.Host.Examine(p.server.Context, token, a, nil) })
			err = errors.Join(err, a.File.Close())
		}
		if e.err = err; refused(err) {
			p.discard(e.user, key)
		}
	})
	return e, nil
}

// discard removes the upload of this name, if there is one.
func (p *Pages) discard(user, id string) {
	if p.spool == nil {
		return
	}
	u, err := p.spool.Find(user, id)
	if err == nil {
		err = u.Discard()
	}
	if err != nil && report.CodeOf(err) != report.NotFound {
		p.server.Sink.Emit(report.Event{Step: "remove an upload", Name: id, State: report.Warning, Note: err.Error()})
	}
}

// refused reports whether the fault is the archive's, which is then of no use. [report.Invalid] and [report.Corrupt] can also mean a file of the
// host or an object of the cluster.
func refused(err error) bool {
	return err != nil && slices.Contains([]report.Code{
		report.Findings, report.Unsigned, report.Untrusted, report.NotAllowed, report.Threshold, report.Mismatch, report.BadBundle,
		report.Revoked, report.Expired, report.Downgrade, report.Replaced,
	}, report.CodeOf(err))
}

// examinationPage shows the present results for an archive.
func (p *Pages) examinationPage(v *web.Visit, e *examined, events string, actions page.Form) *web.Answer {
	v.Frame.Section = page.SectionImport
	v.Frame.Trail = []page.Link{{Label: page.Text("import.title"), URL: "/import"}}
	content := &page.Examination{Name: e.name, Size: e.size}
	if !e.over() {
		v.Frame.Reload, v.Frame.Feed, content.Busy = 2, events, true
		return &web.Answer{Status: http.StatusAccepted, Document: struct {
			Name string `json:"name"`
			Busy bool   `json:"busy"`
		}{e.name, true}, Content: content}
	}
	a := &web.Answer{Document: e.result, Content: content}
	if e.err != nil {
		a.Status, a.Document, content.Problem = web.StatusOf(e.err), web.FailureOf(e.err), page.ProblemOf(e.err)
	} else {
		actions.Action.Denied = denialOnHost(v, rights.VerbImport)
		content.Form = actions
	}
	if r := e.result; r != nil {
		content.Solution, content.Version, content.Verdict, content.Signers = r.Solution, r.Version, r.Verdict, r.Signers
		content.Facts = r.Facts
		if r.Brings != nil {
			content.Lint, content.Brings = &schema.LintTarget{Findings: r.Findings}, p.brings(v, r)
			content.Plan, content.ReleaseNotes = r.Activation, r.Brings.ReleaseNotes
		}
	}
	return a
}

// brings compares the content of an archive with the active version.
func (p *Pages) brings(v *web.Visit, r *host.Examination) []string {
	var lines []string
	if r.Known {
		lines = append(lines, page.Text("brings.known"))
	}
	line := page.Count("brings.images", len(r.Brings.Images))
	if s, err := p.server.Everything(v.Identity).Read(v.Context(), nil); err == nil {
		if active := s.Active(r.Solution); active != "" && active != r.Version {
			if known, err := v.Deployer(nil).Records.Imports(v.Context()); err == nil {
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
	if r.NoActivation != "" {
		lines = append(lines, page.Text("brings.refused", r.NoActivation))
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

// followExamination streams to a browser that an archive was examined.
func (p *Pages) followExamination(v *web.Visit) (live.Follower, func(), error) {
	e := p.known(v, v.PathValue("id"))
	if e == nil {
		return nil, nil, report.Errorf(report.NotFound, "there is no such upload of yours")
	}
	return func(ctx context.Context, _ string) ([]live.Event, error) {
		select {
		case <-e.done:
			return []live.Event{{Name: "end"}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func() {}, nil
}
