package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestLookupInLargeFile asks for places in a file whose nodes were not kept, by several goroutines at once.
func TestLookupInLargeFile(t *testing.T) {
	var text strings.Builder
	for i := range 2 {
		text.WriteString("a: &x {b: [1, 2]}\nc: {<<: *x}\n")
		for j := range 2000 {
			fmt.Fprintf(&text, "key%d: value\n", j)
		}
		fmt.Fprintf(&text, "last:\n  yes: %d\n---\n", i)
	}
	documents, err := schema.ParseKubernetes("large.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i, first := range []int{1, 2006} {
		group.Go(func() {
			for path, want := range map[string]string{
				"": fmt.Sprintf("%d:1", first), "a.b.1": fmt.Sprintf("%d:15", first), "c.b": fmt.Sprintf("%d:11", first),
				"key1999": fmt.Sprintf("%d:10", first+2001), "last.yes": fmt.Sprintf("%d:8", first+2003), "last.no": fmt.Sprintf("%d:3", first+2003),
			} {
				var steps []string
				if path != "" {
					steps = strings.Split(path, ".")
				}
				line, column := documents[i].Lookup(steps...)
				if got := fmt.Sprintf("%d:%d", line, column); got != want {
					t.Errorf("document %d, %q: got %s, want %s", i, path, got, want)
				}
			}
		})
	}
	group.Wait()
}

// TestRelease: places are found again in documents whose values were dropped.
func TestRelease(t *testing.T) {
	documents, err := schema.ParseYAML("a.yaml", []byte("a: 1\n---\nb: {c: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	schema.Release(documents)
	for i, want := range []int{1, 3} {
		path := [][]string{{"a"}, {"b", "c"}}[i]
		if line, _ := documents[i].Lookup(path...); line != want || documents[i].Value() != nil {
			t.Errorf("%v is in line %d, want %d; value %v", path, line, want, documents[i].Value())
		}
	}
}
