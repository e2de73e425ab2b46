package live

import (
	"sync"
	"time"
)

// shared is for how long an answer serves the other feeds of a user.
const shared = 2 * time.Second

// Answers are the last answers to requests that several feeds of a user make.
type Answers struct {
	mu   sync.Mutex
	last map[string]*sharedAnswer
}

type sharedAnswer struct {
	mu   sync.Mutex // held while it is being asked for
	at   time.Time
	data []byte
	err  error
}

// Of returns the answer to a request: of the last one, if that was just sent.
func (a *Answers) Of(request string, now func() time.Time, ask func() ([]byte, error)) ([]byte, error) {
	one := a.find(request)
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.at.IsZero() || now().Sub(one.at) >= shared {
		one.data, one.err = ask()
		one.at = now()
	}
	return one.data, one.err
}

// maxAnswers bounds the requests whose answers are kept.
const maxAnswers = 16

func (a *Answers) find(request string) *sharedAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[request] == nil {
		if len(a.last) >= maxAnswers || a.last == nil {
			a.last = map[string]*sharedAnswer{}
		}
		a.last[request] = &sharedAnswer{}
	}
	return a.last[request]
}
