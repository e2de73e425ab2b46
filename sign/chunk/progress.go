package chunk

import (
	"sync/atomic"

	"github.com/solutionctl/solutionctl/schema/report"
)

// progressStep is the number of bytes between two events: often enough for a bar, too seldom to cost anything.
const progressStep = 32 << 20

// tracker turns counted bytes into progress events. It may be used by several goroutines.
type tracker struct {
	sink  report.Sink
	step  string
	total int64
	done  atomic.Int64
}

func (t *tracker) add(n int64) {
	done := t.done.Add(n)
	switch {
	case done >= t.total:
		t.sink.Emit(report.Event{Step: t.step, State: report.Done, Done: done, Total: t.total})
	case done/progressStep != (done-n)/progressStep:
		t.sink.Emit(report.Event{Step: t.step, State: report.Running, Done: done, Total: t.total})
	}
}
