package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// notRun lists commands in hints that no script runs, each with the reason.
var notRun = map[string]string{}

// TestHintedCommands: every command in a hint is run by a script with the same flags. The real command line parses it first,
// so that the command and its flags exist.
func TestHintedCommands(t *testing.T) {
	root := newRootCommand(&app{cli.New(strings.NewReader(""), os.Stdout, os.Stderr, os.Getenv, nil, "1.2.3")})
	scripts := scriptedCommands(t, root)
	used := map[string]bool{}
	for place, texts := range hintTexts(t) {
		for _, text := range texts {
			for _, found := range commandsIn(root, text) {
				if found.problem != "" {
					t.Errorf("%s: %q: %s", place, text, found.problem)
					continue
				}
				if _, excused := notRun[found.String()]; excused {
					used[found.String()] = true
				} else if !slices.ContainsFunc(scripts, found.isLike) {
					t.Errorf("%s: no script runs %q, which a hint tells people to run", place, found)
				}
			}
		}
	}
	for command := range notRun {
		if !used[command] {
			t.Errorf("no hint says %q any more", command)
		}
	}
}

// writtenByHand are files and folders of package deployer that name commands in texts other than hints: file headers, pages
// for tests.
var writtenByHand = []string{"deployer/host/node/node.go", "deployer/support/bundle/bundle.go", "deployer/console/page/pagetest/"}

// TestRemedies: what is refused below the command line names commands and options as data, and those are real.
func TestRemedies(t *testing.T) {
	root := newRootCommand(&app{cli.New(strings.NewReader(""), os.Stdout, os.Stderr, os.Getenv, nil, "1.2.3")})
	accepted := 0
	eachNode(t, func(place string, node ast.Node) {
		switch n := node.(type) {
		case *ast.BasicLit:
			byHand := slices.ContainsFunc(writtenByHand, func(beginning string) bool { return strings.HasPrefix(place, beginning) })
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.HasPrefix(place, "deployer/") &&
				!byHand && len(commandsIn(root, text)) > 0 {
				t.Errorf("%s: %q names a command: make it a report.Run", place, text)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Accept" && len(n.Args) > 0 && literal(n.Args[0]) != "" {
				accepted++
				if !hasFlag(root, literal(n.Args[0])) {
					t.Errorf("%s: no command has --%s", place, literal(n.Args[0]))
				}
			}
		}
	})
	if accepted < 10 {
		t.Errorf("only %d options were found", accepted)
	}
}

func hasFlag(cmd *cobra.Command, name string) bool {
	return cmd.Flags().Lookup(name) != nil || slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return hasFlag(c, name) })
}

// literal is the text of a literal; what is put together of one and something else ends with %s.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X) + "%s"
	}
	return ""
}

// remedyText returns the text of the remedy that this call makes, as far as the source shows it.
func remedyText(call *ast.CallExpr) string {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	if from, is := called.X.(*ast.Ident); is && from.Name == "report" && called.Sel.Name == "Run" {
		text := "solutionctl " + literal(call.Args[0])
		for _, argument := range call.Args[1:] {
			text += " " + cmp.Or(literal(argument), "%s")
		}
		return text
	}
	before, ok := called.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch text := remedyText(before); {
	case text != "" && called.Sel.Name == "With":
		return text + " --" + literal(call.Args[0])
	default:
		return text
	}
}

// foundCommand is a command found in a text.
type foundCommand struct {
	path    string
	flags   []string
	problem string
}

func (c foundCommand) String() string { return strings.Join(append([]string{c.path}, c.flags...), " ") }

// isLike reports whether running the other command also tests this one.
func (c foundCommand) isLike(other foundCommand) bool {
	return c.path == other.path && !slices.ContainsFunc(c.flags, func(flag string) bool { return !slices.Contains(other.flags, flag) })
}

