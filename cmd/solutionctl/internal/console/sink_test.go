package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// clock is a clock that only moves when the test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// story is the input of every sink: a pull with many small advances, a skipped step, a hostile failure, and a step that
// never ends. Every event comes one second after the one before.
var story = []report.Event{
	{Step: "resolve", Name: "ui:1.0.0", State: report.Started},
	{Step: "resolve", Name: "ui:1.0.0", State: report.Done},
	{Step: "pull", Name: "ui:1.0.0", State: report.Started, Total: 4 << 20},
	{Step: "pull", Name: "ui:1.0.0", State: report.Running, Done: 1 << 20, Total: 4 << 20},
	{Step: "pull", Name: "operator:1.0.0", State: report.Skipped, Note: "already there"},
	{Step: "pull", Name: "ui:1.0.0", State: report.Running, Done: 3 << 20, Total: 4 << 20},
	{Step: "pull", Name: "ui:1.0.0", State: report.Done, Done: 4 << 20, Total: 4 << 20},
	{Step: "check", Name: "a\x1b[2Jb", State: report.Failed, Note: "line 1\nline 2"},
	{Step: "write", State: report.Running, Done: 7},
}

func TestSinks(t *testing.T) {
	for _, test := range []struct {
		name    string
		mode    console.Mode
		tty     bool
		verbose bool
		want    []string
	}{
		{name: "plain", mode: console.Plain, want: []string{
			"resolve ui:1.0.0: done after 1.0s",
			"pull operator:1.0.0: skipped (already there)",
			"pull ui:1.0.0: done, 4.0 MiB in 4.0s",
			`check a\u001b[2Jb: failed (line 1 line 2)`,
		}},
		{name: "auto without a terminal", mode: console.Auto, want: []string{
			"resolve ui:1.0.0: done after 1.0s",
			"pull operator:1.0.0: skipped (already there)",
			"pull ui:1.0.0: done, 4.0 MiB in 4.0s",
			`check a\u001b[2Jb: failed (line 1 line 2)`,
		}},
		{name: "verbose", mode: console.Plain, verbose: true, want: []string{
			"resolve ui:1.0.0: started",
			"resolve ui:1.0.0: done after 1.0s",
			"pull ui:1.0.0: started",
			"pull ui:1.0.0: 25%, 1.0 MiB of 4.0 MiB after 1.0s",
			"pull operator:1.0.0: skipped (already there)",
			"pull ui:1.0.0: 75%, 3.0 MiB of 4.0 MiB after 3.0s",
			"pull ui:1.0.0: done, 4.0 MiB in 4.0s",
			`check a\u001b[2Jb: failed (line 1 line 2)`,
		}},
		{name: "none", mode: console.None, want: nil},
		{name: "auto on a terminal", mode: console.Auto, tty: true, want: []string{
			"resolve ui:1.0.0: done after 1.0s",
			"pull operator:1.0.0: skipped (already there)",
			"pull ui:1.0.0: done, 4.0 MiB in 4.0s",
			`check a\u001b[2Jb: failed (line 1 line 2)`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			clock := newClock()
			stream := &console.Stream{Writer: &out, TTY: test.tty, Width: 100}
			sink := console.NewSink(test.mode, stream, console.Options{Verbose: test.verbose, Now: clock.Now})
			for _, e := range story {
				sink.Emit(e)
				clock.advance(time.Second)
			}
			sink.Close()
			sink.Emit(report.Event{Step: "late", State: report.Done})
			sink.Close()
			if diff := cmp.Diff(test.want, screen(t, out.String())); diff != "" {
				t.Errorf("the screen at the end (-want +got):\n%s", diff)
			}
		})
	}
}

