package start

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestPostpone checks that the first collection is late, the later ones are not, and a setting by the user stays in force.
func TestPostpone(t *testing.T) {
	before := debug.SetGCPercent(defaultPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, test := range []struct {
		name      string
		set       int
		at, after uint64
	}{
		{"default", defaultPercent, startPercent, defaultPercent},
		{"set by the user", 50, 50, 50},
		{"switched off", -1, math.MaxUint64, math.MaxUint64},
	} {
		t.Run(test.name, func(t *testing.T) {
			debug.SetGCPercent(test.set)
			postpone()
			if got := percent(); got != test.at {
				t.Fatalf("%d percent at the start, want %d", got, test.at)
			}
			for deadline := time.Now().Add(time.Minute); percent() != test.after && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				runtime.GC()
			}
			if got := percent(); got != test.after {
				t.Errorf("%d percent after the first collection, want %d", got, test.after)
			}
		})
	}
}

// percent returns the GOGC that is in force, without changing it.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
