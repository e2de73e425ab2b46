package cli

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
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
		{"a directory in place of a file", true, &fs.PathError{Op: "read", Path: "named.iso", Err: syscall.EISDIR}, report.Failure},
		{"a full disk", true, &fs.PathError{Op: "write", Path: "named.iso", Err: syscall.ENOSPC}, report.NoSpace},
		{"a quota", true, &fs.PathError{Op: "write", Path: "named.iso", Err: syscall.EDQUOT}, report.NoSpace},
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

// TestSystemHint checks that what the operating system refused has a hint, and that the hint of a command comes before it.
func TestSystemHint(t *testing.T) {
	refused := func(reason error) error { return &fs.PathError{Op: "write", Path: "a/x.iso", Err: reason} }
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"no permission":       {refused(syscall.EACCES), []string{"change the permissions of a/x.iso or of its directory, or run the command as a user who has them"}},
		"a read-only system":  {refused(syscall.EROFS), []string{"the file system can only be read: write to another directory"}},
		"a full disk":         {refused(syscall.ENOSPC), []string{"free some space, or write to another file system"}},
		"a directory":         {refused(syscall.EISDIR), []string{"a/x.iso is a directory: name a file"}},
		"a command has one":   {report.Errorf(report.Failure, "%w", refused(syscall.EACCES)).WithHint("run it as root"), []string{"run it as root"}},
		"anything else":       {refused(syscall.EIO), nil},
		"without a file name": {syscall.EACCES, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &App{started: true}
			if got := report.Hints(a.classify(test.err, nil)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
