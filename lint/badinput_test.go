package lint_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestBadInput offers files that no tool should choke on: each is a finding.
func TestBadInput(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	check(t, os.WriteFile(huge, nil, 0o644))
	check(t, os.Truncate(huge, 100<<20))
	hugeText, err := os.ReadFile(huge)
	check(t, err)
	deep := strings.Repeat("[", 100_000)
	for name, test := range map[string]struct {
		file, text, rule, want string
	}{
		"UTF-16":         {"ui/ui.yaml", "\xff\xfea\x00:\x00 \x001\x00", "SOL205", "UTF-16"},
		"not UTF-8":      {"ui/ui.yaml", "a: caf\xe9\n", "SOL205", "not UTF-8"},
		"100 MB":         {"ui/ui.yaml", string(hugeText), "SOL205", "larger than 4194304 bytes"},
		"deep":           {"ui/ui.yaml", deep, "SOL205", ""},
		"deep CRD":       {"operator/deploy/crds/deep_crd.yaml", "kind: " + deep, "SOL205", ""},
		"huge manifest":  {"manifest.yaml", string(hugeText), "SOL201", "larger than"},
		"bomb":           {"manifest.yaml", "a: &a [*a, *a]\n", "SOL201", ""},
		"no manifest":    {"manifest.yaml", "- just\n- a list\n", "SOL201", "want a document of kind Solution"},
		"huge registry":  {"registry-config.inc.j2", string(hugeText), "SOL105", "cannot be read"},
		"deep dashboard": {"monitoring/dashboards/deep.json", deep, "SOL503", "exceeded max depth"},
		"huge dashboard": {"monitoring/dashboards/huge.json", "{\"a\": [" + strings.Repeat("[],", 1<<20) + "[]]}", "SOL503", "more than 150000 keys"},
		"list of lists":  {"operator/deploy/role.yaml", "kind: List\napiVersion: v1\nitems: [[], 1, null]\n", "", ""},
		"odd metadata":   {"ui/ui.yaml", "kind: Service\napiVersion: v1\nmetadata: [1]\n", "SOL307", ""},
		"odd kind":       {"ui/ui.yaml", "kind: [1]\napiVersion: {}\n", "", ""},
		"CRD of lists":   {"operator/deploy/crds/odd_crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: {}}\n", "SOL321", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := readExample(t, "base.txtar")
			e.files[test.file] = &fstest.MapFile{Data: []byte(test.text)}
			findings := run(t, e.target(t))
			if test.rule == "" {
				return // no crash is all
			}
			found := of(test.rule, findings)
			if len(found) == 0 || !strings.Contains(found[0].Message, test.want) || found[0].Path != test.file {
				t.Errorf("got:\n%s\nwant %s in %s: %q", text(findings), test.rule, test.file, test.want)
			}
		})
	}
}

// TestLongDashboard: paths are not written for all that lies below a long key.
func TestLongDashboard(t *testing.T) {
	e := readExample(t, "base.txtar")
	list := strings.Repeat(`{"expr": "up", "x": {"y": 1}},`, 20_000)
	dashboard := `{"title": "a", "uid": "a", "panels": [], "` + strings.Repeat("k", 1<<20) + `": [` + list + `{}]}`
	e.files["monitoring/dashboards/long.json"] = &fstest.MapFile{Data: []byte(dashboard)}
	runWithin(t, e, 1<<30)
}

// TestHostileRegistryConfig: what is kept of a registry configuration grows with its size at most.
func TestHostileRegistryConfig(t *testing.T) {
	const size = 1 << 20
	for name, text := range map[string]string{
		"one location":    "location x {\n" + strings.Repeat("a\n", size/2),
		"no location":     strings.Repeat("a\n", size/2),
		"variables":       strings.Repeat("{{{%", size/4), // each one begins a variable that has no end
		"long paths":      strings.Repeat("location "+strings.Repeat("x", size/16)+" {\n}\n", 16),
		"many locations":  strings.Repeat("location x {\n}\n", size/15),
		"endless comment": "#" + strings.Repeat("{%", size/2),
	} {
		t.Run(name, func(t *testing.T) {
			e := readExample(t, "base.txtar")
			e.files["registry-config.inc.j2"] = &fstest.MapFile{Data: []byte(text)}
			if found := of("SOL105", runWithin(t, e, 160<<20)); len(found) == 0 {
				t.Error("it has no finding")
			}
		})
	}
}

