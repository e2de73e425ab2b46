package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/solutionctl/solutionctl/schema/report"
)

// barSink shows every running step as one line at the bottom of the terminal, redrawn ten times a second, and prints a line
// that stays when a step ends. The library owns the cursor and the size of the terminal; this package formats the lines.
type barSink struct {
	stream  *Stream
	options Options

	mu     sync.Mutex
	bars   map[key]*bar
	screen *mpb.Progress // made by the first event: most commands never show progress
	closed bool
}

// bar is one running step. The goroutine that draws reads the last event while others replace it.
type bar struct {
	began time.Time
	last  atomic.Pointer[report.Event]
	line  *mpb.Bar
}

func (s *barSink) Emit(e report.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.screen == nil {
		s.screen = mpb.New(mpb.WithOutput(s.stream.Writer), mpb.WithWidth(s.stream.Width),
			mpb.WithAutoRefresh(), mpb.WithRefreshRate(100*time.Millisecond))
	}
	k, now := keyOf(e), s.options.Now()
	b := s.bars[k]
	switch e.State {
	case report.Started, report.Running:
		if b == nil {
			b = &bar{began: now}
			s.bars[k] = b
		}
		b.last.Store(&e)
		if b.line == nil {
			s.add(b)
		}
	case report.Warning:
		s.print(e, 0)
	default:
		var elapsed time.Duration
		if b != nil {
			elapsed = now.Sub(b.began)
			b.remove()
			delete(s.bars, k)
		}
		s.print(e, elapsed)
	}
}

// add puts the line of a step below the others. When the terminal is gone the library accepts no more lines; the error is ignored,
// as it cannot be shown.
func (s *barSink) add(b *bar) {
	draw := func(w io.Writer, stat decor.Statistics) error {
		elapsed := s.options.Now().Sub(b.began)
		_, err := io.WriteString(w, barLine(*b.last.Load(), elapsed, stat.AvailableWidth))
		return err
	}
	// Without a total the library never decides that a step is over; an event does.
	b.line, _ = s.screen.Add(0, mpb.BarFillerFunc(draw), mpb.BarFillerTrim())
}

func (b *bar) remove() {
	if b.line != nil {
		b.line.Abort(true)
	}
	b.line = nil
}

// minWrapped is the width of a terminal from which on a long line becomes several ones.
const minWrapped = 40

// print writes a text that stays above the bars, in lines of at most the width of the terminal: one that the terminal wraps would be
// counted as one and leave a torn bar behind. A note is shown whole, because it may be a fingerprint or the next command.
func (s *barSink) print(e report.Event, elapsed time.Duration) {
	text := line(e, elapsed)
	switch width := s.stream.Width; {
	case width <= 0:
	case e.Note != "" && width >= minWrapped:
		text = runewidth.Wrap(text, width-1)
	default:
		text = runewidth.Truncate(text, width-1, "…")
	}
	switch e.State {
	case report.Failed:
		text = s.stream.Paint(Red, text)
	case report.Skipped:
		text = s.stream.Paint(Faint, text)
	case report.Warning:
		text = s.stream.Paint(Yellow, text)
	}
	_, _ = io.WriteString(s.screen, text+"\n")
}

func (s *barSink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.clear()
}

// Pause removes the bars until the next event of each.
func (s *barSink) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *barSink) clear() {
	if s.screen == nil {
		return
	}
	for _, b := range s.bars {
		b.remove()
	}
	s.screen.Wait()
	s.screen = nil
}

// barLine draws a step in at most width columns: label and note, bar, amount and speed; what does not fit is left out, the
// label, which identifies the step, last. A note replaces the bar, as it is more useful.
func barLine(e report.Event, elapsed time.Duration, width int) string {
	var amount, speed string
	switch {
	case e.Total > 0 && e.Unit == "":
		amount = fmt.Sprintf(" %3d%% %8s / %-8s", percent(e.Done, e.Total), report.Bytes(e.Done), report.Bytes(e.Total))
	case e.Total > 0:
		amount = fmt.Sprintf(" %3d%% %s", percent(e.Done, e.Total), portion(e))
	case e.Done > 0:
		amount = " " + quantity(e.Done, e.Unit)
	default:
		amount = " " + report.Duration(elapsed.Truncate(time.Second))
	}
	if e.Done > 0 && e.Unit == "" && elapsed >= time.Second {
		speed = fmt.Sprintf(" %9s/s", report.Bytes(int64(float64(e.Done)/elapsed.Seconds())))
	}
	const barWidth, labelWidth = 22, 28
	room := width - runewidth.StringWidth(amount)
	text := label(e)
	switch {
	case width <= 0:
		return ""
	case room < 8:
		return runewidth.Truncate(text, width, "…")
	case e.Note != "":
		text += ": " + Line(e.Note)
		return runewidth.FillRight(runewidth.Truncate(text, room, "…"), room) + amount
	}
	gauge := ""
	if e.Total > 0 && room-barWidth >= labelWidth {
		gauge = " " + drawGauge(e.Done, e.Total, barWidth-1)
		room -= barWidth
	}
	if room-len(speed) >= labelWidth {
		room -= len(speed)
	} else {
		speed = ""
	}
	room = min(room, max(labelWidth, width/2))
	return runewidth.FillRight(runewidth.Truncate(text, room, "…"), room) + gauge + amount + speed
}

func drawGauge(done, total int64, width int) string {
	cells := width - 2
	full := cells * percent(done, total) / 100
	head := ""
	if full < cells {
		head = ">"
	}
	return "[" + strings.Repeat("=", full) + head + strings.Repeat(" ", cells-full-len(head)) + "]"
}
