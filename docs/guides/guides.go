// Package guides holds the guides for users, and takes out of them what a reader would type, so that tests run it.
//
// In a guide, a block of code in the language sh is run. One whose first line names a file after the language, as in
// "```yaml acme-db/ui/ui.yaml", is written to that file. A block in the language text right after one that is run shows
// what it prints; a line with … alone stands for any number of lines, and … in a line for any text. Everything else, such as
// a block in the language console, is for the reader only; a test of the command line finds a script for each command of
// solutionctl in it. What is below a heading that ends with "on a node" takes one that runs containers.
package guides

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Step is one thing that the reader of a guide does.
type Step struct {
	Line   int      // of the guide, from 1
	Script string   // what is typed
	File   string   // or the file that is written
	Text   string   // its content
	Output []string // the lines that Script prints, nil when the guide does not say
	OnNode bool     // it takes a node that runs containers
}

// Names returns the file names of all guides, sorted.
func Names() ([]string, error) {
	entries, err := files.ReadDir(".")
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// Steps returns what the reader of a guide does, in order, except what [NodeSteps] has.
func Steps(name string) ([]Step, error) {
	steps, err := read(name)
	return slices.DeleteFunc(steps, func(s Step) bool { return s.OnNode }), err
}

// NodeSteps returns what the reader of a guide does on a node, in order.
func NodeSteps(name string) ([]Step, error) {
	steps, err := read(name)
	return slices.DeleteFunc(steps, func(s Step) bool { return !s.OnNode }), err
}

func read(name string) ([]Step, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var steps []Step
	var info, text string
	inBlock, onNode, start, afterScript := false, false, 0, false
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "```")
		switch {
		case isFence && !inBlock:
			inBlock, start, info, text = true, number, fence, ""
		case isFence:
			inBlock = false
			language, file, _ := strings.Cut(info, " ")
			switch {
			case file != "":
				steps = append(steps, Step{Line: start, File: file, Text: text, OnNode: onNode})
			case language == "sh":
				steps = append(steps, Step{Line: start, Script: text, OnNode: onNode})
			case language == "text" && afterScript:
				steps[len(steps)-1].Output = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			}
			afterScript = file == "" && language == "sh"
		case inBlock:
			text += line
		case strings.HasPrefix(line, "#"):
			onNode, afterScript = strings.HasSuffix(strings.TrimSpace(line), " on a node"), false
		case strings.TrimSpace(line) != "":
			afterScript = false
		}
	}
	if inBlock {
		return nil, fmt.Errorf("%s:%d: the block does not end", name, start)
	}
	return steps, nil
}

// Shell returns the steps as one script for sh, which stops at the first command that fails and writes what the step i
// prints to the file i.out in the directory $OUTPUT.
func Shell(steps []Step) string {
	var b strings.Builder
	b.WriteString("set -eu\n")
	for i, step := range steps {
		if step.File == "" {
			fmt.Fprintf(&b, "{\n%s} >\"$OUTPUT/%d.out\" 2>&1\n", step.Script, i)
			continue
		}
		fmt.Fprintf(&b, "mkdir -p \"$(dirname '%s')\"\ncat >'%s' <<'end of file %d'\n%send of file %d\n", step.File, step.File, i, step.Text, i)
	}
	return b.String()
}

// Missing returns the first line that a step should have printed and did not; false when it printed them all, in order.
func (s Step) Missing(printed string) (line string, missing bool) {
	rest := strings.Split(printed, "\n")
	anywhere := true // the next line may come after others
	for _, want := range s.Output {
		if strings.TrimSpace(want) == "…" {
			anywhere = true
			continue
		}
		found := false
		for len(rest) > 0 && !found {
			found = matches(strings.TrimRight(rest[0], " "), strings.TrimRight(want, " "))
			rest = rest[1:]
			if !found && !anywhere {
				return want, true
			}
		}
		if !found {
			return want, true
		}
		anywhere = false
	}
	return "", false
}

// matches reports that a printed line is the wanted one, in which … stands for any text.
func matches(printed, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(printed)
}
