package e2e_test

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// poller is an HTTP client that asks a Service again and again and counts what it is told.
type poller struct {
	stop, stopped chan struct{}
	mutex         sync.Mutex
	answers       int
	failures      []error
	last          []byte
}

// poll starts to ask a Service, until the script ends or wants the result.
func (s *session) poll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !strings.Contains(args[0], "/") || s.poller != nil {
		ts.Fatalf("usage, once: poll NAMESPACE/SERVICE")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	p := &poller{stop: make(chan struct{}), stopped: make(chan struct{})}
	s.poller = p
	ask, err := s.asker(namespace, name)
	ts.Check(err)
	go func() {
		defer close(p.stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				body, err := ask("/info")
				p.note(body, err)
			}
		}
	}()
	ts.Defer(p.end)
}

func (p *poller) note(body []byte, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.answers, p.last = p.answers+1, body
	if err != nil {
		p.failures = append(p.failures, err)
	}
}

func (p *poller) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	<-p.stopped
}

// pollUntil waits for an answer with this text.
func (s *session) pollUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || s.poller == nil {
		ts.Fatalf("usage, after poll: poll-until TEXT")
	}
	deadline := time.Now().Add(patience)
	for {
		s.poller.mutex.Lock()
		last := s.poller.last
		s.poller.mutex.Unlock()
		if bytes.Contains(last, []byte(args[0])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the last answer is %s", last)
		}
		time.Sleep(pollInterval)
	}
}

// pollResult ends the poll; every request must have been answered.
func (s *session) pollResult(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 || s.poller == nil {
		ts.Fatalf("usage, after poll: poll-result")
	}
	s.poller.end()
	ts.Logf("%d requests, %d failed", s.poller.answers, len(s.poller.failures))
	if s.poller.answers == 0 || len(s.poller.failures) > 0 {
		ts.Fatalf("failures: %v", s.poller.failures)
	}
}
