package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

const diagrams = "../../docs/diagrams"

// typed finds the commands in a diagram.
var typed = regexp.MustCompile(`: solutionctl ([^\n]+)`)

// TestDiagramsTypeCommands makes sure that the commands in the diagrams exist, with their flags and number of arguments.
func TestDiagramsTypeCommands(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(diagrams, "*.puml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no diagrams: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		commands := typed.FindAllStringSubmatch(string(data), -1)
		if len(commands) == 0 {
			t.Errorf("%s: nobody types anything", file)
		}
		for _, match := range commands {
			root := newRootCommand(&app{cli.New(strings.NewReader(""), os.Stdout, os.Stderr, os.Getenv, nil, "1.2.3")})
			cmd, rest, err := root.Find(strings.Fields(match[1]))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil && cmd.Args != nil && !cmd.HasSubCommands() {
				err = cmd.Args(cmd, cmd.Flags().Args())
			}
			if err != nil || cmd.HasSubCommands() {
				t.Errorf("%s: %s: %v", file, match[1], err)
			}
		}
	}
}

// TestDiagramsAreDrawn asks PlantUML whether it understands the diagrams.
func TestDiagramsAreDrawn(t *testing.T) {
	if _, err := exec.LookPath("plantuml"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs PlantUML: apt-get install plantuml")
		}
		t.Skip("needs PlantUML: apt-get install plantuml")
	}
	check := exec.CommandContext(t.Context(), "make", "-C", "../../docs", "check")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