// TestManySuppressions: a file has so many suppressions at most, and the others are reported once.
func TestManySuppressions(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	for name, text := range map[string]string{
		"rules":       "# solutionctl:ignore" + strings.Repeat(" SOL101", 100_000) + " because\n" + object,
		"comments":    strings.Repeat("# solutionctl:ignore SOL101 because\n", 30_000) + object,
		"annotations": object + "  annotations:\n    lint.solutionctl.io/ignore: '" + strings.Repeat("SOL101: because;", 60_000) + "'\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := readExample(t, "base.txtar")
			e.files["ui/many.yaml"] = &fstest.MapFile{Data: []byte(text)}
			findings := of("SOL211", runWithin(t, e, 512<<20))
			want := "its suppressions name more than 1000 rules"
			if !slices.ContainsFunc(findings, func(f report.Finding) bool { return strings.HasPrefix(f.Message, want) }) || len(findings) > 201 {
				t.Errorf("%d findings, want one %q", len(findings), want)
			}
		})
	}
}

// runWithin judges an example and fails if more than a number of bytes was allocated.
func runWithin(t *testing.T, e *example, most uint64) []report.Finding {
	t.Helper()
	target := e.target(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	findings := run(t, target)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
		t.Errorf("it allocated %d MiB", allocated>>20)
	}
	return findings
}

func TestNotASolution(t *testing.T) {
	_, err := target.OpenDirectory(fstest.MapFS{"readme.txt": {Data: []byte("hello")}}, "somewhere")
	if report.CodeOf(err) != report.Invalid || len(report.Hints(err)) == 0 {
		t.Errorf("got %v (%s)", err, report.CodeOf(err))
	}
	for _, data := range []string{"", "hello", strings.Repeat("\x00", 1<<20)} {
		if findings := run(t, openISO(t, []byte(data))); len(findings) == 0 {
			t.Errorf("%d bytes that are no image have no finding", len(data))
		}
	}
}

// TestUnknownRule: unknown names of rules are refused.
func TestUnknownRule(t *testing.T) {
	_, err := lint.Run(t.Context(), readExample(t, "base.txtar").target(t).Target, lint.Options{Disable: []string{"SOL1"}})
	if report.CodeOf(err) != report.Usage {
		t.Errorf("got %v", err)
	}
}

// FuzzDirectory judges directories with one foreign file.
func FuzzDirectory(f *testing.F) {
	for _, name := range []string{
		"manifest.yaml", "operator/deploy/role.yaml", "operator/deploy/crds/clocks_crd.yaml", "operator/deploy/crds/clocks_cr.yaml",
		"ui/ui.yaml", "monitoring/rules.yaml", "monitoring/dashboards/d.json", "registry-config.inc.j2", "charts/web.tgz",
	} {
		base := readExample(f, "base.txtar")
		data := []byte("apiVersion: v1\nkind: Service\nmetadata: {name: ui} # solutionctl:ignore SOL305 because\n")
		if file := base.files[name]; file != nil {
			data = file.Data
		}
		f.Add(name, data)
	}
	base := readExample(f, "base.txtar")
	addImages(f, base.files, base.images)
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if !fs.ValidPath(name) || !fitsInto(base.files, name) {
			return // no file system has it, and a MapFS with it has no end
		}
		files := maps.Clone(base.files)
		files[name] = &fstest.MapFile{Data: data}
		opened, err := target.OpenDirectory(files, "fuzz")
		if err != nil {
			return
		}
		for _, finding := range run(t, &judged{Target: opened}) {
			if finding.Rule == "" || finding.Message == "" || finding.Line < 0 {
				t.Errorf("a finding without rule, message or with a bad line: %+v", finding)
			}
		}
	})
}

// fitsInto reports whether a file of that name can be added: no directory has the name, and no file is above it.
func fitsInto(files fstest.MapFS, name string) bool {
	for other := range files {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return false
		}
	}
	return name != "."
}
