package console

import (
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
	maxKept    = 100  // operations that have ended, of all users
	maxSteps   = 500  // of an operation; the first ones make room
	maxNote    = 4096 // bytes of a remark on a step
)

// work is what an operation does, and reports to its sink.
type work func(ctx context.Context, sink report.Sink) (*schema.Operation, error)

// operation is a verb at work, or one that has ended. It goes on when nobody looks.
type operation struct {
	id      string
	owner   *session.Identity
	planned *schema.Operation
	plan    string // the page of the plan, "" for what has none
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

// operations are those of a console.
type operations struct {
	ctx   context.Context // ends them
	now   func() time.Time
	done  sync.WaitGroup
	ended func(owner *session.Identity) // called when an operation of a user has ended

	mu   sync.Mutex
	list []*operation // the oldest first
}

// newOperations returns the operations of a console, which end with ctx. It calls ended for each one that has ended.
func newOperations(ctx context.Context, now func() time.Time, ended func(owner *session.Identity)) *operations {
	return &operations{ctx: ctx, now: now, ended: ended}
}

// begin starts an operation. Planned says what it is, and plan is the page that showed it, "" where there was none.
func (l *operations) begin(owner *session.Identity, planned *schema.Operation, plan string, do func(op *operation) work) (*operation, error) {
	ctx, stop := context.WithCancelCause(l.ctx)
	op := &operation{id: rand.Text(), owner: owner, planned: planned, plan: plan, started: l.now(), stop: stop, news: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	running := 0
	for _, other := range l.list {
		if other.isRunning() {
			running++
		}
	}
	if running >= maxRunning || ctx.Err() != nil {
		stop(nil)
		return nil, report.Errorf(report.Unavailable, "%s are at work in this console, or it is about to end", report.Count(running, "operation")).
			WithHint("wait until one of them has ended")
	}
	l.list = append(l.list, op)
	for i := 0; len(l.list)-running > maxKept && i < len(l.list); i++ {
		if !l.list[i].isRunning() {
			l.list = slices.Delete(l.list, i, i+1)
			i--
		}
	}
	l.done.Go(func() {
		defer stop(nil)
		result, err := do(op)(ctx, op)
		op.end(result, err, l.now())
		l.ended(owner)
	})
	return op, nil
}

// background runs other work of the console, for which wait waits, too.
func (l *operations) background(work func()) { l.done.Go(work) }

// find returns an operation of a user; nil where the user has none of this name. What others do is not for everybody's eyes.
func (l *operations) find(owner *session.Identity, id string) *operation {
	for _, op := range l.of(owner) {
		if op.id == id {
			return op
		}
	}
	return nil
}

// of lists the operations of a user, the newest first.
func (l *operations) of(owner *session.Identity) []*operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*operation
	for _, op := range l.list {
		if op.owner.Key == owner.Key {
			list = append(list, op)
		}
	}
	slices.Reverse(list)
	return list
}

func (l *operations) running(owner *session.Identity) int {
	n := 0
	for _, op := range l.of(owner) {
		if op.isRunning() {
			n++
		}
	}
	return n
}

// wait waits until all operations have ended.
func (l *operations) wait() (interrupted int) {
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
func (o *operation) Emit(e report.Event) {
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
	o.tell()
}

func (o *operation) end(result *schema.Operation, err error, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result, o.err, o.finished = result, err, &now
	o.tell()
}

// tell wakes who waits for news. The caller holds o.mu.
func (o *operation) tell() {
	close(o.news)
	o.news = make(chan struct{})
}

// stopped is why an operation has ended that its user has stopped.
type stopped struct{}

func (stopped) Error() string { return "the user stopped waiting" }

// Is makes it the end of a context like any other.
func (stopped) Is(target error) bool { return target == context.Canceled }

// stopWaiting ends an operation before it is done. What it has begun stays.
func (o *operation) stopWaiting(now time.Time) {
	o.mu.Lock()
	if o.finished == nil && o.stopped == nil {
		o.stopped = &now
	}
	o.mu.Unlock()
	o.stop(stopped{})
}

// exported remembers the file with data that was exported.
func (o *operation) exported(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.export = path
}

func (o *operation) isRunning() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.finished == nil
}

// progress is the number of events so far, and what is closed at the next one: nil when there will be none.
func (o *operation) progress() (count int, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished == nil {
		news = o.news
	}
	return o.count, news
}

// moment is an operation as it is now.
type moment struct {
	id       string
	user     string
	planned  *schema.Operation
	result   *schema.Operation // nil before the end, and where there is none
	started  time.Time
	finished *time.Time
	stopped  *time.Time
	err      error
	steps    []report.Event
	count    int // of events so far
	export   string
}

func (o *operation) now() moment {
	o.mu.Lock()
	defer o.mu.Unlock()
	return moment{
		id: o.id, user: o.owner.User, planned: o.planned, result: o.result, started: o.started, finished: o.finished, stopped: o.stopped, err: o.err,
		steps: slices.Clone(o.steps), count: o.count, export: o.export,
	}
}

// operation is what the operation did, or would do while there is no result.
func (m moment) operation() *schema.Operation {
	if m.result != nil {
		return m.result
	}
	return m.planned
}

// running is the operation as pages show it.
func (m moment) running() page.Running {
	return page.Running{Stopped: m.stopped != nil && m.err != nil, ID: m.id, Operation: m.operation(), User: m.user, Started: m.started, Finished: m.finished, Failed: m.err != nil}
}
