package lint_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

const examples = "../testdata/lint"

// example is one archive of testdata/lint; its README describes the form.
type example struct {
	files, against fstest.MapFS
	images, older  []testImage
	fault          string
	iso, project   bool
	deep, only     bool
	kubernetes     string
	enable         []string
	want           []string
	later          []string          // directives for the complete archive
	charts         map[string]string // file → directory of the example that is packed into it
}

func readExample(tb testing.TB, names ...string) *example {
	tb.Helper()
	e := &example{files: fstest.MapFS{}, charts: map[string]string{}}
	for _, name := range names {
		archive, err := txtar.ParseFile(filepath.Join(examples, name))
		check(tb, err)
		for line := range strings.Lines(string(archive.Comment)) {
			e.directive(tb, strings.TrimSpace(line))
		}
		if e.project {
			e.files = fstest.MapFS{}
		}
		for _, file := range archive.Files {
			if rest, ok := strings.CutPrefix(file.Name, "against/"); ok {
				if e.against == nil {
					e.against = maps.Clone(e.files)
				}
				e.against[rest] = &fstest.MapFile{Data: file.Data}
			}
		}
		for _, file := range archive.Files {
			if !strings.HasPrefix(file.Name, "against/") {
				e.files[file.Name] = &fstest.MapFile{Data: file.Data}
			}
		}
	}
	for file, dir := range e.charts {
		content := map[string]string{}
		for name, f := range e.files {
			if strings.HasPrefix(name, dir+"/") {
				content[name] = string(f.Data)
			}
		}
		e.files[file] = &fstest.MapFile{Data: packFiles(content)}
		if e.against != nil {
			e.against[file] = e.files[file]
		}
	}
	maps.DeleteFunc(e.files, func(name string, _ *fstest.MapFile) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(e.charts)), func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	})
	return e
}

func (e *example) directive(tb testing.TB, line string) {
	tb.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "want":
		e.want = append(e.want, rest)
	case "remove":
		delete(e.files, rest)
	case "image":
		e.images = append(e.images, parseImage(rest))
	case "against-image":
		e.older = append(e.older, parseImage(rest))
	case "big":
		name, size, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(size)
		check(tb, err)
		e.files[name] = &fstest.MapFile{Data: bytes.Repeat([]byte(" "), n)}
	case "no-image":
		e.images = slices.DeleteFunc(e.images, func(i testImage) bool { return i.ref == rest })
	case "base64":
		name, text, _ := strings.Cut(rest, " ")
		data, err := base64.StdEncoding.DecodeString(text)
		check(tb, err)
		e.files[name] = &fstest.MapFile{Data: data}
	case "chart":
		file, dir, _ := strings.Cut(rest, " ")
		e.charts[file] = dir
	case "flip", "pad":
		e.later = append(e.later, line)
	case "kubernetes":
		e.kubernetes = rest
	case "iso":
		e.iso = true
	case "iso-fault":
		e.iso, e.fault = true, rest
	case "project":
		e.project = true
	case "deep":
		e.deep = true
	case "only":
		e.only = true
	case "enable":
		e.enable = append(e.enable, rest)
	}
}

func parseImage(text string) testImage {
	fields := strings.Fields(text)
	image := testImage{ref: fields[0]}
	for _, field := range fields[1:] {
		if entrypoint, ok := strings.CutPrefix(field, "entrypoint="); ok {
			image.entrypoint = entrypoint
			continue
		}
		if path, ok := strings.CutPrefix(field, "path="); ok {
			image.searchPath = path
			continue
		}
		if file, ok := strings.CutPrefix(field, "file="); ok {
			image.file = file
			continue
		}
		if ids, ok := strings.CutPrefix(field, "diff-ids="); ok {
			image.diffIDs = ids
			continue
		}
		if url, ok := strings.CutPrefix(field, "url="); ok {
			image.url = url
			continue
		}
		image.platforms = append(image.platforms, field)
	}
	if len(image.platforms) == 0 {
		image.platforms = []string{"linux/amd64"}
	}
	return image
}

// finish changes files of the complete archive.
func (e *example) finish(tb testing.TB) {
	tb.Helper()
	for _, line := range e.later {
		var what, name string
		var n int
		_, err := fmt.Sscan(line, &what, &name, &n)
		check(tb, err)
		data := bytes.Clone(e.files[name].Data)
		switch what {
		case "flip":
			data[n] ^= 1
		case "pad":
			data = append(append(data, "padding: |\n"...), bytes.Repeat([]byte("  "+strings.Repeat("-", 1022)+"\n"), n)...)
		}
		e.files[name] = &fstest.MapFile{Data: data}
	}
}

// judged is a target and how it is judged.
type judged struct {
	*target.Target
	deep    bool
	against *target.Target
}

func openDirectory(tb testing.TB, files fs.FS) *judged {
	tb.Helper()
	t, err := target.OpenDirectory(files, "example")
	check(tb, err)
	return &judged{Target: t}
}

func openISO(tb testing.TB, data []byte) *judged {
	tb.Helper()
	t, err := target.OpenISO(bytes.NewReader(data), int64(len(data)))
	check(tb, err)
	return &judged{Target: t}
}

