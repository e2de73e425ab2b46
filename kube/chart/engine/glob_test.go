package engine

import (
	"fmt"
	"testing"

	"github.com/gobwas/glob"
)

// FuzzGlob compares names with patterns as the library does, which Helm uses.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{
		"conf/*", "conf/**", "conf/**.ini", "conf/**/a.ini", "**/a.*", "**/*.{ini,json}", "?onf/[a-c].i[!x]i", "{conf,etc}/{a*,b?}.ini", "conf/\\*", "[", "{,a", "***a", "**a**b",
	} {
		for _, name := range []string{"conf/a.ini", "conf/sub/a.ini", "etc/a1.ini", "conf/*", "a", "ab", "é/a.json"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 20 || len(name) > 20 {
			return // the time of the library grows with the power of the wildcards
		}
		match, err := globPattern{pattern, newBudget(t.Context())}.compile()
		if err != nil {
			return
		}
		want := compared(t, func() (bool, error) {
			compiled, err := glob.Compile(pattern, '/')
			return err != nil || compiled.Match(name), nil
		})
		if got := compared(t, func() (bool, error) { return match(name) }); got != want {
			t.Errorf("pattern %q, name %q: got %s, want %s", pattern, name, got, want)
		}
	})
}

// compared returns the result of a comparison: the library panics for some patterns.
func compared(t *testing.T, compare func() (bool, error)) (result string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			result = fmt.Sprint(p)
		}
	}()
	matches, err := compare()
	return fmt.Sprint(matches, err)
}
