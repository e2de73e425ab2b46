package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// A launcher starts processes from one thread that lives as long as they: the kernel ends them when that thread ends, so
// none outlives this process, even when it is killed.
type launcher struct {
	inside bool // of a machine, which ends with its first process
	work   chan func()
	done   chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{work: make(chan func()), done: make(chan struct{})}
	elsewhere := make(chan struct{})
	var serve func()
	serve = func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() { // others take the namespaces of the first thread for the ones of the process
			go serve()
			<-elsewhere
			runtime.UnlockOSThread()
			return
		}
		close(elsewhere)
		defer close(l.done) // the thread is never unlocked, and ends with the goroutine
		for f := range l.work {
			f()
		}
	}
	go serve()
	return l
}

// do runs f on the launcher's thread.
func (l *launcher) do(f func()) {
	finished := make(chan struct{})
	l.work <- func() {
		defer close(finished)
		f()
	}
	<-finished
}

// launch starts the command as a process group that ends with the launcher.
func (l *launcher) launch(cmd *exec.Cmd) (err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if !l.inside { // no other process sees this one, and takes it for dead
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	l.do(func() { err = cmd.Start() })
	return err
}

func (l *launcher) close() {
	close(l.work)
	<-l.done
}

// components are the running ones, by their names.
type components map[string]*process

func (all components) start(l *launcher, name, logs string, cmd *exec.Cmd) error {
	p, err := l.start(name, logs, cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	all[name] = p
	return nil
}

// end ends a component at once, as a crash does.
func (all components) end(name string) {
	if p := all[name]; p != nil {
		p.kill()
		delete(all, name)
	}
}

func (all components) endAll() {
	for name := range all {
		all.end(name)
	}
}

// A process is a component that runs in a process group of its own and writes to a log file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended, for the reason err
	err  error
}

func (l *launcher) start(name, logs string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(logs, name+".log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := l.launch(cmd); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process and what it has started, unless that has left its group, at once.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

func (p *process) running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %w%s", p.name, errors.Join(p.err, errEnded), p.tail())
	default:
		return nil
	}
}

var errEnded = errors.New("it was not asked to")

// tail is the end of the log, indented.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	lines = lines[max(0, len(lines)-8):]
	return "\n\t" + string(bytes.Join(lines, []byte("\n\t")))
}

// await polls until the condition is met, a process has ended, or the context has.
func await(ctx context.Context, what string, condition func(context.Context) error, processes ...*process) error {
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		for _, p := range processes {
			if ended := p.running(); ended != nil {
				return fmt.Errorf("%s: %w", what, ended)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-ticks.C:
		}
	}
}
