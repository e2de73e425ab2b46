package lint

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// countingFS counts how often a file is opened.
type countingFS struct {
	fs.FS
	opened int
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.opened++
	return c.FS.Open(name)
}

// TestLines: the lines of sorted findings are read from each file once, however many there are.
func TestLines(t *testing.T) {
	files := &countingFS{FS: fstest.MapFS{
		"a.yaml": {Data: []byte("one\r\ntwo\n\nfour")}, "b.yaml": {Data: []byte(strings.Repeat("x\n", 1000))},
	}}
	l := lines{files: files}
	for _, test := range []struct {
		name string
		line int
		want string
	}{
		{"a.yaml", 1, "one"},
		{"a.yaml", 1, "one"},
		{"a.yaml", 4, "four"},
		{"a.yaml", 5, ""},
		{"a.yaml", 2, "two"},
		{"a.yaml", 3, ""},
		{"a.yaml", 0, ""},
		{"b.yaml", 1000, "x"},
		{"b.yaml", 1001, ""},
		{"", 1, ""},
		{"none.yaml", 1, ""},
		{"none.yaml", 7, ""},
	} {
		if got := l.line(test.name, test.line); got != test.want {
			t.Errorf("line %d of %q is %q, want %q", test.line, test.name, got, test.want)
		}
	}
	if files.opened != 3 {
		t.Errorf("files were opened %d times, want 3", files.opened)
	}
}
