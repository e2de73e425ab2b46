package console

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxFinished bounds the finished operations on the page of operations.
const maxFinished = 20

// progress is an operation of the console as a document.
type progress struct {
	ID        string            `json:"id"`
	User      string            `json:"user"`
	Started   time.Time         `json:"started"`
	Finished  *time.Time        `json:"finished,omitempty"`
	Error     *web.Failure      `json:"error,omitempty"`
	Operation *schema.Operation `json:"operation"`
	Steps     []report.Event    `json:"steps"`
}

// progressOf is an operation as a document.
func progressOf(m live.OperationState) progress {
	p := progress{ID: m.ID, User: m.User, Started: m.Started, Finished: m.Finished, Operation: m.Operation(), Steps: m.Steps}
	if m.Err != nil {
		f := web.FailureOf(m.Err)
		p.Error = &f
	}
	if p.Steps == nil {
		p.Steps = []report.Event{}
	}
	return p
}

// showOperation shows an operation with its steps.
func (c *Console) showOperation(v *web.Visit) (*web.Answer, error) {
	op := c.server.Operations.Find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, noOperation()
	}
	m := op.State()
	v.Frame.Section = page.SectionOperations
	v.Frame.Trail = []page.Link{{Label: page.Text("operations.title"), URL: "/operations"}}
	content := &page.Progress{Running: m.Running(), Steps: m.Steps, Problem: page.ProblemOf(m.Err)}
	if m.Finished != nil && !web.WantsJSON(v.Request) {
		content.Outcome = (&ended{c, v, m}).outcome()
	}
	switch {
	case m.Finished != nil && m.Stopped != nil && m.Err != nil: // the error only means that the user has stopped it
		content.Stopped, content.Problem = m.Stopped, nil
		content.Actions = append([]page.Action{v.Offer(resumeAction())}, wayBack(v, m.Planned)...)
	case m.Finished == nil:
		v.Frame.Reload = 2
		v.Frame.Feed = page.URL("operations", op.ID, "events") + "?seen=" + strconv.Itoa(m.Count)
		content.Actions = []page.Action{{
			Label: page.Text("operation.stop"), Explanation: page.Text("operation.stop.explanation"), URL: page.URL("operations", op.ID, "stop"), Post: true,
		}}
	case report.CodeOf(m.Err) == report.Interrupted:
		content.Interrupted = true
		content.Actions = append([]page.Action{v.Offer(resumeAction())}, wayBack(v, m.Planned)...)
	case m.Err != nil && op.Plan != "": // the plan has the boxes
		content.Actions = append([]page.Action{v.Offer(page.Action{Label: page.Text("operation.again"), URL: op.Plan, Weight: page.WeightPrimary})}, wayBack(v, m.Planned)...)
	case m.Err != nil && m.Planned.Operation == rights.VerbImport:
		content.Actions = []page.Action{v.Offer(page.Action{Label: page.Text("operation.again"), URL: "/import", Weight: page.WeightPrimary})}
	case m.Err != nil:
		content.Actions = results(m.Planned)
	}
	if m.Export != "" {
		content.Actions = append(content.Actions, page.Action{Label: page.Text("operation.export"), URL: page.URL("operations", op.ID, "export")})
	}
	return &web.Answer{Document: progressOf(m), Content: content}, nil
}

// wayBack offers to restore the state before an incomplete operation.
func wayBack(v *web.Visit, o *schema.Operation) []page.Action {
	if o.Environment == "" || o.Solution == "" || o.Operation != "upgrade" && o.Operation != "downgrade" {
		return nil
	}
	return []page.Action{v.Offer(page.Action{
		Label: page.Text("operation.back"), URL: planURL("environments", o.Environment, "rollback", url.Values{"solution": {o.Solution}}),
	})}
}

