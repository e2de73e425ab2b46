package start

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestPostpone checks that collections are late during the start only, and that a setting by the user stays in force.
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
				t.Errorf("%d percent during the start, want %d", got, test.at)
			}
			End()
			if got := percent(); got != test.after {
				t.Errorf("%d percent after it, want %d", got, test.after)
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
