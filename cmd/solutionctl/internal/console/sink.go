package console

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Mode is a way to show progress.
type Mode string

// The modes. Auto is Bar on a terminal and Plain elsewhere.
const (
	Auto  Mode = "auto"
	Bar   Mode = "bar"
	Plain Mode = "plain"
	JSON  Mode = "json"
	None  Mode = "none"
)

// Modes lists every mode, the default first.
func Modes() []string {
	return []string{string(Auto), string(Bar), string(Plain), string(JSON), string(None)}
}

// For returns the mode that Auto stands for on this stream, and any other mode as it is.
func (m Mode) For(s *Stream) Mode {
	switch {
	case m != Auto:
		return m
	case s.TTY:
		return Bar
	default:
		return Plain
	}
}

// Sink shows events until it is closed. Close leaves the screen clean and waits for what still has to be written; events
// that come later are ignored, and so is another Close.
type Sink interface {
	report.Sink
	// Pause leaves the screen clean, for a question. The next event continues.
	Pause()
	Close()
}

// Options changes what a sink shows.
type Options struct {
	Verbose bool             // also say when a step starts, and report on running ones more often
	Now     func() time.Time // the clock; required
}

// NewSink returns the sink that shows progress on s in the given mode.
func NewSink(mode Mode, s *Stream, o Options) Sink {
	switch mode.For(s) {
	case Bar:
		return &barSink{stream: s, options: o, bars: map[key]*bar{}}
	case JSON:
		return &jsonSink{stream: s, steps: newSteps(o.Now, time.Second)}
	case None:
		return noSink{report.Discard}
	default:
		interval := 10 * time.Second
		if o.Verbose {
			interval = time.Second
		}
		return &plainSink{stream: s, verbose: o.Verbose, steps: newSteps(o.Now, interval)}
	}
}

type noSink struct{ report.Sink }

func (noSink) Pause() {}
func (noSink) Close() {}

// key identifies one line of progress.
type key struct{ step, name string }

func keyOf(e report.Event) key { return key{e.Step, e.Name} }

// steps remembers when each step began and when it was last shown. Its methods may be called by one goroutine at a
// time.
type steps struct {
	sync.Mutex
	now      func() time.Time
	interval time.Duration
	began    map[key]time.Time
	shown    map[key]time.Time
	closed   bool
}

func newSteps(now func() time.Time, interval time.Duration) *steps {
	return &steps{now: now, interval: interval, began: map[key]time.Time{}, shown: map[key]time.Time{}}
}

// observe reports whether e is worth a line now, the time, and for how long its step has been running. Only running
// events are held back, until interval has passed since the last line of the same step.
func (s *steps) observe(e report.Event) (show bool, now time.Time, elapsed time.Duration) {
	k, now := keyOf(e), s.now()
	if e.State == report.Warning {
		return !s.closed, now, 0
	}
	began, known := s.began[k]
	if !known {
		began = now
		s.began[k], s.shown[k] = now, now
	}
	elapsed = now.Sub(began)
	switch e.State {
	case report.Running:
		if now.Sub(s.shown[k]) < s.interval {
			return false, now, elapsed
		}
	case report.Done, report.Skipped, report.Failed:
		delete(s.began, k)
		delete(s.shown, k)
		return !s.closed, now, elapsed
	}
	s.shown[k] = now
	return !s.closed, now, elapsed
}

// Pause does nothing: lines are never redrawn.
func (s *steps) Pause() {}

// Close makes the sink ignore what comes later.
func (s *steps) Close() {
	s.Lock()
	defer s.Unlock()
	s.closed = true
}

// line returns the one line of text that describes an event, elapsed after its step began.
func line(e report.Event, elapsed time.Duration) string {
	text := label(e) + ": "
	switch {
	case e.State == report.Running && e.Total > 0:
		text += fmt.Sprintf("%d%%, %s", percent(e.Done, e.Total), portion(e))
	case e.State == report.Running && e.Done > 0:
		text += quantity(e.Done, e.Unit)
	default:
		text += string(e.State)
	}
	switch {
	case e.State == report.Done && e.Done > 0 && elapsed >= time.Millisecond:
		text += fmt.Sprintf(", %s in %s", quantity(e.Done, e.Unit), report.Duration(elapsed))
	case e.State == report.Done && e.Done > 0:
		text += ", " + quantity(e.Done, e.Unit)
	case e.State == report.Done && elapsed >= time.Second, e.State == report.Running:
		text += " after " + report.Duration(elapsed)
	}
	if e.Note != "" {
		text += " (" + Line(e.Note) + ")"
	}
	return text
}

func label(e report.Event) string {
	if e.Name == "" {
		return Line(e.Step)
	}
	return Line(e.Step + " " + e.Name)
}

// quantity returns a number with its unit; without one, it is a number of bytes.
func quantity(n int64, unit string) string {
	if unit == "" {
		return report.Bytes(n)
	}
	return report.Count(int(n), strings.TrimSuffix(Line(unit), "s"))
}

// portion returns the progress of an event: the part that is done, and the total where that is known.
func portion(e report.Event) string {
	if e.Unit == "" {
		return report.Bytes(e.Done) + " of " + report.Bytes(e.Total)
	}
	return fmt.Sprintf("%d of %s", e.Done, quantity(e.Total, e.Unit))
}

// percent returns the part of total that is done, at most 100 even when a source turns out longer than announced.
func percent(done, total int64) int {
	return int(min(float64(done)/float64(total), 1) * 100)
}