// results lead to the pages of an operation's objects that still exist.
func results(o *schema.Operation) []page.Action {
	name, of := o.Environment, "environments"
	if name == "" {
		name, of = o.Solution, "solutions"
	}
	if name == "" || o.Operation == "delete" || o.Operation == rights.VerbUnimport {
		return nil
	}
	return []page.Action{{Label: page.Text("operation.open", name), URL: page.URL(of, name)}}
}

// stopOperation interrupts an operation. Its changes stay, and it can be resumed.
func (c *Console) stopOperation(v *web.Visit) (*web.Answer, error) {
	op := c.server.Operations.Find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, noOperation()
	}
	op.StopWaiting(c.Now())
	return &web.Answer{To: page.URL("operations", op.ID)}, nil
}

// sendExport sends the data that an operation has exported.
func (c *Console) sendExport(w http.ResponseWriter, v *web.Visit) {
	op := c.server.Operations.Find(v.Identity, v.PathValue("id"))
	if op == nil || op.State().Export == "" {
		c.server.Answer(w, v, v.Failed(noOperation()))
		return
	}
	path := op.State().Export
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(path)}))
	sending, end := newSending(w)
	defer end()
	http.ServeFile(sending, v.Request, path)
}

func noOperation() error {
	return report.Errorf(report.NotFound, "this console has no such operation of yours").
		WithHint("the history has the finished operations; interrupted ones are resumed from the page of operations")
}

// showOperations shows the operations in progress, here and elsewhere, and the interrupted ones.
func (c *Console) showOperations(v *web.Visit) (*web.Answer, error) {
	s, err := c.watched(v, page.SectionOperations, nil)
	if web.IsVisitor(err) { // they see their own operations
		v.Frame.Section, s, err = page.SectionOperations, &live.Snapshot{}, nil
	}
	if err != nil {
		return nil, err
	}
	content := &page.Operations{Pending: s.Pending()}
	documents := []progress{}
	for _, op := range c.server.Operations.Of(v.Identity) {
		m := op.State()
		documents = append(documents, progressOf(m))
		switch {
		case m.Finished == nil:
			content.Running = append(content.Running, m.Running())
		case len(content.Recent) < maxFinished:
			content.Recent = append(content.Recent, m.Running())
		}
	}
	for _, held := range s.Locks {
		content.Locks = append(content.Locks, page.Lock{What: lockName(held.Name), Holder: held.Person, Since: held.Since, Abandoned: !live.IsHeld(held, c.Now())})
	}
	if len(content.Pending) > 0 {
		action := v.Offer(resumeAction())
		content.Resume = &action
	}
	return &web.Answer{Document: struct {
		Operations []progress                `json:"operations"`
		Pending    []schema.ResumedOperation `json:"pending"`
	}{documents, content.Pending}, Content: content}, nil
}

// lockName describes the object of a lock.
func lockName(name string) string {
	if namespace, ok := strings.CutPrefix(name, "env-"); ok {
		return page.Text("lock.namespace", namespace)
	}
	if name == "cluster" {
		return page.Text("lock.cluster")
	}
	return name
}

func resumeAction() page.Action {
	return page.Action{Label: page.Text("action.resume"), URL: "/operations/resume", Post: true, Weight: page.WeightPrimary}
}

// resume finishes interrupted operations of any user.
func (c *Console) resume(v *web.Visit) (*web.Answer, error) {
	if d := v.Denial(v.Context()); d != nil {
		return nil, report.Errorf(report.Forbidden, "%s", d.Reason).WithHint("missing %s", d.Rule)
	}
	planned := &schema.Operation{Operation: "resume", Planned: true, Parts: []schema.OperationPart{}, Notices: []string{}}
	return c.server.Begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		done, err := v.Deployer(sink).Resume(ctx, deployer.ResumeOptions{})
		result := *planned
		result.Planned = false
		if done != nil && len(done.Operations) == 0 {
			result.Notices = append(result.Notices, page.Text("operation.nothingToResume"))
		}
		return &result, err
	})
}