// rollout has the events of a deployment: objects instead of bytes, notes about what it waits for, a warning beside a step
// that continues.
var rollout = []report.Event{
	{Step: "lock", Name: "env-demo", State: report.Started, Note: "held by alice@node1"},
	{Step: "lock", Name: "env-demo", State: report.Done},
	{Step: "apply", Name: "demo", State: report.Started, Total: 40, Unit: "objects"},
	{Step: "apply", Name: "demo", State: report.Running, Done: 20, Total: 40, Unit: "objects"},
	{Step: "apply", Name: "demo", State: report.Warning, Note: "v1 Endpoints is deprecated"},
	{Step: "apply", Name: "demo", State: report.Done, Done: 40, Total: 40, Unit: "objects"},
	{Step: "wait", Name: "demo", State: report.Running, Done: 39, Total: 40, Unit: "objects", Note: "Deployment web: 0 of 1 pods are ready"},
	{Step: "wait", Name: "demo", State: report.Running, Done: 39, Total: 40, Unit: "objects", Note: "pod web-1: container web: image web:1 cannot be pulled: not found"},
	{Step: "wait", Name: "demo", State: report.Done},
}

func TestRollout(t *testing.T) {
	stays := []string{
		"lock env-demo: done after 1.0s",
		"apply demo: warning (v1 Endpoints is deprecated)",
		"apply demo: done, 40 objects in 3.0s",
		"wait demo: done after 2.0s",
	}
	for _, test := range []struct {
		name    string
		mode    console.Mode
		verbose bool
		want    []string
	}{
		{name: "bars", mode: console.Bar, want: stays},
		{name: "plain", mode: console.Plain, want: append([]string{"lock env-demo: started (held by alice@node1)"}, stays...)},
		{name: "verbose", mode: console.Plain, verbose: true, want: []string{
			"lock env-demo: started (held by alice@node1)",
			"lock env-demo: done after 1.0s",
			"apply demo: started",
			"apply demo: 50%, 20 of 40 objects after 1.0s",
			"apply demo: warning (v1 Endpoints is deprecated)",
			"apply demo: done, 40 objects in 3.0s",
			"wait demo: 97%, 39 of 40 objects after 1.0s (pod web-1: container web: image web:1 cannot be pulled: not found)",
			"wait demo: done after 2.0s",
		}},
		{name: "JSON", mode: console.JSON, want: []string{
			`{"type":"event","time":"2026-01-02T03:04:05Z","step":"lock","name":"env-demo","state":"started","note":"held by alice@node1"}`,
			`{"type":"event","time":"2026-01-02T03:04:06Z","step":"lock","name":"env-demo","state":"done"}`,
			`{"type":"event","time":"2026-01-02T03:04:07Z","step":"apply","name":"demo","state":"started","total":40,"unit":"objects"}`,
			`{"type":"event","time":"2026-01-02T03:04:08Z","step":"apply","name":"demo","state":"running","done":20,"total":40,"unit":"objects"}`,
			`{"type":"event","time":"2026-01-02T03:04:09Z","step":"apply","name":"demo","state":"warning","note":"v1 Endpoints is deprecated"}`,
			`{"type":"event","time":"2026-01-02T03:04:10Z","step":"apply","name":"demo","state":"done","done":40,"total":40,"unit":"objects"}`,
			`{"type":"event","time":"2026-01-02T03:04:12Z","step":"wait","name":"demo","state":"running","done":39,"total":40,"unit":"objects","note":"pod web-1: container web: image web:1 cannot be pulled: not found"}`,
			`{"type":"event","time":"2026-01-02T03:04:13Z","step":"wait","name":"demo","state":"done"}`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			clock := newClock()
			stream := &console.Stream{Writer: &out, TTY: test.mode == console.Bar, Width: 100}
			sink := console.NewSink(test.mode, stream, console.Options{Verbose: test.verbose, Now: clock.Now})
			for _, e := range rollout {
				sink.Emit(e)
				clock.advance(time.Second)
			}
			sink.Close()
			if diff := cmp.Diff(test.want, screen(t, out.String())); diff != "" {
				t.Errorf("the screen at the end (-want +got):\n%s", diff)
			}
		})
	}
}

