package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// thisProcess describes this process for [hasEnded], as PLACE/PID/START; "" where that is not known.
var thisProcess = sync.OnceValue(func() string {
	place := thisPlace()
	pid := os.Getpid()
	started, _ := startOf(pid)
	if place == "" || started == "" {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", place, pid, started)
})

// thisPlace is the boot of this host with the namespaces in which process numbers and start times have their meaning, hashed; "" where
// that is not known. Another host, a host that was started again and another container are other places.
func thisPlace() string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "" // /proc shows the processes of another namespace
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(boot) == 0 {
		return ""
	}
	numbers, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	times, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // old kernels have none
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", boot, host, numbers, times))
	return fmt.Sprintf("%x", sum[:8])
}

// hasEnded reports whether a process that thisProcess describes has certainly ended: it is of this place, and no process there has its
// number and its start.
func hasEnded(process string) bool {
	place, rest, _ := strings.Cut(process, "/")
	number, started, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 || place == "" || started == "" || place != thisPlace() {
		return false
	}
	// A process of another user may be hidden in /proc, so that the kernel is asked.
	if err = unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return true
	}
	now, dead := startOf(pid)
	return now != "" && (now != started || dead)
}

// startOf reads when a process started, in clock ticks since the host did, and whether it is dead and only waits for its parent. The
// start is "" when that cannot be read.
func startOf(pid int) (start string, dead bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The name of the program, in parentheses, may have blanks and parentheses.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, threads, started = 0, 17, 19
	if len(fields) <= started {
		return "", false
	}
	return fields[started], (fields[state] == "Z" || fields[state] == "X") && (fields[threads] == "1" || fields[threads] == "0")
}
