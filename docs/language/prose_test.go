package language_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const allowedFile = "allowed.txt"

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\([^)]*\)|<[^>]*>`)
	itemStart  = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	sentence   = regexp.MustCompile(`[.!?][)"*_]*\s|[.!?:][)"*_]*$`)
)

// prose leaves out blocks of code, with all lines in their place; inline code and links become one word.
func prose(text string) string {
	lines, inBlock := strings.Split(text, "\n"), false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inBlock, lines[i] = !inBlock, ""
		} else if inBlock {
			lines[i] = ""
		} else {
			lines[i] = link.ReplaceAllString(inlineCode.ReplaceAllString(line, "CODE"), "")
		}
	}
	return strings.Join(lines, "\n")
}

// sentences takes prose apart; headings and tables have none.
func sentences(text string) []string {
	var paragraphs []string
	open := false
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "|"):
			open = false
		case itemStart.MatchString(line), !open:
			paragraphs, open = append(paragraphs, itemStart.ReplaceAllString(line, "")), true
		default:
			paragraphs[len(paragraphs)-1] += " " + trimmed
		}
	}
	var all []string
	for _, paragraph := range paragraphs {
		for part := range strings.SplitSeq(sentence.ReplaceAllString(paragraph, "\n"), "\n") {
			if strings.TrimSpace(part) != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

func TestSentences(t *testing.T) {
	got := sentences(prose("# Title here\n\nOne `a b` [two](x.md).\nThree: four!\n\n- item one\n  more\n- item two:\n\n```sh\nno. no\n```\n| a | b |\n"))
	want := []string{"One CODE [two", "Three: four", "item one more", "item two"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func compare(a, b key) int {
	return strings.Compare(a.kind+"\t"+a.place+"\t"+a.word, b.kind+"\t"+b.place+"\t"+b.word)
}

// readAllowed reads lines of KIND PLACE WORD=NUMBER…
func readAllowed(t *testing.T) map[key]int {
	t.Helper()
	data, err := os.ReadFile(allowedFile)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[key]int{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		for _, field := range fields[2:] {
			word, number, _ := strings.Cut(field, "=")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatalf("%s: %s: %v", allowedFile, line, err)
			}
			allowed[key{fields[0], fields[1], word}] = n
		}
	}
	return allowed
}

func writeAllowed(t *testing.T, found map[key]int) {
	t.Helper()
	var text strings.Builder
	place := ""
	for _, k := range slices.SortedFunc(maps.Keys(found), compare) {
		if here := k.kind + " " + k.place; here != place {
			text.WriteString("\n" + here)
			place = here
		}
		fmt.Fprintf(&text, " %s=%d", k.word, found[k])
	}
	if err := os.WriteFile(allowedFile, []byte(strings.TrimSpace(text.String())+"\n"), 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}
