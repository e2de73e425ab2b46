package sbom

import (
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
)

// progress reports how many bytes of layers were read.
type progress struct {
	sink        report.Sink
	mu          sync.Mutex
	read, total int64
}

const progressStep = "scan"

func newProgress(sink report.Sink, total int64) *progress {
	if sink == nil {
		sink = report.Discard
	}
	sink.Emit(report.Event{Step: progressStep, Name: "layers", State: report.Started, Total: total})
	return &progress{sink: sink, total: total}
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += n
	p.sink.Emit(report.Event{Step: progressStep, Name: "layers", State: report.Running, Done: p.read, Total: p.total})
}

func (p *progress) done() {
	p.sink.Emit(report.Event{Step: progressStep, Name: "layers", State: report.Done, Done: p.total, Total: p.total})
}
