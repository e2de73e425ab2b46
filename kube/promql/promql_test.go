package promql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/kube/promql"
)

func ExampleParse() {
	e, err := promql.Parse(`sum by (job) (rate(web_errors_total[5m])) / up{namespace="monitoring"} > 0.1`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Metrics(), e.IsScoped())
	fmt.Println(e.In("shop"))
	_, err = promql.Parse("sum(rate(up[5m])")
	fmt.Println(err)
	// Output:
	// [up web_errors_total] false
	// sum by (job) (rate(web_errors_total{namespace="shop"}[5m])) / up{namespace="monitoring"} > 0.1
	// 1:17: unclosed left parenthesis
}

// broken are expressions that Prometheus refuses, and where.
var broken = map[string]string{
	"":                                   "1:1",
	"  # nothing":                        "1:1",
	"sum(up":                             "1:7",
	"sum(up))":                           "1:9",
	`x{a="b")`:                           "1:8",
	"rate(x[5m)]":                        "1:10",
	`x{a="b}`:                            "1:5",
	"x{a='b\n'}":                         "1:5",
	"up ==":                              "1:6",
	"up and":                             "1:7",
	"sum(up) by":                         "1:11",
	"up +  # and the rest":               "1:21",
	"rate(x[five])":                      "1:8",
	"rate(x[])":                          "1:8",
	"rate(x[5, 6])":                      "1:9",
	"foo bar":                            "1:5",
	"rate(up)":                           "1:6",
	"up{a=b}":                            "1:6",
	"absentt(up)":                        "1:1",
	"x[5m]":                              "1:1",
	"sum(x[5m])":                         "1:5",
	"{}":                                 "1:1",
	`{a=""}`:                             "1:1",
	`{a=~".*"}`:                          "1:1",
	`x{a=~"("}`:                          "1:3",
	`x{a=~"*"}`:                          "1:3",
	`x{a=~"(["} or y`:                    "1:3",
	`x{é="1"}`:                           "1:3",
	`x{__name__="y"}`:                    "1:1",
	"x offset y":                         "1:10",
	`"text"`:                             "1:1",
	"offset 5m":                          "1:8",
	"x offset 5m offset 1m":              "1:1",
	"1 and 2":                            "1:1",
	"1 == 1":                             "1:3",
	"x + bool y":                         "1:3",
	"x and on(a) group_left(b) y":        "1:1",
	"x * on(a) group_left(a) y":          "1:3",
	"histogram_quantile(0.9)":            "1:1",
	"quantile(x)":                        "1:1",
	"topk(x, y)":                         "1:6",
	`label_replace(x, "a", "b", "c")`:    "1:1",
	"x[5m:1m:1m]":                        "1:8",
	"rate(x[5m:])[1m]":                   "1:13",
	"x @ tomorrow()":                     "1:5",
	`"text" == x`:                        "1:1",
	"sum by (a-b) (x)":                   "1:10",
	"x == = y":                           "1:6",
	"x ! y":                              "1:3",
	"x && y":                             "1:3",
	"x{a==\"b\"}":                        "1:5",
	"x{a=\"b\" c=\"d\"}":                 "1:9",
	"mad_over_time(x[5m])":               "1:1",
	"sum(\n  rate(x[5m])\n) > é":         "3:5",
	"sum(rate(x[5m])) > {{ threshold }}": "1:21",
	"x > ${limit}":                       "1:5",
}

func TestBroken(t *testing.T) {
	for text, at := range broken {
		e, err := promql.Parse(text)
		var found *promql.Error
		switch {
		case !errors.As(err, &found):
			t.Errorf("%q: got %v, %v", text, e, err)
		case fmt.Sprintf("%d:%d", found.Line, found.Column) != at || found.Message == "":
			t.Errorf("%q: got %v, want it at %s", text, found, at)
		}
	}
}