// target opens the example.
func (e *example) target(tb testing.TB) *judged {
	tb.Helper()
	var t *judged
	switch {
	case e.project:
		dir := tb.TempDir()
		check(tb, os.CopyFS(dir, e.files))
		t = openProject(tb, dir)
	default:
		addImages(tb, e.files, e.images)
		e.finish(tb)
		if !e.iso {
			t = openDirectory(tb, e.files)
			break
		}
		data := imageOf(tb, e.files, "Demo 1.0.0")
		if e.fault != "" {
			data = damage(tb, data, e.fault)
		}
		t = openISO(tb, data)
	}
	t.deep = e.deep
	if e.kubernetes != "" {
		check(tb, t.JudgeFor(e.kubernetes))
	}
	if e.against != nil {
		older := e.images
		if e.older != nil {
			older = append(slices.Clone(e.images[:1]), e.older...)
		}
		addImages(tb, e.against, older)
		t.against = openDirectory(tb, e.against).Target
	}
	return t
}

// openProject opens a project as the command does, without its images.
func openProject(tb testing.TB, dir string) *judged {
	tb.Helper()
	project, err := build.Load(dir, build.Overrides{})
	if err != nil {
		refused, other := target.OpenRefused(err)
		check(tb, other)
		return &judged{Target: refused}
	}
	tb.Cleanup(func() { _ = project.Close() })
	preview, err := project.Preview()
	check(tb, err)
	source := target.Source{FS: preview, Build: project.Build, Solution: preview.Solution, SourcePath: preview.Source}
	for _, refused := range project.Refusals(tb.Context()) {
		source.Refusals = append(source.Refusals, target.Refusal{File: refused.Path, Err: refused.Err})
	}
	for _, ref := range preview.Solution.Spec.Images {
		source.Images = append(source.Images, target.Image{Ref: ref})
	}
	t, err := target.OpenProject(source)
	check(tb, err)
	return &judged{Target: t}
}

func run(tb testing.TB, t *judged, enable ...string) []report.Finding {
	tb.Helper()
	result, err := lint.Run(tb.Context(), t.Target, lint.Options{Enable: enable, Deep: t.deep, Against: t.against})
	check(tb, err)
	return result.Findings
}

func of(rule string, findings []report.Finding) []report.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f report.Finding) bool { return f.Rule != rule })
}

// TestExamples proves every rule by an archive that breaks it and one that does not.
func TestExamples(t *testing.T) {
	for _, rule := range lint.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			bad := readExample(t, "base.txtar", rule.ID+"/bad.txtar")
			findings := of(rule.ID, run(t, bad.target(t), append(bad.enable, rule.ID)...))
			if len(bad.want) == 0 || len(findings) == 0 {
				t.Errorf("bad.txtar wants %d findings and has %d", len(bad.want), len(findings))
			}
			for _, want := range bad.want {
				if !slices.ContainsFunc(findings, func(f report.Finding) bool { return matches(f, want) }) {
					t.Errorf("no finding %q among:\n%s", want, text(findings))
				}
			}
			if bad.only && len(findings) != len(bad.want) {
				t.Errorf("there are %d findings, want %d:\n%s", len(findings), len(bad.want), text(findings))
			}
			for _, f := range findings {
				if f.Severity == report.SeverityError && rule.Severity != report.SeverityError {
					t.Errorf("the catalogue says %s: %s", rule.Severity, text([]report.Finding{f}))
				}
			}
			good := readExample(t, "base.txtar", rule.ID+"/good.txtar")
			if findings := of(rule.ID, run(t, good.target(t), append(good.enable, rule.ID)...)); len(findings) > 0 {
				t.Errorf("good.txtar has findings:\n%s", text(findings))
			}
		})
	}
}

// matches compares a finding with "FILE:LINE:COLUMN: TEXT".
func matches(f report.Finding, want string) bool {
	position, message, _ := strings.Cut(want, ": ")
	return f.Position() == strings.TrimSuffix(position, ":") && strings.Contains(f.Message+"; hint: "+f.Hint, message)
}

func text(findings []report.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s: %s [%s] %s\n", f.Severity, f, f.Rule, f.Hint)
	}
	return b.String()
}

// TestBase makes sure that the examples begin with something good.
func TestBase(t *testing.T) {
	for _, kind := range []string{"directory", "iso"} {
		t.Run(kind, func(t *testing.T) {
			base := readExample(t, "base.txtar")
			base.iso, base.deep = kind == "iso", true
			if findings := run(t, base.target(t)); len(findings) > 0 {
				t.Errorf("findings:\n%s", text(findings))
			}
		})
	}
}

// TestEveryExampleIsOfARule finds directories that no rule walks.
func TestEveryExampleIsOfARule(t *testing.T) {
	entries, err := os.ReadDir(examples)
	check(t, err)
	for _, entry := range entries {
		if _, err := lint.Find(entry.Name()); entry.IsDir() && strings.HasPrefix(entry.Name(), "SOL") && err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
}
