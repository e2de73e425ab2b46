package testcluster

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Deadline returns for how long a test waits for a condition that takes at most d on a machine that does nothing else: longer by as
// much as more programs want to run than there are processors. What a test waits for is a condition, so that a long deadline costs
// nothing where all is well. It holds for waits only: what a user is promised is not longer on a busy machine.
func Deadline(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slowness(readLoad(), runtime.NumCPU()))
}

// The load is an average of a minute, and a burst is not in it yet: no deadline is less than doubled.
const leastSlowness, mostSlowness = 2, 12

// slowness is by how much longer things may take at a load.
func slowness(load float64, processors int) float64 {
	return min(max(2*load/float64(processors), leastSlowness), mostSlowness)
}

// readLoad is the average number of programs that want to run, 0 if it is unknown.
func readLoad() (load float64) {
	data, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(data), &load)
	}
	if err != nil {
		return 0
	}
	return load
}
