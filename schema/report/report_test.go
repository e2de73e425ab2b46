package report_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

func TestCodeOf(t *testing.T) {
	inner := report.Errorf(report.Corrupt, "blob: %w", fs.ErrInvalid).WithHint("rebuild %s", "x.iso")
	for _, test := range []struct {
		name   string
		err    error
		code   report.Code
		status int
	}{
		{"nil", nil, "", 1},
		{"plain", errors.New("disk on fire"), report.Failure, 1},
		{"coded", inner, report.Corrupt, 5},
		{"wrapped", fmt.Errorf("open x.iso: %w", inner), report.Corrupt, 5},
		{"outermost wins", report.Errorf(report.Usage, "bad argument: %w", inner), report.Usage, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := report.CodeOf(test.err); got != test.code {
				t.Errorf("CodeOf = %q, want %q", got, test.code)
			}
			if got := test.code.ExitStatus(); got != test.status {
				t.Errorf("ExitStatus = %d, want %d", got, test.status)
			}
		})
	}
	if !errors.Is(inner, fs.ErrInvalid) {
		t.Error("the cause is lost")
	}
}

func TestHints(t *testing.T) {
	a := report.Errorf(report.Invalid, "a").WithHint("do this")
	b := report.Errorf(report.Invalid, "b").WithHint("do that")
	err := report.Errorf(report.Failure, "all: %w", errors.Join(a, b, a)).WithHint("first of all")
	want := []string{"first of all", "do this", "do that"}
	if got := report.Hints(err); !slices.Equal(got, want) {
		t.Errorf("Hints = %q, want %q", got, want)
	}
}

func TestCodesAreOrderedAndUnique(t *testing.T) {
	seen := map[report.Code]bool{}
	last := 0
	for _, info := range report.Codes() {
		if seen[info.Code] || info.ExitStatus < last || info.Meaning == "" {
			t.Errorf("bad row %+v", info)
		}
		seen[info.Code], last = true, info.ExitStatus
	}
}

func TestEditDistance(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"images", "images", 0},
		{"imagess", "images", 1},
		{"dispayName", "displayName", 1},
		{"kitten", "sitting", 3},
		{long, long, math.MaxInt},
		{"x", long, math.MaxInt},
	} {
		if got := report.EditDistance(test.a, test.b); got != test.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := report.EditDistance(test.b, test.a); got != test.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", test.b, test.a, got, test.want)
		}
	}
}

func ExampleFinding() {
	findings := []report.Finding{
		{Path: "operator/deploy/role.yaml", Line: 7, Column: 3, Message: "want Role or ClusterRole, got RoleBinding"},
		{Path: "manifest.yaml", Line: 4, Object: "spec.version", Message: `"v1" is not a semantic version`},
	}
	report.SortFindings(findings)
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// manifest.yaml:4: spec.version: "v1" is not a semantic version
	// operator/deploy/role.yaml:7:3: want Role or ClusterRole, got RoleBinding
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 objects", 1: "1 object", 2: "2 objects"} {
		if got := report.Count(n, "object"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain text", "héllo, 日本\t\n", "héllo, 日本\t\n"},
		{"escape sequence", "\x1b]0;owned\a", `\u001b]0;owned\u0007`},
		{"right-to-left override", "iso.\u202egpj", `iso.\u202egpj`},
		{"carriage return", "ok\rbad", `ok\u000dbad`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"a real replacement character", "a\ufffdb", "a\ufffdb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := report.Clean(test.text); got != test.want {
				t.Errorf("Clean(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		" two\n\tlines ": "two lines", "a\x1bb": `a\u001bb`, "exactly ten": "exactly…", "日本語日本": "日本…",
	} {
		if got := report.OneLine(text, 10); got != want || len(got) > 10 {
			t.Errorf("OneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, test := range []struct {
		n    int64
		want string
	}{
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{102 * 1024, "102 KiB"},
		{1<<20 - 1, "1.0 MiB"},
		{3 << 19, "1.5 MiB"},
		{5_000_000_000, "4.7 GiB"},
		{1<<63 - 1, "8.0 EiB"},
		{-1536, "-1.5 KiB"},
	} {
		if got := report.Bytes(test.n); got != test.want {
			t.Errorf("Bytes(%d) = %q, want %q", test.n, got, test.want)
		}
	}
}

// TestShellFile: names of files in commands are one word, and no flag.
func TestShellFile(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.iso": "a/b.iso", "-x.iso": "./-x.iso", "- x": "'./- x'", "it's": `'it'\''s'`, "": "''",
	} {
		if got := report.ShellFile(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// TestRemedy: the text of a remedy is the command to type, and the error contains it as data.
func TestRemedy(t *testing.T) {
	for want, r := range map[string]report.Remedy{
		"":                          {},
		"solutionctl deploy status": report.Run("deploy status"),
		"solutionctl deploy import '/media/two words.iso'": report.Run("deploy import", "/media/two words.iso"),
		"--adopt": report.Accept("adopt"),
		"--accept-data-loss a.b,c.d --accept-invalid e.f":     report.Accept("accept-data-loss", "a.b", "c.d").With("accept-invalid", "e.f"),
		"solutionctl deploy env delete test --namespace eu":   report.Run("deploy env delete", "test").With("namespace", "eu"),
		"solutionctl deploy remove test shop --adopt --force": report.Run("deploy remove", "test", "shop").With("adopt").About("one").With("force"),
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if r.IsZero() != (want == "") {
			t.Errorf("%q: zero %t", want, r.IsZero())
		}
	}
	first, second := report.Run("deploy remove", "test", "shop"), report.Accept("adopt").About("one", "two")
	inner := report.Errorf(report.Conflict, "inner").WithHint("first: %s", report.Remedies{first, first})
	outer := report.Errorf(report.Refused, "outer: %w", errors.Join(inner, report.Errorf(report.Failure, "x").WithHint("again"))).WithHint("take it with %s", second)
	if want := []string{"take it with --adopt", "first: solutionctl deploy remove test shop", "again"}; !slices.Equal(report.Hints(outer), want) {
		t.Errorf("hints %q, want %q", report.Hints(outer), want)
	}
	if want := (report.Remedies{second, first}); !reflect.DeepEqual(report.RemediesOf(outer), want) {
		t.Errorf("remedies %+v, want %+v", report.RemediesOf(outer), want)
	}
	both := errors.Join(report.Errorf(report.Conflict, "x").WithHint("%s", second), report.Errorf(report.Conflict, "y").WithHint("%s", report.Accept("adopt").About("two", "three")))
	if want := (report.Remedies{report.Accept("adopt").About("one", "two", "three")}); !reflect.DeepEqual(report.RemediesOf(both), want) || len(second.Options[0].Objects) != 2 {
		t.Errorf("remedies %+v, want %+v", report.RemediesOf(both), want)
	}
	if got := report.Accept("adopt").About(make([]string, 1000)...).Options[0].Objects; len(got) > 101 || got[len(got)-1] != "and 900 more" {
		t.Errorf("%d objects, the last %q", len(got), got[len(got)-1])
	}
}
