package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// TestOneCommand makes each command alone, as its call does. It is the same as among all commands.
func TestOneCommand(t *testing.T) {
	var compare func(want *cobra.Command)
	compare = func(want *cobra.Command) {
		for _, child := range want.Commands() {
			compare(child)
		}
		words := strings.Fields(want.CommandPath())[1:]
		root := newRootCommand(&app{cli.New(strings.NewReader(""), io.Discard, io.Discard, noVariables, nil, "1.2.3")}, words...)
		got, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 || got.CommandPath() != want.CommandPath() || got.GroupID != want.GroupID || got.Hidden != want.Hidden {
			t.Fatalf("%s: found %s, %q left: %v", want.CommandPath(), got.CommandPath(), rest, err)
		}
		if got.UsageString() != want.UsageString() {
			t.Errorf("%s: used as\n%s\nwant\n%s", want.CommandPath(), got.UsageString(), want.UsageString())
		}
		if len(words) == 2 && words[0] == "deploy" && len(got.Parent().Commands()) > 1 {
			t.Errorf("%s: made with %d others", want.CommandPath(), len(got.Parent().Commands())-1)
		}
	}
	for _, child := range newTestRoot().Commands() {
		compare(child)
	}
}

// TestOneCommandReadsAllSettings calls a command with a file that has settings of others, and one that no command has.
func TestOneCommandReadsAllSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for _, test := range []struct {
		content, want string
	}{
		{"deploy: {serve: {listen: \"127.0.0.1:5000\"}}\nbuild: {jobs: 2}\n", ""},
		{"deploy: {serve: {lisen: 1}}\n", "lisen: no such setting"},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		args := []string{"version", "--config", file}
		a := &app{cli.New(strings.NewReader(""), io.Discard, &stderr, noVariables, nil, "1.2.3")}
		status := a.Execute(t.Context(), newRootCommand(a, cli.Words(args)...), args)
		if (status == 0) != (test.want == "") || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%s: status %d, %s", test.content, status, stderr.String())
		}
	}
}