// good are expressions that Prometheus accepts, and the same ones restricted to the namespace ns.
var good = []struct{ text, in string }{
	{"up", `up{namespace="ns"}`},
	{"1", "1"},
	{"time() - 3600 * 1e3", "time() - 3600 * 1e3"},
	{"vector(1)", "vector(1)"},
	{"up == 0", `up{namespace="ns"} == 0`},
	{"up{}", `up{namespace="ns"}`},
	{"up { }", `up {namespace="ns" }`},
	{"-up", `-up{namespace="ns"}`},
	{`up{job="a"}`, `up{namespace="ns",job="a"}`},
	{`up{job="a",}`, `up{namespace="ns",job="a",}`},
	{`{job="a"}`, `{namespace="ns",job="a"}`},
	{`{__name__=~"a|b"}`, `{namespace="ns",__name__=~"a|b"}`},
	{`{"a metric"}`, `{namespace="ns","a metric"}`},
	{`{"a metric", "a label"=~".+"}`, `{namespace="ns","a metric", "a label"=~".+"}`},
	{`up{namespace="other"}`, `up{namespace="other"}`},
	{`up{namespace!=""} + up`, `up{namespace!=""} + up{namespace="ns"}`},
	{`{"namespace"="other", "up"}`, `{"namespace"="other", "up"}`},
	{`sum by (job) (rate(x{a="b"}[5m])) > 1`, `sum by (job) (rate(x{namespace="ns",a="b"}[5m])) > 1`},
	{"sum(x) by (job) / count(x) without (job)", `sum(x{namespace="ns"}) by (job) / count(x{namespace="ns"}) without (job)`},
	{`x{a='}'}`, `x{namespace="ns",a='}'}`},
	{"x{a=`\\`}", "x{namespace=\"ns\",a=`\\`}"},
	{`x{a="\""}`, `x{namespace="ns",a="\""}`},
	{"rate(x[5m:1m])", `rate(x{namespace="ns"}[5m:1m])`},
	{"rate(x[5m:])", `rate(x{namespace="ns"}[5m:])`},
	{"max_over_time(sum(rate(x[1m]))[1h:5m] offset 1d)", `max_over_time(sum(rate(x{namespace="ns"}[1m]))[1h:5m] offset 1d)`},
	{"x offset -5m", `x{namespace="ns"} offset -5m`},
	{"x{} offset 1w @ 1600000000", `x{namespace="ns"} offset 1w @ 1600000000`},
	{"x @ end()", `x{namespace="ns"} @ end()`},
	{"x # and a comment {\n+ y", "x{namespace=\"ns\"} # and a comment {\n+ y{namespace=\"ns\"}"},
	{"x # why\n  { # what\n a=\"b\" }", "x # why\n  {namespace=\"ns\", # what\n a=\"b\" }"},
	{"max_over_time(x[1h30m])", `max_over_time(x{namespace="ns"}[1h30m])`},
	{`a{s="r"} < ignoring(s) a{s="w"}`, `a{namespace="ns",s="r"} < ignoring(s) a{namespace="ns",s="w"}`},
	{"a * on (b) group_left (c) d", `a{namespace="ns"} * on (b) group_left (c) d{namespace="ns"}`},
	{"a unless on() b and c or d", `a{namespace="ns"} unless on() b{namespace="ns"} and c{namespace="ns"} or d{namespace="ns"}`},
	{"topk(scalar(a), b)", `topk(scalar(a{namespace="ns"}), b{namespace="ns"})`},
	{"quantile(0.5, x) > bool 3", `quantile(0.5, x{namespace="ns"}) > bool 3`},
	{`count_values("version", build_info)`, `count_values("version", build_info{namespace="ns"})`},
	{`label_replace(x, "a", "$1", "b", "(.*)")`, `label_replace(x{namespace="ns"}, "a", "$1", "b", "(.*)")`},
	{"histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))", `histogram_quantile(0.99, sum by (le) (rate(x_bucket{namespace="ns"}[5m])))`},
	{"absent(x) or absent_over_time(y[1h])", `absent(x{namespace="ns"}) or absent_over_time(y{namespace="ns"}[1h])`},
	{"job:x:rate5m ^ 2 % 3 atan2 1", `job:x:rate5m{namespace="ns"} ^ 2 % 3 atan2 1`},
	{"sum + count{} + offset", `sum{namespace="ns"} + count{namespace="ns"} + offset{namespace="ns"}`},
	{"SUM(x) BY (job) > Inf and NaN != x", `SUM(x{namespace="ns"}) BY (job) > Inf and NaN != x{namespace="ns"}`},
	{"((x))\n  >\n\t0x1F", "((x{namespace=\"ns\"}))\n  >\n\t0x1F"},
	{`{"é"="1", job="ü"}`, `{namespace="ns","é"="1", job="ü"}`},
}

