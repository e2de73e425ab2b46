package testcluster

import (
	"os"
	"testing"
)

// TEST_STEP is the step in which .ci/test runs tests: "together" with those of other packages, or "alone". Where it is not set, all run.
const stepVariable = "TEST_STEP"

// Alone marks a test that checks times on a real node, such as that no request is refused while pods come and go. Such
// tests run one after the other, in a step of their own: in the others it is skipped. On a machine where other clusters come and
// go, the kernel alone lets a change of a node's network wait for half a minute.
func Alone(tb testing.TB) {
	tb.Helper()
	if os.Getenv(stepVariable) == "together" {
		tb.Skip("it runs in a step of its own")
	}
}

// Together marks the opposite, for a test that has parts which run alone.
func Together(tb testing.TB) {
	tb.Helper()
	if IsAlone() {
		tb.Skip("it runs together with others")
	}
}

// IsAlone reports whether this is the step of what runs alone.
func IsAlone() bool { return os.Getenv(stepVariable) == "alone" }
