package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxRunning = 32   // operations at work, of all users
	maxWorking = 16   // of one of them, imports too
	maxKept    = 100  // operations that have ended, of all users; one of the user with the most of them makes room
	maxSteps   = 500  // of an operation; the first ones make room
	maxNote    = 4096 // bytes of a remark on a step
)

// Work carries out an operation, and reports its steps to sink.
type Work func(ctx context.Context, sink report.Sink) (*schema.Operation, error)

// Operation is an operation in progress, or a completed one. It continues without viewers.
type Operation struct {
	ID      string
	owner   *session.Identity
	planned *schema.Operation
	Plan    string // the page of the plan, "" without one
	started time.Time
	stop    context.CancelCauseFunc

	mu       sync.Mutex
	steps    []report.Event // the last of each line of progress
	count    int            // of events so far
	result   *schema.Operation
	err      error
	finished *time.Time
	stopped  *time.Time    // when the user has stopped it
	export   string        // file with data that was exported
	news     chan struct{} // closed with each event, and at the end
}

// Operations are the operations of a console, of all users.
type Operations struct {
	ctx   context.Context // ends them
	now   func() time.Time
	done  sync.WaitGroup
	ended func(owner *session.Identity) // called when an operation of a user has ended

	mu   sync.Mutex
	list []*Operation // the oldest first
}

// NewOperations returns the operations of a console, which end with ctx. It calls ended for each one that has ended.
func NewOperations(ctx context.Context, now func() time.Time, ended func(owner *session.Identity)) *Operations {
	return &Operations{ctx: ctx, now: now, ended: ended}
}

// PlanDigest identifies a plan. The creation of an environment has no digest of its own, so it is computed from the plan.
func PlanDigest(o *schema.Operation) string { return cmp.Or(o.Digest, Digest(o)) }

// CarryingOut returns the operation of a user at work that carries out a plan which this page showed; nil for none. It is the answer to a user who
// sends the plan twice.
func (l *Operations) CarryingOut(owner *session.Identity, plan, digest string) *Operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carryingOut(owner, plan, digest)
}

func (l *Operations) carryingOut(owner *session.Identity, plan, digest string) *Operation {
	at := slices.IndexFunc(l.list, func(op *Operation) bool {
		return op.owner.Key == owner.Key && op.isRunning() && pathOf(op.Plan) == pathOf(plan) && PlanDigest(op.planned) == digest
	})
	if plan == "" || at < 0 {
		return nil
	}
	return l.list[at]
}

func pathOf(page string) string {
	path, _, _ := strings.Cut(page, "?")
	return path
}

// Begin starts an operation of a user. Planned is its plan, and plan the page that showed it, "" for none. A plan that is carried out already is
// not begun again.
func (l *Operations) Begin(owner *session.Identity, planned *schema.Operation, plan string, do func(op *Operation) Work) (*Operation, error) {
	ctx, stop := context.WithCancelCause(l.ctx)
	op := &Operation{ID: rand.Text(), owner: owner, planned: planned, Plan: plan, started: l.now(), stop: stop, news: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if same := l.carryingOut(owner, plan, PlanDigest(planned)); same != nil {
		stop(nil)
		return same, nil
	}
	running, own := 0, 0
	for _, other := range l.list {
		if other.isRunning() {
			running++
			if other.owner.User == owner.User {
				own++
			}
		}
	}
	if running >= maxRunning || own >= maxWorking || ctx.Err() != nil {
		stop(nil)
		if own >= maxWorking {
			return nil, report.Errorf(report.Unavailable, "%s of yours are at work", report.Count(own, "operation")).WithHint("wait until one of them has ended")
		}
		return nil, report.Errorf(report.Unavailable, "%s are at work in this console, or it is about to end", report.Count(running, "operation")).
			WithHint("wait until one of them has ended")
	}
	for len(l.list)-running > maxKept-1 {
		l.displace()
	}
	l.list = append(l.list, op)
	l.done.Go(func() {
		defer stop(nil)
		result, err := do(op)(ctx, op)
		op.end(result, err, l.now())
		l.ended(owner)
	})
	return op, nil
}

// displace drops the oldest ended operation of the user with the most of them, so that users displace no results of others. The caller holds l.mu.
func (l *Operations) displace() {
	of, most := map[string]int{}, 0
	for _, op := range l.list {
		if !op.isRunning() {
			of[op.owner.User]++
			most = max(most, of[op.owner.User])
		}
	}
	at := slices.IndexFunc(l.list, func(op *Operation) bool { return !op.isRunning() && of[op.owner.User] == most })
	l.list = slices.Delete(l.list, at, at+1)
}

// Background runs other work of the console, for which Wait waits, too.
func (l *Operations) Background(work func()) { l.done.Go(work) }

// Find returns an operation of a user; nil where the user has none of this name. Users do not see the operations of others.
func (l *Operations) Find(owner *session.Identity, id string) *Operation {
	for _, op := range l.Of(owner) {
		if op.ID == id {
			return op
		}
	}
	return nil
}

// Of lists the operations of a user, the newest first.
func (l *Operations) Of(owner *session.Identity) []*Operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*Operation
	for _, op := range l.list {
		if op.owner.Key == owner.Key {
			list = append(list, op)
		}
	}
	slices.Reverse(list)
	return list
}

