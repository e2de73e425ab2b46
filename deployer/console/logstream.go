package console

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	firstLines = 400 * time.Millisecond // after the first one, in which all logs send their last lines
	noLines    = 3 * time.Second        // after which there are none
	logAgain   = 5 * time.Second        // before logs are opened again that broke off
	rightsAge  = 30 * time.Second       // after which is checked again whether the user is allowed to read logs
	logRate    = 4 << 20                // bytes that are read for one page in a second
)

// logStream follows logs for one browser.
type logStream struct {
	*logView
	lines *live.Lines

	mu         sync.Mutex
	namespaces map[string]bool // of lines so far
	second     time.Time       // in which some bytes were read
	bytes      int
}

// follow streams the lines of a Solution to a browser, beginning with the last ones.
func (c logPages) follow(v *web.Visit) (live.Follower, func(), error) {
	l, err := c.logView(v)
	if err != nil {
		return nil, nil, err
	}
	l.o.Follow = true
	s := &logStream{logView: l, lines: live.NewLines(), namespaces: map[string]bool{}}
	ctx, stop := context.WithCancel(v.Context())
	var running sync.WaitGroup
	running.Go(func() { s.follow(ctx) })
	running.Go(func() { s.keepChecking(ctx) })
	return s.lines.Follow, func() { stop(); running.Wait() }, nil
}

// follow reads until ctx ends, over errors that pass.
func (s *logStream) follow(ctx context.Context) {
	for ctx.Err() == nil {
		s.lines.Begin()
		release := time.AfterFunc(noLines, s.lines.Release)
		begun := sync.OnceFunc(func() { release.Reset(firstLines) })
		err := s.reader(func(line schema.LogLine) error {
			s.lines.Add(line.Time, page.LogText(line, s.o.Pod != "" && s.o.Container != ""))
			begun()
			return s.pace(ctx, line)
		}, func(note string) { s.lines.Add(s.Now(), note) }).Run(ctx, s.o)
		release.Stop()
		if ctx.Err() != nil || s.ends(err) {
			return
		}
		s.lines.Interrupt(err)
		select {
		case <-ctx.Done():
		case <-time.After(logAgain):
		}
	}
}

// pace slows reading down to logRate. The caller passes one line at a time.
func (s *logStream) pace(ctx context.Context, line schema.LogLine) error {
	s.mu.Lock()
	s.namespaces[line.Namespace] = true
	now := s.Now()
	if now.Sub(s.second) >= time.Second {
		s.second, s.bytes = now, 0
	}
	s.bytes += len(line.Text)
	wait := s.bytes > logRate
	s.mu.Unlock()
	if !wait {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second - now.Sub(s.second)):
		return nil
	}
}

// ends ends the stream with an error that does not pass: the page shows it.
func (s *logStream) ends(err error) bool {
	switch report.CodeOf(err) {
	case report.Unauthenticated:
		if s.visit.Way != session.ByLink {
			s.server.Sessions.Refuse(s.visit.Identity)
		}
	case report.Forbidden, report.NotFound, report.Usage:
	default:
		return false
	}
	s.lines.End()
	return true
}

// keepChecking ends the stream when the user is no longer allowed to read logs: a log that is open stays open at the API server.
func (s *logStream) keepChecking(ctx context.Context) {
	for checked := s.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		now := s.Now()
		if now.Sub(checked) < rightsAge {
			continue
		}
		checked = now
		s.mu.Lock()
		namespaces := slices.Sorted(maps.Keys(s.namespaces))
		s.mu.Unlock()
		missing, err := s.visit.Cluster.Missing(ctx, logRights(namespaces)...)
		if len(missing) > 0 {
			err = report.Errorf(report.Forbidden, "the right to read logs was taken away")
		}
		if err != nil && ctx.Err() == nil && s.ends(err) {
			return
		}
	}
}

// maxDownload bounds a download, in bytes.
const maxDownload = 100 << 20

// errBound ends a download that is too large.
var errBound = errors.New("too large")

// download sends all lines as a text file.
func (c logPages) download(w http.ResponseWriter, v *web.Visit) {
	l, err := c.logView(v)
	if err != nil {
		c.server.Answer(w, v, v.Failed(err))
		return
	}
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	defer context.AfterFunc(c.server.Context, cancel)()
	l.o.Tail = -1
	name := l.o.Environment + "-" + l.o.Solution + "-" + c.Now().UTC().Format("20060102T150405Z") + ".txt"
	sending, end := newSending(w)
	defer end()
	d := &download{w: sending, name: name}
	out := bufio.NewWriterSize(d, 64<<10)
	err = l.reader(func(line schema.LogLine) error {
		if d.size > maxDownload {
			return errBound
		}
		text := line.Time.UTC().Format(time.RFC3339Nano) + " " + line.Pod + "/" + line.Container + " " + report.Clean(line.Text) + "\n"
		_, broken := io.WriteString(out, text)
		return broken
	}, func(note string) { _, _ = io.WriteString(out, "# "+report.Clean(note)+"\n") }).Run(ctx, l.o)
	switch {
	case errors.Is(err, errBound):
		_, _ = io.WriteString(out, "# "+page.Text("logs.bound", report.Bytes(maxDownload))+"\n")
	case l.isEarly(err):
		_, _ = io.WriteString(out, "# "+report.Clean(err.Error())+"\n")
	case err != nil && d.size == 0 && out.Buffered() == 0:
		c.server.Answer(w, v, v.Failed(err))
		return
	case err != nil:
		_, _ = io.WriteString(out, "# "+page.Text("logs.broken", report.Clean(err.Error()))+"\n")
	}
	_ = out.Flush() // the browser has gone
	if d.size == 0 {
		d.begin()
	}
}

// download is an answer that begins with the first bytes.
type download struct {
	w    http.ResponseWriter
	name string
	size int64
}

func (d *download) begin() {
	h := d.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.name}))
}

func (d *download) Write(data []byte) (int, error) {
	if d.size == 0 {
		d.begin()
	}
	d.size += int64(len(data))
	return d.w.Write(data)
}
