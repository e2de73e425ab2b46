package host

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// fakeActive is a cluster whose highest version is 2.0.0.
type fakeActive struct {
	called bool
	err    error
}

func (f *fakeActive) Perform(_ context.Context, r deployer.Request) (*schema.Operation, error) {
	f.called = true
	return &schema.Operation{Solution: r.Solution, Version: "2.0.0"}, f.err
}

// TestActive: the configuration records the active version of the cluster, and nothing else in it changes.
func TestActive(t *testing.T) {
	const head = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: []\n"
	activate := func(version string, dry bool) deployer.Request {
		return deployer.Request{Verb: schema.VerbActivate, Options: plan.Options{DryRun: dry}, Solution: "demo", Version: version}
	}
	deactivate := func(dry bool) deployer.Request {
		return deployer.Request{Verb: schema.VerbDeactivate, Options: plan.Options{DryRun: dry}, Solution: "demo"}
	}
	refused := report.Errorf(report.Refused, "no")
	for _, test := range []struct {
		name, file string // "" means no file
		request    deployer.Request
		cluster    error
		active     string // of demo afterwards
		untouched  bool
		code       report.Code
	}{
		{name: "the version that the cluster chose", file: head + "active: {demo: 1.0.0}\n", request: activate("", false), active: "2.0.0"},
		{name: "latest was asked for", file: head + "active: {demo: 1.0.0}\n", request: activate("latest", false), active: "latest"},
		{name: "deactivated", file: head + "active: {demo: 1.0.0}\n", request: deactivate(false)},
		{name: "no file", request: activate("2.0.0", false)},
		{name: "dry run", file: head + "active: {demo: 1.0.0}\n", request: activate("2.0.0", true), active: "1.0.0", untouched: true},
		{name: "dry run of the other", file: head + "active: {demo: 1.0.0}\n", request: deactivate(true), active: "1.0.0", untouched: true},
		{name: "a verb about an environment", file: head + "active: {demo: 1.0.0}\n", request: deployer.Request{Verb: schema.VerbAdd, Solution: "demo"}, active: "1.0.0", untouched: true},
		{name: "refused", file: head + "active: {demo: 1.0.0}\n", request: activate("2.0.0", false), cluster: refused, active: "1.0.0", untouched: true, code: report.Refused},
		{name: "damaged file", file: "- nonsense\n", request: activate("2.0.0", false), untouched: true, code: report.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			file := w.Configuration.Path
			if test.file != "" {
				w.write(file, []byte(test.file))
			}
			verbs := &fakeActive{err: test.cluster}
			_, err := Active{Verbs: verbs, Configuration: file}.Perform(t.Context(), test.request)
			if (err != nil || test.code != "") && report.CodeOf(err) != test.code {
				t.Fatalf("%v, want %q", err, test.code)
			}
			if verbs.called != (test.name != "damaged file") {
				t.Errorf("the cluster was asked: %v", verbs.called)
			}
			if test.file == "" {
				if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a file was made: %v", err)
				}
				return
			}
			if now := string(w.read(file)); (now == test.file) != test.untouched {
				t.Errorf("the file is now:\n%s", now)
			}
			if now, err := w.Configuration.Load(); test.code != report.Invalid && (err != nil || now.Active["demo"] != test.active) {
				t.Errorf("active is %q, want %q: %v", now.Active["demo"], test.active, err)
			}
		})
	}
}

// TestStoredArchives: unreadable archives are reported and left out.
func TestStoredArchives(t *testing.T) {
	w := newWorld(t)
	if _, err := w.do(w.archive("1.0.0"), w.archive("2.0.0")); err != nil {
		t.Fatal(err)
	}
	found := func(sink report.Sink) []string {
		var ids []string
		for _, a := range StoredArchives(w.Dir, sink) {
			ids = append(ids, a.Solution.ID())
		}
		return ids
	}
	var all report.Recorder
	if ids := found(&all); !slices.Equal(ids, []string{"demo-1.0.0", "demo-2.0.0"}) || len(all.Events()) > 0 {
		t.Fatalf("%q, %v", ids, all.Events())
	}
	damaged, err := w.Store.Find("demo-1.0.0", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(damaged.Path, 100); err != nil {
		t.Fatal(err)
	}
	var some report.Recorder
	if ids := found(&some); !slices.Equal(ids, []string{"demo-2.0.0"}) {
		t.Errorf("%q", ids)
	}
	if e := some.Events(); len(e) != 1 || e[0].Name != damaged.Path || e[0].State != report.Skipped || strings.TrimSpace(e[0].Note) == "" {
		t.Errorf("%+v", e)
	}
}
