package page

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// english is the catalogue: one "key = text" a line. {0}, {1}, … stand for what is put in; a line that begins with # is a remark.
//
//go:embed english.txt
var english string

// catalogue has the texts by their keys.
var catalogue = sync.OnceValue(func() map[string]string { return readCatalogue(english) })

func readCatalogue(text string) map[string]string {
	words := map[string]string{}
	for line := range strings.Lines(text) {
		if key, words1, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && !strings.HasPrefix(key, "#") {
			words[key] = words1
		}
	}
	return words
}

// Text returns the text of a key with the arguments put in; of a key that the catalogue does not have, its last part: a word
// of a document that is newer than the catalogue, such as a health.
func Text(key string, args ...any) string {
	text, ok := catalogue()[key]
	if !ok {
		return key[strings.LastIndex(key, ".")+1:]
	}
	var pairs []string
	for i, arg := range args {
		pairs = append(pairs, fmt.Sprintf("{%d}", i), fmt.Sprint(arg))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Count returns the text of key.one or key.other, where {0} is the number.
func Count(key string, n int, args ...any) string {
	args = append([]any{n}, args...)
	if n == 1 {
		return Text(key+".one", args...)
	}
	return Text(key+".other", args...)
}
