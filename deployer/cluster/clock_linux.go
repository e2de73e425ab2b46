package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine started, the time it slept included. Neither the wall clock, which people and
// programs set, nor the monotonic clock, which stands still while a virtual machine is suspended, can say whether a
// promise made to others has run out.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // every kernel that Go runs on has this clock
	}
	return time.Duration(now.Nano())
}
