// Package scripttest has the commands that scripts of [testscript] share: those that run solutionctl itself and those that
// run it on a cluster, which are in another module.
package scripttest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Fails is the command
//
//	fails CODE COMMAND [ARG...]
//
// of scripts: the command must fail with this error code and its exit status.
func Fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE COMMAND [ARG...]")
	}
	code := report.Code(args[0])
	if !slices.ContainsFunc(report.Codes(), func(info report.CodeInfo) bool { return info.Code == code }) {
		ts.Fatalf("%q is not an error code", code)
	}
	verbose := ts.Getenv("SOLUTIONCTL_VERBOSE")
	ts.Setenv("SOLUTIONCTL_VERBOSE", "true") // prints the code
	err := ts.Exec(args[1], args[2:]...)
	ts.Setenv("SOLUTIONCTL_VERBOSE", verbose)
	want := fmt.Sprintf("solutionctl: code: %s (exit status %d)\n", code, code.ExitStatus())
	if got := ts.ReadFile("stderr"); err == nil || !strings.HasSuffix(got, want) {
		ts.Fatalf("%v, want the last line %q of:\n%s", err, want, got)
	}
	if got, want := err.Error(), fmt.Sprintf("exit status %d", code.ExitStatus()); got != want {
		ts.Fatalf("%s, want %s", got, want)
	}
}

// InheritMemory gives the programs of a script the settings of the garbage collector that its test has, because testscript gives them an
// environment of their own: with GOGC=400, a start takes two thirds of the processor time.
func InheritMemory(env *testscript.Env) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		env.Setenv(name, os.Getenv(name))
	}
}

// Judge is the command
//
//	judge PROGRAM [ARG...]
//
// of scripts: an independent tool that has to succeed. It is optional unless CI=true.
func Judge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: judge PROGRAM [ARG...]")
	}
	if _, err := exec.LookPath(args[0]); err != nil && os.Getenv("CI") != "true" {
		ts.Logf("%v: nothing is checked", err)
		return
	}
	ts.Check(ts.Exec(args[0], args[1:]...))
}
