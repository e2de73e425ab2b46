package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var versionTexts = []string{
	"1.0.0", "0.0.0", "10.20.30", "1.0.0-rc.1", "1.0.0-alpha10", "1.0.0-0.3.7", "1.0.0-x-y-z.--", "1.0.0-0a",
	"", "1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-01", "1.0.0-", "1.0.0-a..b", "1.0.0+a", "1.0.0-a+b",
	"1.0.0-RC1", "1.0.0 ", " 1.0.0", "1.0.0\n", "latest", "1.0.0-ä",
}

func TestParseVersion(t *testing.T) {
	for _, test := range []struct{ text, hint string }{
		{"1.0.0", ""},
		{"1.1.0-rc.1", ""},
		{"1.0", "write 1.0.0"},
		{"v1.2.3", "write 1.2.3"},
		{"1.0.0+git.1", "write 1.0.0"},
		{"1.0.0-RC1", "write 1.0.0-rc1"},
		{"new", "write MAJOR.MINOR.PATCH, such as 1.0.0 or 1.1.0-rc.1"},
	} {
		v, err := schema.ParseVersion(test.text)
		if got := strings.Join(report.Hints(err), "|"); got != test.hint {
			t.Errorf("ParseVersion(%q): hint %q, want %q", test.text, got, test.hint)
		}
		if (err == nil) != (test.hint == "") || err == nil && v.String() != test.text || v.IsZero() != (err != nil) {
			t.Errorf("ParseVersion(%q) = %q, %v", test.text, v, err)
		}
	}
	if _, err := schema.ParseVersion("1.0.0-" + strings.Repeat("a", 58)); err == nil {
		t.Error("a version that is no label value was accepted")
	}
}

func versions(tb testing.TB, texts ...string) []schema.Version {
	tb.Helper()
	var list []schema.Version
	for _, text := range texts {
		v, err := schema.ParseVersion(text)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func TestLatest(t *testing.T) {
	for _, test := range []struct {
		name      string
		versions  []string
		preferPre bool
		want      string
		notice    string
	}{
		{"release beats newer pre-release", []string{"1.0.0", "1.1.0-rc.1", "0.9.0"}, false, "1.0.0", ""},
		{"pre-release preferred", []string{"1.0.0", "1.1.0-rc.1"}, true, "1.1.0-rc.1", ""},
		{"release beats its own pre-release", []string{"1.1.0-rc.1", "1.1.0"}, true, "1.1.0", ""},
		{"numbers, not text", []string{"1.9.0", "1.10.0"}, false, "1.10.0", ""},
		{"numeric identifiers", []string{"1.0.0-rc.9", "1.0.0-rc.10"}, true, "1.0.0-rc.10", ""},
		{"only pre-releases", []string{"0.1.0-dev", "0.1.1-dev"}, false, "0.1.1-dev", "there is no release, so 0.1.1-dev, the highest pre-release, is the latest version"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, notice, ok := schema.Latest(versions(t, test.versions...), test.preferPre)
			if got.String() != test.want || notice != test.notice || !ok {
				t.Errorf("got %s, %q, %t", got, notice, ok)
			}
		})
	}
	if v, _, ok := schema.Latest(nil, false); ok {
		t.Errorf("the latest of nothing is %s", v)
	}
}

func TestSamePrecedence(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"1.0.0+a", "1.0.0+b", true},
		{"1.0.0", "1.0.0+b", true},
		{"2.4", "2.4.0", true},
		{"1.0.0", "1.0.1", false},
		{"1.0.0-a", "1.0.0", false},
		{"what", "what", true},
		{"what", "1.0.0", false},
	} {
		if got := schema.SamePrecedence(test.a, test.b); got != test.want {
			t.Errorf("SamePrecedence(%q, %q) = %t", test.a, test.b, got)
		}
	}
}

func TestRange(t *testing.T) {
	for _, test := range []struct {
		text, version string
		want          bool
	}{
		{"", "0.1.0-dev", true},
		{">=1.4.0 <2", "1.4.0", true},
		{">=1.4.0 <2", "2.0.0", false},
		{">=1.4.0 <2", "1.5.0-rc.1", false},
		{">=1.4.0-0 <2", "1.5.0-rc.1", true},
		{"^1.4 || ~3.1", "3.1.9", true},
		{"*", "0.1.0-dev", false},
	} {
		r, err := schema.ParseRange(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Contains(versions(t, test.version)[0]); got != test.want || r.String() != test.text {
			t.Errorf("range %q contains %s = %t", test.text, test.version, got)
		}
	}
	for _, text := range []string{"1.0 to 2.0", ">2 <1", ">1.2.3 <1.2.4", "1.0.0 2.0.0", ">=1.4, <1.4"} {
		if _, err := schema.ParseRange(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, text := range []string{"<2", "<=0", "!=1.0.0", ">1", ">1.2", "~1.2 !=1.2.0", "1.x", "1.2 - 1.4", ">1.2.3-rc.1 <1.2.3", "^0.0.3", "=1.0.0-rc.1"} {
		if _, err := schema.ParseRange(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRangeOfKubernetes(t *testing.T) {
	for _, test := range []struct {
		text, version string
		want          bool
	}{
		{">=1.34", "1.36.3-eks-1", true},
		{">=1.34", "v1.30.14+k3s1", false},
		{">=1.30 <1.37", "v1.37.0-alpha.1", false},
		{">=1.30 <1.37", "v1.36.0-rc.0", true},
		{"", "v1.20.0", true},
	} {
		r, err := schema.ParseRange(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.ContainsKubernetes(test.version); got != test.want || err != nil {
			t.Errorf("range %q contains Kubernetes %s = %t, %v", test.text, test.version, got, err)
		}
	}
	if _, err := (schema.Range{}).ContainsKubernetes("master"); err == nil {
		t.Error("nonsense was accepted")
	}
}

func ExampleLatest() {
	var imported []schema.Version
	for _, text := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1"} {
		v, _ := schema.ParseVersion(text)
		imported = append(imported, v)
	}
	latest, _, _ := schema.Latest(imported, false)
	preview, _, _ := schema.Latest(imported, true)
	fmt.Println(latest, preview)
	// Output: 1.10.0 2.0.0-rc.1
}
