package report

import (
	"math"
	"strings"
)

// maxCompared bounds the names that are compared, as they come from foreign documents. No real name has more bytes.
const maxCompared = 64

// EditDistance counts the insertions, deletions and replacements of bytes that turn a into b (Levenshtein), for hints
// such as "did you mean …?". A string of more than 64 bytes is far away from everything: the result is [math.MaxInt].
func EditDistance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Nearest returns the candidate that got is most likely a misspelling of, "" when there is none.
func Nearest(got string, candidates []string) string {
	best, bestDistance := "", 3
	for _, candidate := range candidates {
		if strings.EqualFold(got, candidate) {
			return candidate
		}
		if d := EditDistance(strings.ToLower(got), strings.ToLower(candidate)); d < bestDistance && 2*d <= len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}
