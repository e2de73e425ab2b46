// Program is what runs in the containers of the tests: it fails in the way that its argument names.
package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	switch what, rest, _ := strings.Cut(strings.Join(os.Args[1:], " "), " "); what {
	case "crash":
		if err := os.WriteFile("/dev/termination-log", []byte(rest), 0o600); err != nil {
			panic(err)
		}
		os.Stdout.WriteString(rest + "\n")
		os.Exit(3)
	case "exit":
		os.Exit(1)
	default:
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
	}
}
