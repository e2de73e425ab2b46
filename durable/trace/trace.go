//go:build linux

package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tracer counts the system calls by which a process, its threads and its children change files below a directory. It runs
// one command.
type Tracer struct {
	Below string // an absolute path without symbolic links
	Fatal int    // the change at which the process is killed, counted from 1; 0 is none
	After bool   // the kernel executes the fatal change

	// Begins and Ends are called before and after each change, while the thread that makes it stands still.
	Begins, Ends func(Change)

	Calls  int    // how many changes there were
	Killed Change // the fatal one

	pid     int // of the process
	threads map[int]*thread
}

// Change is a system call that changes a file.
type Change struct {
	Call string // such as rename, without digits
	Path string // relative to [Tracer.Below]; of several the first
}

func (c Change) String() string { return strings.TrimSpace(c.Call + " " + c.Path) }

// thread is a traced thread between two stops.
type thread struct {
	change *Change // what it is about to do
	fatal  bool    // the process is killed when it has done it
}

// Run runs a command to its end. Its output must go to files, because no goroutine copies it.
func (t *Tracer) Run(ctx context.Context, cmd *exec.Cmd) (*unix.WaitStatus, error) {
	type outcome struct {
		status *unix.WaitStatus
		err    error
	}
	done := make(chan outcome)
	go func() {
		// Only the thread that starts a traced process hears of it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		status, err := t.trace(ctx, cmd)
		done <- outcome{status, err}
	}()
	o := <-done
	return o.status, o.err
}

func (t *Tracer) trace(ctx context.Context, cmd *exec.Cmd) (*unix.WaitStatus, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.pid, t.threads = cmd.Process.Pid, map[int]*thread{}
	defer context.AfterFunc(ctx, t.kill)()
	var status unix.WaitStatus
	if _, err := wait(t.pid, &status); err != nil {
		return nil, err
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
		unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(t.pid, options); err != nil {
		t.kill()
		return nil, fmt.Errorf("trace: %w", err)
	}
	t.threads[t.pid] = &thread{}
	if err := unix.PtraceSyscall(t.pid, 0); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	var ended *unix.WaitStatus
	for {
		var status unix.WaitStatus
		id, err := wait(-t.pid, &status) // its process group: this thread may have other children
		switch {
		case errors.Is(err, unix.ECHILD):
			return ended, cmd.Process.Release()
		case err != nil:
			return nil, fmt.Errorf("trace: %w", err)
		case status.Exited() || status.Signaled():
			if id == t.pid {
				ended = &status
			}
			delete(t.threads, id)
		case status.Stopped():
			if err := t.stopped(id, status); err != nil && !errors.Is(err, unix.ESRCH) { // it died meanwhile
				t.kill()
				return nil, fmt.Errorf("trace: %w", err)
			}
		}
	}
}

// wait waits for a child of this thread, and not for one of another thread.
func wait(pid int, status *unix.WaitStatus) (int, error) {
	for {
		id, err := unix.Wait4(pid, status, unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			return id, err
		}
	}
}

// kill ends the process and its children.
func (t *Tracer) kill() { _ = unix.Kill(-t.pid, unix.SIGKILL) }

// stopped handles the stop of a thread and continues it.
func (t *Tracer) stopped(id int, status unix.WaitStatus) error {
	known := t.threads[id]
	if known == nil {
		known = &thread{}
		t.threads[id] = known
		if status.StopSignal() == unix.SIGSTOP { // how a new thread begins
			return unix.PtraceSyscall(id, 0)
		}
	}
	switch signal := status.StopSignal(); signal {
	case unix.SIGTRAP | 0x80:
		if err := t.called(id, known); err != nil {
			return err
		}
		return unix.PtraceSyscall(id, 0)
	case unix.SIGTRAP:
		return unix.PtraceSyscall(id, 0) // a thread or a program has begun
	default:
		return unix.PtraceSyscall(id, int(signal))
	}
}

// called looks at a system call that begins or ends.
func (t *Tracer) called(id int, known *thread) error {
	call, err := callOf(id)
	if err != nil {
		return err
	}
	if !call.entry {
		if known.change != nil && t.Ends != nil {
			t.Ends(*known.change)
		}
		if known.fatal {
			t.end(*known.change)
		}
		known.change = nil
		return nil
	}
	if known.change = call.changes(id, t.Below); known.change == nil {
		return nil
	}
	if t.Begins != nil {
		t.Begins(*known.change)
	}
	if t.Calls++; t.Calls != t.Fatal {
		return nil
	}
	if known.fatal = true; !t.After {
		t.end(*known.change)
	}
	return nil
}

// end kills at the fatal change. One that has not begun is not executed any more: the kernel looks for SIGKILL first.
func (t *Tracer) end(what Change) {
	t.Killed = what
	t.kill()
}

// call is a system call at which a thread has stopped.
type call struct {
	entry     bool
	number    uint64
	arguments [6]uint64
}

// callOf asks for the call at which a thread has stopped, in a way that is the same for every processor.
func callOf(id int) (*call, error) {
	const getSyscallInfo, entry = 0x420e, 1
	var info [88]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(id), uintptr(len(info)), uintptr(unsafe.Pointer(&info[0])), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	c := &call{entry: info[0] == entry}
	if !c.entry {
		return c, nil
	}
	c.number = binary.NativeEndian.Uint64(info[24:])
	for i := range c.arguments {
		c.arguments[i] = binary.NativeEndian.Uint64(info[32+8*i:])
	}
	return c, nil
}

// readString reads a path from the memory of a thread.
func readString(id int, address uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", id))
	if err != nil {
		return "", err
	}
	defer func() { _ = memory.Close() }() // it was only read
	var text []byte
	for len(text) < unix.PathMax {
		var part [256]byte
		// It may end before the next page, which need not be there.
		n := min(len(part), int(4096-address%4096))
		if _, err := memory.ReadAt(part[:n], int64(address)); err != nil {
			return "", err
		}
		for _, c := range part[:n] {
			if c == 0 {
				return string(text), nil
			}
			text = append(text, c)
		}
		address += uint64(n)
	}
	return string(text), nil
}