func TestGood(t *testing.T) {
	for _, test := range good {
		e, err := promql.Parse(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if got := e.In("ns"); got != test.in {
			t.Errorf("%q: got  %q\nwant %q", test.text, got, test.in)
		}
		if again, err := promql.Parse(e.In("ns")); err != nil || !again.IsScoped() || again.In("other") != test.in {
			t.Errorf("%q: in a namespace it is not right: %v", test.text, err)
		}
	}
}

func TestSelectors(t *testing.T) {
	const text = `b{x="1", x!="2", a=~"3"} + sum by (namespace) ({__name__="a"}) + {__name__=~"c|d", namespace="n"} + scalar(topk(scalar(z), y))`
	e, err := promql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []promql.Selector{
		{Metric: "b", Labels: []string{"a", "x"}},
		{Metric: "a"},
		{Labels: []string{"namespace"}},
		{Metric: "z"},
		{Metric: "y"},
	}
	if diff := cmp.Diff(want, e.Selectors()); diff != "" {
		t.Error(diff)
	}
	if got := e.Metrics(); !slices.Equal(got, []string{"a", "b", "y", "z"}) {
		t.Errorf("it reads %q", got)
	}
	if e.IsScoped() {
		t.Error("it says which namespaces are meant")
	}
}

func TestMixes(t *testing.T) {
	for text, want := range map[string]bool{
		"x > 1":                          false,
		"1":                              false,
		"rate(x[5m]) < ignoring (a) y":   false,
		"sum(x)":                         true,
		"sum by (job) (x) > 1":           true,
		"sum by (job, namespace) (x)":    false,
		"sum without (job) (x)":          false,
		"sum without (namespace) (x)":    true,
		`sum(x{namespace="a"})`:          false,
		`sum(x{namespace="a"}) / sum(y)`: true,
		"sum by (job) (avg by (namespace, job) (x))": true,
		"topk(3, x)":                        false,
		"topk(3, sum(x))":                   true,
		"count_values(\"v\", x)":            true,
		"x / on (job) y":                    true,
		"x / on (job, namespace) y":         false,
		"x / ignoring (namespace) y":        true,
		"x * on (node) group_left (role) y": false,
		"x unless on () y":                  false,
		"absent(x)":                         true,
		`absent(x{namespace="a"})`:          false,
		"x > scalar(y)":                     true,
		"max_over_time(sum(x)[1h:])":        true,
		"-(sum(x))":                         true,
	} {
		e, err := promql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Mixes(); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// TestHostile: neither depth nor length takes the parser apart, and an error stays short.
func TestHostile(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":  strings.Repeat("(", 1<<20) + "x",
		"comments":  strings.Repeat("#\n", 30<<10) + "(",
		"functions": strings.Repeat("abs(", 400) + "x",
		"length":    strings.Repeat(" ", 1<<20) + "x",
		"pattern":   `x{a=~"` + strings.Repeat("(", 30<<10) + `"}`,
		"NUL":       "x\x00",
		"no UTF-8":  "x{a=\"\xff\"} + `\xff`",
	} {
		if _, err := promql.Parse(text); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
	for name, text := range map[string]string{
		"brackets":  strings.Repeat("(", 900) + "x" + strings.Repeat(")", 900),
		"operators": strings.Repeat("x^", 900) + "x",
	} {
		e, err := promql.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if e.IsScoped() || e.Mixes() || !strings.Contains(e.In("ns"), "x{") {
			t.Errorf("%s: misread", name)
		}
	}
}

// FuzzIn: putting a namespace into an expression changes nothing but selectors without one.
func FuzzIn(f *testing.F) {
	for text := range broken {
		f.Add(text)
	}
	for _, test := range good {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := promql.Parse(text)
		if err != nil {
			return
		}
		again, err := promql.Parse(e.In("ns"))
		if err != nil {
			if strings.Contains(err.Error(), "more than") {
				return
			}
			t.Fatalf("%q becomes %q: %v", text, e.In("ns"), err)
		}
		want := e.Selectors()
		for i, s := range want {
			if !s.Matches(promql.Namespace) {
				want[i].Labels = slices.Sorted(slices.Values(append(slices.Clone(s.Labels), promql.Namespace)))
			}
		}
		if diff := cmp.Diff(want, again.Selectors()); diff != "" {
			t.Errorf("%q becomes %q: %s", text, e.In("ns"), diff)
		}
	})
}

// TestOversized: expressions that would overflow a recursive parser, and patterns of gigabytes, are refused before they
// are parsed.
func TestOversized(t *testing.T) {
	matchers := func(count int, pattern string) string {
		var b strings.Builder
		for i := range count {
			fmt.Fprintf(&b, "a%d=~%q,", i, pattern)
		}
		return "up{" + b.String() + "}"
	}
	const long, large = "1:1: the expression has more than 65536 bytes or 2000 words", "the regular expressions are too large"
	for name, test := range map[string]struct{ text, want string }{
		"parentheses":       {strings.Repeat("(", 100_000) + "up" + strings.Repeat(")", 100_000), long},
		"aggregations":      {strings.Repeat("sum(", 100_000) + "up" + strings.Repeat(")", 100_000), long},
		"a megabyte":        {strings.Repeat("up+", 350_000) + "up", long},
		"a long text":       {`up{a="` + strings.Repeat("x", 1<<20) + `"}`, long},
		"classes repeated":  {matchers(480, `(((\pL){10}){10}){9}`), large},
		"repeated":          {matchers(400, `((ab|cd){10}){99}`), large},
		"not a match":       {strings.ReplaceAll(matchers(480, `((\pL){90}){9}`), "=~", "!~"), large},
		"escaped":           {`up{a=~"` + strings.Repeat(`(\x28\\pL\x29\x7b900\x7d)`, 30) + `"}`, large},
		"one that is usual": {matchers(50, `web-[a-z0-9]{1,10}-[a-z0-9]{5}|(api|db)-\d+`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := promql.Parse(test.text)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("err = %.200v", err)
			}
		})
	}
}