// Running counts the operations of a user that are at work.
func (l *Operations) Running(owner *session.Identity) int {
	n := 0
	for _, op := range l.Of(owner) {
		if op.isRunning() {
			n++
		}
	}
	return n
}

// Wait waits until all operations have ended.
func (l *Operations) Wait() (interrupted int) {
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range l.list {
		if report.CodeOf(op.err) == report.Interrupted {
			interrupted++
		}
	}
	return interrupted
}

// Emit keeps the last event of each step.
func (o *Operation) Emit(e report.Event) {
	if len(e.Note) > maxNote {
		e.Note = strings.ToValidUTF8(e.Note[:maxNote], "") + "…"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	i := slices.IndexFunc(o.steps, func(s report.Event) bool { return s.Step == e.Step && s.Name == e.Name && s.State != report.Warning })
	if i < 0 || e.State == report.Warning {
		if len(o.steps) == maxSteps {
			o.steps = slices.Delete(o.steps, 0, 1)
		}
		o.steps = append(o.steps, e)
	} else {
		o.steps[i] = e
	}
	o.notify()
}

func (o *Operation) end(result *schema.Operation, err error, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result, o.err, o.finished = result, err, &now
	o.notify()
}

// notify wakes the waiting viewers. The caller holds o.mu.
func (o *Operation) notify() {
	close(o.news)
	o.news = make(chan struct{})
}

// stopped is why an operation has ended that its user has stopped.
type stopped struct{}

func (stopped) Error() string { return "the user stopped waiting" }

// Is makes it the end of a context like any other.
func (stopped) Is(target error) bool { return target == context.Canceled }

// StopWaiting interrupts an operation for its user. Applied changes stay.
func (o *Operation) StopWaiting(now time.Time) {
	o.mu.Lock()
	if o.finished == nil && o.stopped == nil {
		o.stopped = &now
	}
	o.mu.Unlock()
	o.stop(stopped{})
}

// SetExport records the file of exported data.
func (o *Operation) SetExport(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.export = path
}

func (o *Operation) isRunning() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.finished == nil
}

// progress returns the number of events so far, and a channel that is closed at the next one: nil when there will be
// none.
func (o *Operation) progress() (count int, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished == nil {
		news = o.news
	}
	return o.count, news
}

// OperationState is an operation at one moment.
type OperationState struct {
	ID       string
	User     string
	Planned  *schema.Operation
	result   *schema.Operation // nil before the end, and where there is none
	Started  time.Time
	Finished *time.Time
	Stopped  *time.Time
	Err      error
	Steps    []report.Event
	Count    int // of events so far
	Export   string
}

// State returns the operation as it is now.
func (o *Operation) State() OperationState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return OperationState{
		ID: o.ID, User: o.owner.User, Planned: o.planned, result: o.result, Started: o.started, Finished: o.finished, Stopped: o.stopped, Err: o.err,
		Steps: slices.Clone(o.steps), Count: o.count, Export: o.export,
	}
}

// Operation returns the result of the operation, or its plan while there is no result.
func (m OperationState) Operation() *schema.Operation {
	if m.result != nil {
		return m.result
	}
	return m.Planned
}

// Running is the operation as pages show it.
func (m OperationState) Running() page.Running {
	return page.Running{Stopped: m.Stopped != nil && m.Err != nil, ID: m.ID, Operation: m.Operation(), User: m.User, Started: m.Started, Finished: m.Finished, Failed: m.Err != nil}
}
