//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// contestant is a command that is measured. Prepare runs before each round and is not measured.
type contestant struct {
	name    string
	command []string
	prepare func() error
}

// sample holds the time and the memory of one run.
type sample struct {
	wall, cpu     time.Duration
	anon          int64 // peak of RssAnon, of the process itself
	read, written int64 // by system calls, of the process and those it waited for
}

// compare runs the contestants in turn and returns the samples of each.
func compare(ctx context.Context, rounds int, contestants ...contestant) ([][]sample, error) {
	samples := make([][]sample, len(contestants))
	for round := range rounds + 1 {
		for i, c := range contestants {
			s, err := measure(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // the first round fills the page cache
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples, nil
}

func measure(ctx context.Context, c contestant) (s sample, err error) {
	if c.prepare != nil {
		if err = c.prepare(); err != nil {
			return s, err
		}
	}
	unix.Sync() // what the last contestant left in the page cache is not this one's to write
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	started := time.Now()
	if err = cmd.Start(); err != nil {
		return s, err
	}
	memory := watchMemory(cmd.Process.Pid)
	var info unix.Siginfo // the exit status stays, to be collected below
	if err = unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		return s, err
	}
	s.wall = time.Since(started)
	s.anon = memory()
	s.read, s.written = ioOf(cmd.Process.Pid)
	if err = cmd.Wait(); err != nil {
		return s, fmt.Errorf("%w: %s", err, output.String())
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, nil
}

// watchMemory samples the memory of a process until the returned function is called, which returns the peak of RssAnon in
// bytes.
func watchMemory(pid int) (peak func() int64) {
	done, highest := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		for {
			most = max(most, field(fmt.Sprintf("/proc/%d/status", pid), "RssAnon:")<<10)
			select {
			case <-done:
				highest <- most
				return
			case <-ticks.C:
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-highest
	}
}

func ioOf(pid int) (read, written int64) {
	name := fmt.Sprintf("/proc/%d/io", pid)
	return field(name, "rchar:"), field(name, "wchar:")
}

// field reads a number from a file of /proc; 0 when it is not there.
func field(name, key string) int64 {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func medianOf[T cmp.Ordered](samples []sample, value func(sample) T) T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	return median(values)
}

// ratio is the median of the ratios of wall times within one round.
func ratio(samples, to []sample) float64 {
	ratios := make([]float64, len(samples))
	for i := range samples {
		ratios[i] = samples[i].wall.Seconds() / to[i].wall.Seconds()
	}
	return median(ratios)
}

// printComparison prints one row for each contestant and compares it with the first. Bytes read and written are divided by
// payload.
func printComparison(title string, payload int64, contestants []contestant, samples [][]sample) {
	fmt.Printf("\n%s\n\n| | wall | to the first | CPU | peak RssAnon | read / payload | written / payload |\n|---|---|---|---|---|---|---|\n", title)
	for i, c := range contestants {
		s := samples[i]
		fmt.Printf("| %s | %.2f s | %.2f | %.2f s | %.1f MiB | %.2f | %.2f |\n", c.name,
			medianOf(s, func(s sample) float64 { return s.wall.Seconds() }), ratio(s, samples[0]),
			medianOf(s, func(s sample) float64 { return s.cpu.Seconds() }),
			float64(medianOf(s, func(s sample) int64 { return s.anon }))/(1<<20),
			float64(medianOf(s, func(s sample) int64 { return s.read }))/float64(payload),
			float64(medianOf(s, func(s sample) int64 { return s.written }))/float64(payload))
	}
}
