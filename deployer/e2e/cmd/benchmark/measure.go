//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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

// sample holds what one process took.
type sample struct {
	wall, cpu     time.Duration
	anon          int64 // peak of RssAnon, of the process itself
	read, written int64 // by system calls, of the process and those it waited for
	output        []byte
}

// compare runs the contestants in turn and returns the samples of each.
func compare(ctx context.Context, rounds int, contestants ...contestant) ([][]sample, error) {
	samples := make([][]sample, len(contestants))
	for round := range rounds + 1 {
		for i, c := range contestants {
			s, err := c.measure(ctx)
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

func (c contestant) measure(ctx context.Context) (sample, error) {
	if c.prepare != nil {
		if err := c.prepare(); err != nil {
			return sample{}, err
		}
	}
	unix.Sync() // what the last contestant left in the page cache is not this one's to write
	return measure(ctx, c.command[0], c.command[1:]...)
}

func measure(ctx context.Context, name string, args ...string) (sample, error) {
	return measureWith(exec.CommandContext(ctx, name, args...), (*exec.Cmd).Start)
}

// measureWith is measure for a command that is started in another way, such as on a node.
func measureWith(cmd *exec.Cmd, start func(*exec.Cmd) error) (s sample, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started := time.Now()
	if err = start(cmd); err != nil {
		return s, err
	}
	memory := watchMemory(cmd.Process.Pid)
	var info unix.Siginfo // the exit status stays, to be collected below
	err = unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
	s.wall, s.anon = time.Since(started), memory()
	s.read, s.written = ioOf(cmd.Process.Pid)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return s, fmt.Errorf("%w: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	s.cpu, s.output = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), stdout.Bytes()
	return s, nil
}

// watchMemory samples the memory of a process until the returned function is called, which returns the peak of RssAnon in
// bytes. It reads a short file that stays open, and soon only a hundred times a second: contestants that use all processors must not
// notice it.
func watchMemory(pid int) (peak func() int64) {
	done, highest := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		memory, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
		if err == nil {
			defer memory.Close() //nolint:errcheck // only read
		}
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		for n := 0; ; n++ {
			if n == 50 { // those that take longer have their peak later
				ticks.Reset(10 * time.Millisecond)
			}
			most = max(most, anonymousOf(memory))
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

// anonymousOf returns what is resident and not shared, in bytes, by /proc/PID/statm (proc_pid_statm(5)); 0 when the process has ended.
func anonymousOf(statm *os.File) int64 {
	var line [128]byte
	n, _ := statm.ReadAt(line[:], 0)
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(line[:n]), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}

// anonymous returns the RssAnon of a process in bytes, 0 when it has ended.
func anonymous(pid int) int64 { return field(fmt.Sprintf("/proc/%d/status", pid), "RssAnon:") << 10 }

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

func medianOf(samples []sample, value func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	return median(values)
}

// ratios returns those within each round.
func ratios(values, to []float64) []float64 {
	list := make([]float64, len(values))
	for i := range values {
		list[i] = values[i] / to[i]
	}
	return list
}

func seconds(samples []sample, of func(sample) time.Duration) []float64 {
	list := make([]float64, len(samples))
	for i, s := range samples {
		list[i] = of(s).Seconds()
	}
	return list
}

// anon returns the peaks of RssAnon in MiB.
func anon(samples []sample) []float64 {
	list := make([]float64, len(samples))
	for i, s := range samples {
		list[i] = float64(s.anon) / (1 << 20)
	}
	return list
}

func wall(s sample) time.Duration { return s.wall }
func cpu(s sample) time.Duration  { return s.cpu }

// printComparison prints one row for each contestant and compares it with the first. Bytes read and written are divided by
// payload.
func printComparison(title string, payload int64, contestants []contestant, samples [][]sample) {
	fmt.Printf("\n%s\n\n| | wall | to the first | CPU | peak RssAnon | read / payload | written / payload |\n|---|---|---|---|---|---|---|\n", title)
	for i, c := range contestants {
		s := samples[i]
		fmt.Printf("| %s | %.2f s | %.2f | %.2f s | %.1f MiB | %.2f | %.2f |\n", c.name,
			median(seconds(s, wall)), median(ratios(seconds(s, wall), seconds(samples[0], wall))), median(seconds(s, cpu)),
			median(anon(s)),
			medianOf(s, func(s sample) float64 { return float64(s.read) })/float64(payload),
			medianOf(s, func(s sample) float64 { return float64(s.written) })/float64(payload))
	}
}
