package console

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// plainSink writes one line for what has ended and, now and then, one for what is running: for logs.
type plainSink struct {
	stream  *Stream
	verbose bool
	*steps
}

func (p *plainSink) Emit(e report.Event) {
	p.Lock()
	defer p.Unlock()
	show, _, elapsed := p.observe(e)
	// That a step starts is news only when it starts by waiting for something.
	if !show || e.State == report.Started && !p.verbose && e.Note == "" {
		return
	}
	fmt.Fprintln(p.stream, line(e, elapsed))
}

// jsonSink writes one JSON object per line, for programs. Every line carries its type, because an error comes on the
// same stream.
type jsonSink struct {
	stream *Stream
	*steps
}

type jsonEvent struct {
	Type string `json:"type"`
	Time string `json:"time"`
	report.Event
}

func (j *jsonSink) Emit(e report.Event) {
	j.Lock()
	defer j.Unlock()
	show, now, _ := j.observe(e)
	if !show {
		return
	}
	WriteJSONLine(j.stream, jsonEvent{Type: "event", Time: now.UTC().Format(time.RFC3339), Event: e})
}

// WriteJSONLine writes v, which must be encodable, as one line of JSON. Write errors are ignored: only the stream that just
// failed could show them.
func WriteJSONLine(s *Stream, v any) {
	encoder := json.NewEncoder(s)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
}