// screen replays output that moves the cursor only up ("CSI n A", "CSI J" clears from there) and returns the lines that
// are left.
func screen(t *testing.T, output string) []string {
	t.Helper()
	var lines []string
	for output != "" {
		if m := regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`).FindStringSubmatch(output); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil || n > len(lines) {
				t.Fatalf("cursor up by %s after %d lines: %v", m[1], len(lines), err)
			}
			lines = lines[:len(lines)-n]
			output = output[len(m[0]):]
			continue
		}
		line, rest, _ := strings.Cut(output, "\n")
		lines = append(lines, line)
		output = rest
	}
	return lines
}

func TestJSONSinkWritesOneTypedObjectPerLine(t *testing.T) {
	var out bytes.Buffer
	clock := newClock()
	sink := console.NewSink(console.JSON, &console.Stream{Writer: &out}, console.Options{Now: clock.Now})
	for i := range int64(100) { // 100 advances in ten seconds: one a second is enough
		sink.Emit(report.Event{Step: "pull", Name: "a<b", State: report.Running, Done: i, Total: 100})
		clock.advance(100 * time.Millisecond)
	}
	sink.Emit(report.Event{Step: "pull", Name: "a<b", State: report.Done, Done: 100, Total: 100})
	sink.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 10 {
		t.Errorf("got %d lines, want 9 advances and the end:\n%s", len(lines), out.String())
	}
	want := `{"type":"event","time":"2026-01-02T03:04:15Z","step":"pull","name":"a<b","state":"done","done":100,"total":100}`
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestBarsStayWithinTheTerminal draws many steps on a screen of every width and looks at each line ever written.
func TestBarsStayWithinTheTerminal(t *testing.T) {
	for _, width := range []int{1, 10, 20, 40, 57, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var out bytes.Buffer
			clock := newClock()
			stream := &console.Stream{Writer: &out, TTY: true, Width: width}
			sink := console.NewSink(console.Bar, stream, console.Options{Now: clock.Now})
			var group sync.WaitGroup
			for worker := range 8 {
				group.Go(func() {
					name := fmt.Sprintf("storage-operator-日本-with-a-long-name-%d:1.0.0", worker)
					for done := range int64(1000) {
						sink.Emit(report.Event{Step: "pull", Name: name, State: report.Running, Done: done << 20, Total: 1000 << 20})
						clock.advance(time.Millisecond)
					}
					if worker%2 == 0 {
						sink.Emit(report.Event{Step: "pull", Name: name, State: report.Done, Done: 1000 << 20})
					}
				})
			}
			group.Wait()
			sink.Close()
			for line := range strings.SplitSeq(out.String(), "\n") {
				line = regexp.MustCompile(`\x1b\[\d*[AJ]`).ReplaceAllString(line, "")
				if n := console.TextWidth(line); n > width {
					t.Fatalf("%d columns: %q", n, line)
				}
			}
			if got := screen(t, out.String()); len(got) != 4 {
				t.Errorf("%d lines stay, want one for each finished step: %q", len(got), got)
			}
		})
	}
}

// TestPause asks a question while a step runs: everything before it is written, no bar is left, and the next event shows the step again.
func TestPause(t *testing.T) {
	var out bytes.Buffer
	clock := newClock()
	sink := console.NewSink(console.Bar, &console.Stream{Writer: &out, TTY: true, Width: 40}, console.Options{Now: clock.Now})
	sink.Emit(report.Event{Step: "pull", Name: "ui", State: report.Started})
	sink.Emit(report.Event{Step: "key", Name: "acme", State: report.Done, Note: "give acme.pub to others, with its fingerprint 0123456789abcde"})
	sink.Pause()
	fmt.Fprintln(&out, "A question? y")
	clock.advance(2 * time.Second)
	sink.Emit(report.Event{Step: "pull", Name: "ui", State: report.Running, Done: 1, Total: 2})
	clock.advance(time.Second)
	sink.Emit(report.Event{Step: "pull", Name: "ui", State: report.Done})
	sink.Close()
	want := []string{"key acme: done (give acme.pub to others", ", with its fingerprint 0123456789abcde)", "A question? y", "pull ui: done after 3.0s"}
	if diff := cmp.Diff(want, screen(t, out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A program shows the progress of a transfer in its log.
func ExampleNewSink() {
	stream := &console.Stream{Writer: os.Stdout}
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	sink := console.NewSink(console.Auto, stream, console.Options{Now: now})
	defer sink.Close()
	sink.Emit(report.Event{Step: "pull", Name: "ui:1.0.0", State: report.Started, Total: 3 << 19})
	sink.Emit(report.Event{Step: "pull", Name: "ui:1.0.0", State: report.Done, Done: 3 << 19, Total: 3 << 19})
	// Output: pull ui:1.0.0: done, 1.5 MiB
}
