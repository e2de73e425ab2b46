package logs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxLine bounds a line in bytes. A longer one is passed on in pieces.
const maxLine = 64 << 10

// colour matches what sets the colours of a terminal. Programs write it to pipes as well, where it would hide words from filters.
var colour = lazyregexp.New(`\x1b\[[0-9;:]*m`)

// copy passes on what a log has after a moment, until the log ends, and returns the time of its last line. Where logs are followed, a
// connection that breaks off ends it as well. The whole log is passed on where it began in this run.
func (r *run) copy(ctx context.Context, s source, after time.Time, whole bool) (last time.Time, err error) {
	o := cluster.LogOptions{Container: s.container, Follow: r.o.Follow, Previous: r.o.Previous, Since: r.since, Tail: r.o.Tail}
	if last = after; whole || !last.IsZero() {
		o.Since, o.Tail = last, -1
	}
	stream, err := r.Survey.Cluster.OpenLogs(ctx, s.namespace, s.pod, o)
	if err != nil {
		return last, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	lines := bufio.NewReaderSize(stream, maxLine)
	begin := true // of a line
	for {
		piece, more, err := lines.ReadLine()
		if err != nil {
			return last, r.ended(err)
		}
		text := string(piece)
		if begin {
			var at time.Time
			if at, text = cutTime(text); !at.IsZero() {
				if !at.After(after) {
					if err = skip(lines, more); err != nil {
						return last, r.ended(err)
					}
					continue
				}
				last = at
			}
		}
		begin = !more
		if err = r.line(schema.LogLine{Namespace: s.namespace, Pod: s.pod, Container: s.container, Time: last, Text: colour.ReplaceAllString(text, "")}); err != nil {
			return last, errRefused{err}
		}
	}
}

// ended is the error with which a log ends. One that is followed is opened again.
func (r *run) ended(err error) error {
	if errors.Is(err, io.EOF) || r.o.Follow {
		return nil
	}
	return report.Errorf(report.Unavailable, "it broke off: %w", err).WithHint("run the command again")
}

// errRefused is an error of the caller, who takes no more lines.
type errRefused struct{ error }

func (e errRefused) Unwrap() error { return e.error }

func (r *run) line(l schema.LogLine) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Line(l)
}

// skip reads the rest of a line.
func skip(lines *bufio.Reader, more bool) (err error) {
	for more && err == nil {
		_, more, err = lines.ReadLine()
	}
	return err
}

// cutTime takes the time off a line.
func cutTime(line string) (time.Time, string) {
	word, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		return time.Time{}, line
	}
	return at, rest
}

// reopenPause is how long to wait before a log that broke off is opened again.
const reopenPause = time.Second

// copyAll copies a log until its container ends, over connections that break off.
func (r *run) copyAll(ctx context.Context, s source, whole bool) error {
	var last time.Time
	for {
		next, err := r.copy(ctx, s, last, whole)
		if refused, ok := errors.AsType[errRefused](err); ok {
			return refused.error
		}
		if report.CodeOf(err) == report.Forbidden {
			return err
		}
		last = next
		if ctx.Err() != nil || !r.runs(ctx, s) {
			return nil
		}
		_ = cluster.Sleep(ctx, reopenPause) // the next call sees the end of ctx
	}
}

// runs reports whether a container still runs. One that cannot be asked for may.
func (r *run) runs(ctx context.Context, s source) bool {
	object, err := r.Survey.Cluster.Get(ctx, cluster.PodKind, s.namespace, s.pod)
	if err != nil {
		return true
	}
	var pod corev1.Pod
	if object == nil || string(object.GetUID()) != s.uid || survey.Convert(object, &pod) != nil {
		return false
	}
	for _, c := range r.containers(&pod) {
		if c.container == s.container {
			return c.running && c.restarts == s.restarts
		}
	}
	return false
}
