package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Count returns a number with its noun: "1 object", "2 objects".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// MaxSome bounds how many lines a message lists; the rest are counted.
const MaxSome = 10

// Some lists the first of many lines.
func Some(lines []string) string { return strings.Join(atMost(MaxSome, lines), "\n  ") }

// Several joins the first of many words.
func Several(words []string) string { return strings.Join(atMost(MaxSome, words), "; ") }

func atMost(n int, lines []string) []string {
	if more := len(lines) - n; more > 0 {
		lines = append(slices.Clip(lines[:n]), fmt.Sprintf("and %d more", more))
	}
	return lines
}
