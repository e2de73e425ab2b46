package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// asHolder makes this test program a process that holds a lock.
const asHolder = "SOLUTIONCTL_TEST_HOLDER"

// TestHolderProcess is not a test: it prints how a Lease describes its process, and waits.
func TestHolderProcess(t *testing.T) {
	if os.Getenv(asHolder) == "" {
		t.Skip("runs as another process only")
	}
	fmt.Println(thisProcess())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startHolder starts a process, and returns how a Lease describes it.
func startHolder(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHolderProcess$")
	cmd.Env = append(os.Environ(), asHolder+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), thisPlace()+"/") {
		t.Fatalf("the other process prints %q", lines.Text())
	}
	return cmd, lines.Text()
}

// TestHasEnded: a process has ended only when that is certain.
func TestHasEnded(t *testing.T) {
	t.Parallel()
	cmd, process := startHolder(t)
	place := thisPlace()
	own := thisProcess()
	started, _ := startOf(1)
	for name, test := range map[string]struct {
		process string
		want    bool
	}{
		"this one":                            {own, false},
		"another one":                         {process, false},
		"one of another user":                 {place + "/1/" + started, false},
		"one whose number another has now":    {fmt.Sprintf("%s/%d/1", place, os.Getpid()), true},
		"no such number":                      {place + "/" + strconv.Itoa(1<<30) + "/1", true},
		"one of another host or container":    {strings.Replace(own, place, "0123456789abcdef", 1) + "9", false},
		"one of a place that is not known":    {"/1073741824/1", false},
		"a group of processes":                {place + "/-1/1", false},
		"a Lease of an older version":         {"ABCDEFGH", false},
		"a Lease without a start":             {place + "/1073741824", false},
		"a Lease without a holder":            {"", false},
		"a Lease of a program with odd ideas": {place + "/x/y", false},
	} {
		if got := hasEnded(test.process); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil || hasEnded(process) {
		t.Errorf("stopped: %v, ended %t", err, hasEnded(process))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "it has ended, and its parent has not waited for it", func() bool { return hasEnded(process) })
	_ = cmd.Wait() // it was killed
	if !hasEnded(process) {
		t.Error("it is gone, and has not ended")
	}
}

// TestLockOfKilled: the lock of a killed process of this host is taken although its Lease lasts for an hour, and not before the process
// has ended.
func TestLockOfKilled(t *testing.T) {
	t.Parallel()
	cmd, process := startHolder(t)
	s, c := connected(t, system, strings.Replace(heldBy("bob@host X "+process), "Seconds: 15", "Seconds: 3600", 1))
	c.options.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 20, 0, time.UTC) }
	recorder := &report.Recorder{}
	got := make(chan error)
	go func() {
		l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host", Sink: recorder})
		if err == nil {
			err = l.Check()
		}
		got <- err
	}()
	until(t, "a process waits", func() bool { return len(recorder.Events()) > 0 })
	at := func() (string, bool) {
		t.Helper()
		work, err := c.Work(t.Context(), "env-shop")
		if err != nil {
			t.Fatal(err)
		}
		held, err := c.Locks(t.Context())
		if err != nil || len(held) != 1 {
			t.Fatalf("%+v, %v", held, err)
		}
		return work.Holder, held[0].Promised.After(c.options.Now())
	}
	if holder, promised := at(); leaseIn(s) != "bob@host 7 1h0m0s" || holder != "bob@host" || !promised {
		t.Errorf("while it runs: %s, at work is %q, promised %t", leaseIn(s), holder, promised)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil || leaseIn(s) != "jane@host 8 15s" {
		t.Errorf("%v, %s", err, leaseIn(s))
	}
	s.Put(t, heldBy("bob@host X "+process))
	if holder, promised := at(); holder != "" || promised {
		t.Errorf("after its end: at work is %q, promised %t", holder, promised)
	}
}
