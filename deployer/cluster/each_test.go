package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	broken := errors.New("broken")
	var calls, running, most atomic.Int64
	err := All(100, func(i int) error {
		calls.Add(1)
		now := running.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		defer running.Add(-1)
		if i%50 == 3 {
			return fmt.Errorf("%d: %w", i, broken)
		}
		return nil
	})
	if calls.Load() != 100 || most.Load() > Workers {
		t.Errorf("%d calls, %d at once", calls.Load(), most.Load())
	}
	if !errors.Is(err, broken) || err.Error() != "3: broken\n53: broken" {
		t.Errorf("got %v", err)
	}
	calls.Store(0)
	if err := Each(1000, func(int) error { calls.Add(1); return broken }); err == nil || calls.Load() > Workers {
		t.Errorf("%d calls after the first error", calls.Load())
	}
	many := make([]error, 100)
	for i := range many {
		many[i] = broken
	}
	if err := Join(many); strings.Count(err.Error(), "broken") != shown || !strings.HasSuffix(err.Error(), "and 80 more") {
		t.Errorf("got %v", err)
	}
}
