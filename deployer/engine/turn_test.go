package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTakeTurn checks that the timeout of a run begins when the run gets a place, which it gives back once.
func TestTakeTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := make(chan struct{}, 1)
		other, r := &run{timeout: time.Minute}, &run{timeout: time.Minute}
		defer other.takeTurn(t.Context(), places)()
		time.AfterFunc(time.Hour, other.leave)
		defer r.takeTurn(t.Context(), places)()
		if end, _ := r.waitCtx.Deadline(); time.Until(end) != time.Minute {
			t.Errorf("it has %v left", time.Until(end))
		}
		r.leave()
		r.leave()
	})
}
