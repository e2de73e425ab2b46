package lint

import (
	"strings"
	"testing"
)

func TestWrongExpression(t *testing.T) {
	good := []string{
		"up", "1", "up == 0", `sum by (job) (rate(x{a="b"}[5m])) > 1`, `x{a=~"(["}`, `x{a='}'}`, "x{a=`\\`}", `x{a="\""}`,
		"rate(x[5m:1m])", "rate(x[5m:])", "x offset -5m", "x # and a comment (\n+ y", "max_over_time(x[1h30m])",
		`website_replicas{state="ready"} < ignoring(state) website_replicas{state="wanted"}`, "x @ end()", "-x",
	}
	for _, text := range good {
		if got := wrongExpression(text); got != "" {
			t.Errorf("%s: got %q", text, got)
		}
	}
	bad := map[string]string{
		"":                     "empty",
		"  # nothing":          "empty",
		"sum(up":               "( that is not closed",
		"sum(up))":             ") that closes nothing",
		"x{a=\"b\")":           ") that closes nothing",
		"rate(x[5m)]":          ") that closes nothing",
		`x{a="b}`:              "quote",
		"up ==":                "ends with an operator",
		"up and":               "ends with an operator",
		"sum(up) by":           "ends with an operator",
		"up +  # and the rest": "ends with an operator",
		"rate(x[five])":        "not a range",
		"rate(x[])":            "not a range",
	}
	for text, want := range bad {
		if got := wrongExpression(text); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// FuzzExpression makes sure that no expression takes the check apart.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{`sum(rate(x{a="b"}[5m])) > 1`, "[", "\"\\", "`", "a#b\nc", "[[[]]]", "x[5m:1m]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := wrongExpression(text); got == "" && strings.TrimSpace(text) == "" {
			t.Error("an empty expression is accepted")
		}
		if wrongExpression(text+"(") == "" && !strings.ContainsAny(text, "\"'`#") {
			t.Errorf("%q with an open bracket is accepted", text)
		}
	})
}
