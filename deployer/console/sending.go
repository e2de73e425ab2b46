package console

import (
	"net/http"
	"time"
)

// sendingWait is the time for a browser to take a part of a long answer.
const sendingWait = 30 * time.Second

// sending is an answer of any length. It has a deadline only while it writes: over HTTP/2 a deadline ends a stream that waits for more data.
type sending struct{ http.ResponseWriter }

// newSending clears the deadline of the whole answer. The caller calls end after the last write.
func newSending(w http.ResponseWriter) (s sending, end func()) {
	s = sending{w}
	s.setDeadline(time.Time{})
	return s, s.allow
}

func (s sending) Write(data []byte) (int, error) {
	s.allow()
	defer s.setDeadline(time.Time{})
	return s.ResponseWriter.Write(data)
}

func (s sending) allow() {
	s.setDeadline(time.Now().Add(sendingWait)) //nolint:forbidigo // a deadline of the network is not a time that people read
}

func (s sending) setDeadline(at time.Time) {
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(at)
}