// hintTexts returns the literals of hints in the sources of this module, literals that begin with a command, and remedies.
func hintTexts(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	var hints [][2]token.Pos
	eachNode(t, func(place string, node ast.Node) {
		switch n := node.(type) {
		case *ast.File:
			hints = nil
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "WithHint" {
				hints = append(hints, [2]token.Pos{n.Lparen, n.Rparen})
			}
			if text := remedyText(n); text != "" {
				found[place] = append(found[place], text)
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			hinted := slices.ContainsFunc(hints, func(h [2]token.Pos) bool { return h[0] < n.Pos() && n.Pos() < h[1] })
			if err == nil && n.Kind == token.STRING && (hinted || strings.HasPrefix(text, "solutionctl ") && !strings.Contains(text, "\n")) {
				found[place] = append(found[place], text)
			}
		}
	})
	if len(found) < 100 {
		t.Errorf("only %d hints were found", len(found))
	}
	return found
}

// eachNode visits the sources of this module, with the place FILE:LINE of each node.
func eachNode(t *testing.T, visit func(place string, node ast.Node)) {
	t.Helper()
	top := filepath.Join("..", "..")
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, other := os.Stat(filepath.Join(path, "go.mod"))
			if path != top && (other == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, top+string(filepath.Separator)))
		ast.Inspect(file, func(node ast.Node) bool {
			if node != nil {
				visit(name+":"+strconv.Itoa(files.Position(node.Pos()).Line), node)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// scriptedCommands returns the commands in scripts and in the guides, which tests run as well.
func scriptedCommands(t *testing.T, root *cobra.Command) []foundCommand {
	t.Helper()
	var found []foundCommand
	for _, pattern := range []string{
		"../../testdata/script/*.txtar", "../../deployer/e2e/testdata/*/*.txtar", "../../docs/guides/*.md", "../../README.md",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(files))
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if before, _, ok := strings.Cut(line, "solutionctl "); ok && command.MatchString(before) {
					found = append(found, commandsIn(root, strings.NewReplacer("'", "", `"`, "").Replace(line))...)
				}
			}
		}
	}
	return found
}

// command matches the text before a command on a line of a script or a guide.
var command = regexp.MustCompile(`^(\$ |sudo |[A-Z_]+=\S+ |(! )?exec |fails \S+ |await |ttyin .*|exec sh -c .*)*$`)

var flagWord = regexp.MustCompile(`^--?[a-z][a-z0-9-]*`)

// commandsIn finds the commands in a text.
func commandsIn(root *cobra.Command, text string) []foundCommand {
	var found []foundCommand
	for {
		_, rest, ok := strings.Cut(text, "solutionctl ")
		if !ok {
			return found
		}
		text = rest
		end := strings.IndexAny(rest, "'\"`;\n")
		if end < 0 {
			end = len(rest)
		}
		if one, ok := parseCommand(root, strings.Fields(rest[:end])); ok {
			found = append(found, one...)
		}
	}
}

func parseCommand(root *cobra.Command, words []string) ([]foundCommand, bool) {
	cmd, begun, ended := root, false, false
	for len(words) > 0 && cmd.HasSubCommands() {
		if words[0] == "%s" && begun { // an upgrade or a downgrade
			up, _ := parseCommand(root, append(strings.Fields("deploy upgrade"), words[1:]...))
			down, _ := parseCommand(root, append(strings.Fields("deploy downgrade"), words[1:]...))
			return append(up, down...), true
		}
		word := strings.TrimRight(words[0], ",.:)")
		next, _, err := cmd.Find([]string{word})
		if err != nil || next == cmd {
			break
		}
		ended = word != words[0]
		cmd, begun, words = next, true, words[1:]
		if ended {
			break
		}
	}
	if !begun {
		return nil, false // the name of the program in a sentence
	}
	one := foundCommand{path: cmd.CommandPath()}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		return []foundCommand{{path: one.path, problem: "it is no command that does something: " + strings.Join(words, " ")}}, true
	}
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	for _, word := range words {
		if ended {
			break
		}
		ended = strings.ContainsAny(word[len(word)-1:], ",.:)")
		flag := flagWord.FindString(word)
		if flag == "" {
			continue
		}
		known := flags.Lookup(strings.TrimLeft(flag, "-"))
		if len(flag) == 2 {
			known = flags.ShorthandLookup(flag[1:])
		}
		if known == nil {
			one.problem = cmd.CommandPath() + " has no flag " + flag
			continue
		}
		one.flags = append(one.flags, "--"+known.Name)
	}
	slices.Sort(one.flags)
	one.flags = slices.Compact(one.flags)
	return []foundCommand{one}, true
}
