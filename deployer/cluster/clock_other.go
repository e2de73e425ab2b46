//go:build !linux

package cluster

import "time"

var processStart = time.Now() //nolint:forbidigo // a point on the monotonic clock, not a time

// bootTime is the time since the process started. These systems build archives; deploying is done on Linux.
func bootTime() time.Duration { return time.Since(processStart) }
