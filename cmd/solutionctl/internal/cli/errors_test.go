package cli

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// TestClassify checks the codes of errors that come without one, or with one that is too general.
func TestClassify(t *testing.T) {
	open := func(name string) error { return &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT} }
	for _, test := range []struct {
		name    string
		started bool
		err     error
		want    report.Code
	}{
		{"a file of the command line that is not there", true, open("named.iso"), report.NotFound},
		{"the same below a file", true, &fs.PathError{Op: "open", Path: "./named.iso", Err: syscall.ENOTDIR}, report.NotFound},
		{"the same with a code that says nothing", true, report.Errorf(report.Failure, "inspect: %w", open("named.iso")), report.NotFound},
		{"the same with a code that says more", true, report.Errorf(report.Corrupt, "inspect: %w", open("named.iso")), report.Corrupt},
		{"another file that is not there", true, open("internal.json"), report.Failure},
		{"the parser of the command line", false, fmt.Errorf("unknown flag: --nope"), report.Usage},
		{"a command", true, fmt.Errorf("disk on fire"), report.Failure},
		{"settings that cannot be read", false, report.Errorf(report.Failure, "read"), report.Failure},
		{"interrupt", true, fmt.Errorf("pull ui: %w", context.Canceled), report.Cancelled},
		{"interrupted request", true, report.Errorf(report.Unavailable, "pull ui: %w", context.Canceled), report.Cancelled},
		{"interrupted half-way", true, report.Errorf(report.Interrupted, "build: %w", context.Canceled), report.Interrupted},
		{"time is over", true, report.Errorf(report.Unavailable, "pull ui: %w", context.DeadlineExceeded), report.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &App{started: test.started, Verbose: true} // otherwise an interrupt is reported in other words
			if got := a.classify(test.err, []string{"x", "named.iso"}); got.Code != test.want || got.Error() != test.err.Error() {
				t.Errorf("got %s: %v, want %s: %v", got.Code, got, test.want, test.err)
			}
		})
	}
}
