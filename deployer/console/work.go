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
	"github.com/solutionctl/solutionctl/deployer/console/page"
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
	Error     *failure          `json:"error,omitempty"`
	Operation *schema.Operation `json:"operation"`
	Steps     []report.Event    `json:"steps"`
}

// progressOf is an operation as a document.
func progressOf(m moment) progress {
	p := progress{ID: m.id, User: m.user, Started: m.started, Finished: m.finished, Operation: m.operation(), Steps: m.steps}
	if m.err != nil {
		f := failureOf(m.err)
		p.Error = &f
	}
	if p.Steps == nil {
		p.Steps = []report.Event{}
	}
	return p
}

// showOperation shows an operation with its steps.
func (c *Console) showOperation(v *visit) (*answer, error) {
	op := c.operations.find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, noOperation()
	}
	m := op.now()
	v.frame.Section = page.SectionOperations
	v.frame.Trail = []page.Link{{Label: page.Text("operations.title"), URL: "/operations"}}
	content := &page.Progress{Running: m.running(), Steps: m.steps, Problem: page.ProblemOf(m.err)}
	switch {
	case m.finished != nil && m.stopped != nil && m.err != nil: // the error only says that the user has stopped it
		content.Stopped, content.Problem = m.stopped, nil
		content.Actions = append([]page.Action{v.offer(resumeAction())}, v.wayBack(m.planned)...)
	case m.finished == nil:
		v.frame.Reload = 2
		v.frame.Feed = page.URL("operations", op.id, "events") + "?seen=" + strconv.Itoa(m.count)
		content.Actions = []page.Action{{
			Label: page.Text("operation.stop"), Explanation: page.Text("operation.stop.explanation"), URL: page.URL("operations", op.id, "stop"), Post: true,
		}}
	case report.CodeOf(m.err) == report.Interrupted:
		content.Interrupted = true
		content.Actions = append([]page.Action{v.offer(resumeAction())}, v.wayBack(m.planned)...)
	case m.err == nil:
		content.Actions = results(m.planned)
	case m.err != nil && op.plan != "": // what has to be accepted is accepted there
		content.Actions = []page.Action{{Label: page.Text("operation.plan"), URL: op.plan}}
	}
	if m.export != "" {
		content.Actions = append(content.Actions, page.Action{Label: page.Text("operation.export"), URL: page.URL("operations", op.id, "export")})
	}
	return &answer{document: progressOf(m), content: content}, nil
}

// wayBack offers to go back to what was deployed before an operation that has not come to its end.
func (v *visit) wayBack(o *schema.Operation) []page.Action {
	if o.Environment == "" || o.Solution == "" || o.Operation != "upgrade" && o.Operation != "downgrade" {
		return nil
	}
	return []page.Action{v.offer(page.Action{
		Label: page.Text("operation.back"), URL: planURL("environments", o.Environment, "rollback", url.Values{"solution": {o.Solution}}),
	})}
}

// results lead to what an operation was about, where it is still there.
func results(o *schema.Operation) []page.Action {
	name, of := o.Environment, "environments"
	if name == "" {
		name, of = o.Solution, "solutions"
	}
	if name == "" || o.Operation == "delete" || o.Operation == deployer.VerbUnimport {
		return nil
	}
	return []page.Action{{Label: page.Text("operation.open", name), URL: page.URL(of, name), Weight: page.WeightPrimary}}
}

// stopOperation ends an operation before it is done. What it has done stays, and can be resumed.
func (c *Console) stopOperation(v *visit) (*answer, error) {
	op := c.operations.find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, noOperation()
	}
	op.stopWaiting(c.Now())
	return &answer{to: page.URL("operations", op.id)}, nil
}

// sendExport sends the data that an operation has exported.
func (c *Console) sendExport(w http.ResponseWriter, v *visit) {
	op := c.operations.find(v.Identity, v.PathValue("id"))
	if op == nil || op.now().export == "" {
		c.answer(w, v, v.failed(noOperation()))
		return
	}
	path := op.now().export
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(path)}))
	http.ServeFile(w, v.Request, path)
}

func noOperation() error {
	return report.Errorf(report.NotFound, "this console has no such operation of yours").
		WithHint("what was done is in the history; what was interrupted can be resumed from the page of operations")
}

// showOperations shows what is at work, here and elsewhere, and what was interrupted.
func (c *Console) showOperations(v *visit) (*answer, error) {
	s, err := c.watched(v, page.SectionOperations, nil)
	if isVisitor(err) { // they see what they have begun
		v.frame.Section, s, err = page.SectionOperations, &snapshot{}, nil
	}
	if err != nil {
		return nil, err
	}
	content := &page.Operations{Pending: s.pending()}
	documents := []progress{}
	for _, op := range c.operations.of(v.Identity) {
		m := op.now()
		documents = append(documents, progressOf(m))
		switch {
		case m.finished == nil:
			content.Running = append(content.Running, m.running())
		case len(content.Recent) < maxFinished:
			content.Recent = append(content.Recent, m.running())
		}
	}
	for _, held := range s.locks {
		content.Locks = append(content.Locks, page.Lock{What: lockName(held.Name), Holder: held.Person, Since: held.Since, Abandoned: !isHeld(held, c.Now())})
	}
	if len(content.Pending) > 0 {
		action := v.offer(resumeAction())
		content.Resume = &action
	}
	return &answer{document: struct {
		Operations []progress                `json:"operations"`
		Pending    []schema.ResumedOperation `json:"pending"`
	}{documents, content.Pending}, content: content}, nil
}

// lockName says in words what a lock is for.
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

// resume finishes what was interrupted, by whomever.
func (c *Console) resume(v *visit) (*answer, error) {
	if d := v.denial(v.Context()); d != nil {
		return nil, report.Errorf(report.Forbidden, "%s", d.Reason).WithHint("missing %s", d.Rule)
	}
	planned := &schema.Operation{Operation: "resume", Planned: true, Parts: []schema.OperationPart{}, Notices: []string{}}
	return c.begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		done, err := v.deployer(sink).Resume(ctx, deployer.ResumeOptions{})
		result := *planned
		result.Planned = false
		if done != nil && len(done.Operations) == 0 {
			result.Notices = append(result.Notices, page.Text("operation.nothingToResume"))
		}
		return &result, err
	})
}

// begin starts an operation of the user and leads to its page.
func (c *Console) begin(v *visit, planned *schema.Operation, do work) (*answer, error) {
	op, err := c.operations.begin(v.Identity, planned, "", func(*operation) work { return do })
	if err != nil {
		return nil, err
	}
	return &answer{to: page.URL("operations", op.id)}, nil
}
