package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Services is the service manager of a host. [Systemd] is a real one.
type Services interface {
	// Available reports whether it manages this host.
	Available() bool
	// Running reports whether a unit runs and is started at boot.
	Running(ctx context.Context, unit string) bool
	// Start reads the files of units again, and starts a unit now and at each boot. A unit that runs is restarted.
	Start(ctx context.Context, unit string) error
	// Stop stops a unit now and starts it at no boot. A unit that does not exist is stopped.
	Stop(ctx context.Context, unit string) error
	// Reload reads the files of units again.
	Reload(ctx context.Context) error
}

// Systemd is systemd, by its command.
type Systemd struct {
	Root string // "/", or the file system of an image, in which no systemd runs
}

// Available reports whether systemd has booted this host, as sd_booted(3) does.
func (s Systemd) Available() bool {
	at, err := os.Stat(filepath.Join(s.Root, "run/systemd/system"))
	return err == nil && at.IsDir()
}

// Running asks systemctl.
func (s Systemd) Running(ctx context.Context, unit string) bool {
	return s.call(ctx, "is-active", "--quiet", unit) == nil && s.call(ctx, "is-enabled", "--quiet", unit) == nil
}

// Start makes systemd read its units again.
func (s Systemd) Start(ctx context.Context, unit string) error {
	for _, words := range [][]string{{"daemon-reload"}, {"enable", "--quiet", unit}, {"restart", unit}} {
		if err := s.call(ctx, words...); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops a unit that is active, and disables one that has a file.
func (s Systemd) Stop(ctx context.Context, unit string) error {
	if s.call(ctx, "is-active", "--quiet", unit) == nil {
		if err := s.call(ctx, "stop", unit); err != nil {
			return err
		}
	}
	if s.call(ctx, "cat", unit) != nil {
		return nil
	}
	return s.call(ctx, "disable", "--quiet", unit)
}

// Reload makes systemd read its units again.
func (s Systemd) Reload(ctx context.Context) error { return s.call(ctx, "daemon-reload") }

func (Systemd) call(ctx context.Context, words ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", words...).CombinedOutput()
	if err != nil {
		return report.Errorf(report.Failure, "systemctl %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out))).
			WithHint("see 'journalctl -u %s'", words[len(words)-1])
	}
	return nil
}
