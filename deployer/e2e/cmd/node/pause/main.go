// Command pause holds namespaces: those of a pod, or of a whole machine. It waits for a signal to end, and until then
// it buries the processes whose parents have ended.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.EINTR && pid <= 0 {
				break
			}
		}
	}
}
