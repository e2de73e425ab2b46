package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestSetSiteValue checks that --set reads keys as solutionctl prints paths, and values as Helm does.
func TestSetSiteValue(t *testing.T) {
	for text, want := range map[string]any{
		"1.10": "1.10", "0755": "0755", `"yes"`: "yes", "nO": "nO", "#fff": "#fff", "1234e10": "1234e10", "0.5": "0.5", "": "", "v1: a": "v1: a", "a,b": "a,b", "2026-01-02": "2026-01-02",
		"12345678901234567": int64(12345678901234567), "0": int64(0), "-5": int64(-5), "true": true, "FALSE": false, "null": nil, "99999999999999999999": "99999999999999999999",
		"[a, 2]": []any{"a", 2.0}, "{a: yes}": map[string]any{"a": true}, `"1"`: "1", "'true'": "true",
	} {
		values := map[string]plan.SiteValues{}
		if err := setSiteValue("web.image.tag="+text, values); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(map[string]any{"image": map[string]any{"tag": want}}, map[string]any(values["web"].Values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	values := map[string]plan.SiteValues{}
	for _, text := range []string{`web.nodeSelector.kubernetes\.io/os=linux`, "web.args=a=b"} {
		if err := setSiteValue(text, values); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]any{"nodeSelector": map[string]any{"kubernetes.io/os": "linux"}, "args": "a=b"}, map[string]any(values["web"].Values)); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"web=1", "web.a", "web..a=1", ".a=1", "web.a.=1", "web.hosts[0].name=x", "web.a=[1", `web.a="b`, "web.a=no", "web.a=Yes", "web.a=ON", "web.a=off", "web.a=y", "web.a=~"} {
		if err := setSiteValue(text, values); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReadSiteValues checks that a file from which something would be lost is refused.
func TestReadSiteValues(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string // in the error
	}{
		"values":         {"---\ndb: {size: 1}\nweb:\n", ""},
		"an empty end":   {"# values\n---\ndb: {size: 1}\n---\n", ""},
		"nothing":        {"# nothing\n", ""},
		"two documents":  {"db: {size: 1}\n---\nweb: {a: b}\n", "2 documents"},
		"one twice":      {"web: {a: b}\ndb: {}\nweb: {c: d}\n", "web"},
		"a list":         {"- web\n", "site.yaml"},
		"a number below": {"web: 5\n", "site.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "site.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := readSiteValues(file, map[string]plan.SiteValues{})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
}
