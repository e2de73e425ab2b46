package lint

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/lint/target"
)

var update = flag.Bool("update", false, "write golden files again")

const (
	corpus           = "testdata/corpus"
	completenessPage = "../docs/reference/lint-completeness.md"
)

// project is one application of the corpus, and its result.
type project struct {
	name, source string
	notes        []string // of SOURCE
	programs     []string // images that only the source code of the operator names
	found        int      // of those that the manifests name
	certain      int      // of the found ones
	missed       []string
	falseAlarms  []string
}

// TestCorpus compares the images that are found in public applications with lists made by hand. The page of the
// documentation holds the result: a change to it is a change in what is found.
func TestCorpus(t *testing.T) {
	entries, err := os.ReadDir(corpus)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 20 {
		t.Fatalf("got %d applications, want 20 or more", len(entries))
	}
	var projects []project
	for _, entry := range entries {
		projects = append(projects, judgeProject(t, entry.Name()))
	}
	got := completenessTable(projects)
	if *update {
		if err = os.WriteFile(completenessPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(completenessPage)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date; write it with: go test ./lint -run TestCorpus -update\n%s", completenessPage, got)
	}
}

func judgeProject(t *testing.T, name string) project {
	t.Helper()
	dir := os.DirFS(path.Join(corpus, name))
	opened, err := target.OpenDirectory(corpusArchive(t, dir, name), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range opened.Charts() {
		if c.Err != nil {
			t.Logf("%s: %v", name, c.Err)
		}
	}
	for _, file := range opened.Manifests() {
		if _, err := opened.Documents(file); err != nil {
			t.Logf("%s: %v", name, err)
		}
	}
	inManifests, programs := readImages(t, dir)
	source, more, _ := strings.Cut(readText(t, dir, "SOURCE"), "\n")
	p := project{name: name, source: strings.TrimSuffix(strings.TrimPrefix(source, "Go module "), "."), programs: programs}
	for line := range strings.Lines(more) {
		if note, ok := strings.CutPrefix(strings.TrimSpace(line), "Note: "); ok {
			p.notes = append(p.notes, note)
		}
	}
	found := map[string]bool{} // → certain
	for _, use := range uses(t.Context(), &subject{Target: opened}) {
		found[fullName(use.Image)] = found[fullName(use.Image)] || use.Certain
	}
	for _, image := range inManifests {
		certain, ok := found[fullName(image)]
		switch {
		case !ok:
			p.missed = append(p.missed, image)
		case certain:
			p.certain++
			fallthrough
		default:
			p.found++
		}
		delete(found, fullName(image))
	}
	for image := range found {
		p.falseAlarms = append(p.falseAlarms, image)
	}
	slices.Sort(p.falseAlarms)
	return p
}

// corpusArchive makes an archive of the manifests and the chart.
func corpusArchive(t *testing.T, dir fs.FS, name string) fstest.MapFS {
	t.Helper()
	archive := fstest.MapFS{"manifest.yaml": {Data: []byte("apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: " + name + "}\nspec: {version: 1.0.0, images: []}\n")}}
	manifests, err := fs.Glob(dir, "manifests/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests {
		archive["components/"+path.Base(file)] = &fstest.MapFile{Data: []byte(readText(t, dir, file))}
	}
	if chart := packChart(t, dir, name); chart != nil {
		archive["charts/"+name+".tgz"] = &fstest.MapFile{Data: chart}
	}
	return archive
}

// packChart packs the directory chart as helm package does; nil when there is none.
func packChart(t *testing.T, dir fs.FS, name string) []byte {
	t.Helper()
	if _, err := fs.Stat(dir, "chart"); err != nil {
		return nil
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	err := fs.WalkDir(dir, "chart", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data := readText(t, dir, file)
		header := tar.Header{Name: name + strings.TrimPrefix(file, "chart"), Mode: 0o644, Size: int64(len(data))}
		if err = archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err = archive.Write([]byte(data))
		return err
	})
	for _, err := range []error{err, archive.Close(), compressed.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return packed.Bytes()
}

func readText(t *testing.T, dir fs.FS, name string) string {
	t.Helper()
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// readImages reads images.txt: one image a line; "program IMAGE WHERE" for those that no manifest names.
func readImages(t *testing.T, dir fs.FS) (inManifests, programs []string) {
	t.Helper()
	for line := range strings.Lines(readText(t, dir, "images.txt")) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case fields[0] == "program" && len(fields) == 3:
			programs = append(programs, fields[1])
		case len(fields) == 1:
			inManifests = append(inManifests, line)
		default:
			t.Fatalf("images.txt: %s", line)
		}
	}
	return inManifests, programs
}

// completenessTable is the page of the documentation.
func completenessTable(projects []project) string {
	var b strings.Builder
	var named, found, certain, missed, alarms, programs int
	for _, p := range projects {
		named += p.found + len(p.missed)
		found += p.found
		certain += p.certain
		missed += len(p.missed)
		alarms += len(p.falseAlarms)
		programs += len(p.programs)
	}
	fmt.Fprintf(&b, `# How complete is completeness?

The rules SOL601 and SOL602 claim to find every image that an application can start. This page measures the claim: %d public
operators and charts, unmodified, each with a list of its images that was made by reading the manifests, the values of the chart and
the source code of the operator. They lie in lint/testdata/corpus, where SOURCE says what was taken from where. The page is written by

    go test ./lint -run TestCorpus -update

and a test fails when it no longer tells the truth.

**%d images are named by manifests: %d were found (%d for certain, SOL601; %d as likely, SOL602) and %d missed; false alarms: %d.**
%d more are named by nothing but the source code of an operator. No reading of manifests finds those: give them to the operator in its
configuration, or list them under images in solution.yaml.

| application | source | in manifests | found for certain | found as likely | missed | false alarms | in the program only |
|---|---|---|---|---|---|---|---|
`, len(projects), named, found, certain, found-certain, missed, alarms, programs)
	for _, p := range projects {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %d |\n", p.name, p.source, p.found+len(p.missed), p.certain, p.found-p.certain,
			len(p.missed), len(p.falseAlarms), len(p.programs))
	}
	section(&b, "Missed", projects, func(p project) []string { return quoted(p.missed) })
	section(&b, "False alarms", projects, func(p project) []string { return quoted(p.falseAlarms) })
	section(&b, "Notes", projects, func(p project) []string { return p.notes })
	section(&b, "In the program only", projects, func(p project) []string { return quoted(p.programs) })
	return b.String()
}

func section(b *strings.Builder, title string, projects []project, list func(project) []string) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	empty := true
	for _, p := range projects {
		for _, entry := range list(p) {
			fmt.Fprintf(b, "* %s: %s\n", p.name, entry)
			empty = false
		}
	}
	if empty {
		b.WriteString("None.\n")
	}
}

func quoted(images []string) []string {
	list := make([]string, len(images))
	for i, image := range images {
		list[i] = "`" + image + "`"
	}
	return list
}
