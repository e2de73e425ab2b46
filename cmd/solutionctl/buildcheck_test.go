package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestOfferKey: at a terminal, a key pair that does not exist is made when the user confirms it, and its password is asked for once.
func TestOfferKey(t *testing.T) {
	for _, test := range []struct {
		answer string
		want   report.Code
		made   bool
	}{{"y\n", "", true}, {"n\n", report.Cancelled, false}} {
		name := filepath.Join(t.TempDir(), "acme.key")
		password := func(name string) string { return map[string]string{"SOLUTIONCTL_PASSWORD": "secret"}[name] }
		a := &app{cli.New(strings.NewReader(test.answer), io.Discard, io.Discard, password, nil, "1.2.3")}
		a.Interactive, a.Sink = true, console.NewSink(console.None, a.Err, console.Options{})
		flags := keyFlags{key: name}
		err := a.offerKey(t.Context(), &flags)
		if err == nil != (test.want == "") || err != nil && report.CodeOf(err) != test.want {
			t.Errorf("%q: got %v", test.answer, err)
		}
		if _, err := os.Stat(name); err == nil != test.made || string(flags.known) != map[bool]string{true: "secret"}[test.made] {
			t.Errorf("%q: made: %v, password %q", test.answer, err == nil, flags.known)
		}
	}
}
