// Package language_test keeps documents, messages and comments in the plain English of the field: it counts words that
// are to disappear and measures sentences. allowed.txt has what is left; its numbers only go down.
package language_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the numbers in allowed.txt, and drop what is no longer needed")

const (
	root        = "../.."
	maxMean     = 16 // words in a sentence
	maxLong     = 5  // percent of sentences over 30 words
	longWords   = 30
	shownPlaces = 12
)

// words are what to avoid and what to write instead. A pattern with a group counts where the group matches.
var words = []struct {
	name    string
	pattern *regexp.Regexp
	better  string
}{
	{"whoever", regexp.MustCompile(`(?i)\b(?:whoever|whomever)\b`), "the role: user, administrator, caller, another process"},
	{"somebody", regexp.MustCompile(`(?i)\b(?:some|no|any)body\b|\bsomeone\b`), "the role: user, administrator, another field manager"},
	{"who", regexp.MustCompile(`\bWho (?:has|may|can|lacks|wants|runs|knows|asks)\b`), "a user who"},
	{"told", regexp.MustCompile(`(?i)\b(?:told|tells?|telling)\b`), "report, print, show, return, record"},
	{"says", regexp.MustCompile(`(?i)\b(?:says|said)\b`), "report, print, show, state, specify"},
	{"may-not", regexp.MustCompile(`(?i)\bmay not\b`), "must not, is not allowed to, might not"},
	{"is-no", regexp.MustCompile(`(?i)\bthere (?:is|are|was|were) no\b|\b((?:is|are|was|were) no) (?:[^lm]|lo[^n]|mo[^r])`), "is not a"},
	{"what-is", regexp.MustCompile(`(?i)\bwhat (?:is|was|are|were|has been) (?:there|gone|missing|left|wanted|said|told|given|asked|written|new|old|no|not|its|ours|theirs)\b|\bwhat there is\b`), "the noun of the domain"},
	{"is-what", regexp.MustCompile(`(?i)\b(?:is|are|was) (?:what|who|those)\b`), "the noun of the domain"},
	{"stands-against", regexp.MustCompile(`(?i)\bstands? against\b|\bstood against\b`), "problem, reason for the refusal"},
	{"take-over", regexp.MustCompile(`(?i)\b(?:takes?|taken|took|taking)(?: \w+)? over\b|\btakeovers?\b`), "adopt, adoption"},
	{"anew", regexp.MustCompile(`(?i)\banew\b`), "again"},
	{"drawn", regexp.MustCompile(`(?i)\b(?:draws?|drawn|drew) (?:anew|again|at random|by|for)\b|\bhas drawn\b`), "generate, generated values"},
	{"but-for", regexp.MustCompile(`(?i)\bbut for\b`), "except"},
	{"go-on", regexp.MustCompile(`(?i)\b(?:go|goes|went|going|gone) on\b`), "continue"},
	{"metaphor", regexp.MustCompile(`(?i)\b(?:heirs?|glimpses?|homeless|hopeless|deaf|restless|heeds?|patience|stray|strays|leftovers?|wayOut)\b`), "the field's word"},
}

var excluded = regexp.MustCompile(`(^|/)(testdata|\.git|node_modules|bin|dist|corpus)(/|$)|^docs/reference(/|$)|^docs/language/`)

// key is one number in allowed.txt: of a word (or of sentences, "mean" and "long") in the texts of a directory or document.
type key struct{ kind, place, word string }

// area is where a number may move to another place without being more: packages move, documents are split.
func (k key) area() key {
	top, _, _ := strings.Cut(k.place, "/")
	return key{k.kind, top, k.word}
}

type counts struct {
	found  map[key]int
	places map[key][]string
}

func TestLanguage(t *testing.T) {
	have := counts{map[key]int{}, map[key][]string{}}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(file, root), string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case excluded.MatchString(name) && entry.IsDir():
			return filepath.SkipDir
		case entry.IsDir(), excluded.MatchString(name):
		case strings.HasSuffix(name, ".md"), path.Base(name) == "english.txt":
			return have.document(file, name)
		case strings.HasSuffix(name, ".go"):
			return have.code(file, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	allowed := readAllowed(t)
	sums := map[key][2]int{}
	for k, n := range have.found {
		s := sums[k.area()]
		sums[k.area()] = [2]int{s[0] + n, s[1]}
	}
	for k, n := range allowed {
		s := sums[k.area()]
		sums[k.area()] = [2]int{s[0], s[1] + n}
	}
	for area, s := range sums {
		if s[0] < s[1] && !*update && !testing.Short() {
			t.Errorf("%s in %s: %q %d times, of %d allowed: lower the numbers with 'go test ./docs/language -update'", area.kind, area.place, area.word, s[0], s[1])
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(have.found), compare) {
		n, s := have.found[k], sums[k.area()]
		if n <= allowed[k] || s[0] <= s[1] && k.kind != "sentences" {
			continue
		}
		t.Errorf("%s in %s: %s %d, allowed %d; better: %s\n\t%s", k.kind, k.place, k.word, n, allowed[k], better(k.word),
			strings.Join(have.places[k][:min(shownPlaces, len(have.places[k]))], "\n\t"))
	}
	if *update && !t.Failed() {
		writeAllowed(t, have.found)
	}
}

func better(word string) string {
	for _, w := range words {
		if w.name == word {
			return w.better
		}
	}
	return fmt.Sprintf("at most %d words a sentence, %d %% over %d", maxMean, maxLong, longWords)
}

// count adds the words to avoid in a text that begins on a line of a file.
func (c *counts) count(kind, place, file, text string, line int) {
	for _, w := range words {
		for _, m := range w.pattern.FindAllStringSubmatchIndex(text, -1) {
			if len(m) > 2 && m[2] < 0 {
				continue
			}
			k := key{kind, place, w.name}
			c.found[k]++
			c.places[k] = append(c.places[k], fmt.Sprintf("%s:%d: %s", file, line+strings.Count(text[:m[0]], "\n"), text[m[0]:m[1]]))
		}
	}
}

func (c *counts) code(file, name string) error {
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data[:min(len(data), 400)]), "DO NOT EDIT") {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range tree.Comments {
		c.count("comments", path.Dir(name), name, group.Text(), set.Position(group.Pos()).Line)
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			c.count("messages", path.Dir(name), name, lit.Value, set.Position(lit.Pos()).Line)
		}
		return true
	})
	return nil
}

func (c *counts) document(file, name string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := prose(string(data))
	c.count("documents", name, name, text, 1)
	if strings.HasPrefix(name, "lint/") || strings.HasSuffix(name, ".txt") {
		return nil
	}
	all, total, long := 0, 0, 0
	for _, sentence := range sentences(text) {
		n := len(strings.Fields(sentence))
		all, total = all+1, total+n
		if n > longWords {
			long++
		}
	}
	if all == 0 {
		return nil
	}
	if mean := (total + all/2) / all; mean > maxMean {
		c.found[key{"sentences", name, "mean"}] = mean
	}
	if share := (100*long + all/2) / all; share > maxLong {
		c.found[key{"sentences", name, "long"}] = share
	}
	return nil
}
