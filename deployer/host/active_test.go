package host

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestActiveVersions: the file has the edited versions, and nothing else in it changes. A host without the file gets none.
func TestActiveVersions(t *testing.T) {
	const head = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: []\n"
	for _, test := range []struct {
		name, file string // "" means no file
		want       string
		code       report.Code
	}{
		{name: "flat", file: head + "active: {demo: 1.0.0, theirs: latest}\n", want: head + "active:\n  demo: 2.0.0\n  theirs: latest\n"},
		{name: "no file"},
		{name: "damaged file", file: "- nonsense\n", want: "- nonsense\n", code: report.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			file := w.Configuration.Path
			if test.file != "" {
				w.write(file, []byte(test.file))
			}
			active := ActiveVersions(file)
			check := active.Check()
			before, unread := active.Read()
			_, failure := active.Edit(t.Context(), func(active map[string]string) { active["demo"] = "2.0.0" })
			for _, err := range []error{check, unread, failure} {
				if (err != nil || test.code != "") && report.CodeOf(err) != test.code {
					t.Errorf("%v, want %q", err, test.code)
				}
			}
			if test.file == "" {
				if _, err := os.Lstat(file); before != nil || !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a file was made: %v, %v", before, err)
				}
				return
			}
			if now := string(w.read(file)); now != test.want {
				t.Errorf("the file is now:\n%s", now)
			}
		})
	}
}

// TestConvergeKeepsOthers: active versions of Solutions that only MetalK8s knows stay in its file, those of ours that are not to be active do not.
func TestConvergeKeepsOthers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.do(w.archive("1.0.0")); err != nil {
		t.Fatal(err)
	}
	edit := func(active map[string]string) {
		t.Helper()
		if _, err := w.Configuration.Edit(t.Context(), func(c *schema.SolutionsConfiguration) { maps.Copy(c.Active, active) }); err != nil {
			t.Fatal(err)
		}
	}
	edit(map[string]string{"theirs": "latest", "demo": "1.0.0", "gone": "1.0.0"})
	c := schema.NewSolutionsConfiguration()
	verbs := &fakeVerbs{plan: &schema.Convergence{
		Import:   []schema.ConvergeImport{{SolutionAt: schema.SolutionAt{Solution: "demo", Version: "2.0.0"}, Path: w.archive("2.0.0")}},
		Unimport: []schema.SolutionAt{{Solution: "demo", Version: "1.0.0"}}, Deactivate: []schema.SolutionAt{{Solution: "gone", Version: "1.0.0"}},
	}}
	verbs.meanwhile = func() { edit(map[string]string{"later": "3.0.0"}) }
	done, err := w.Converge(t.Context(), ConvergeOptions{Configuration: c, Verbs: verbs, Import: w.options})
	if err != nil {
		t.Fatal(err)
	}
	now, err := w.Configuration.Load()
	if err != nil || !maps.Equal(now.Active, map[string]string{"theirs": "latest", "later": "3.0.0"}) {
		t.Errorf("active %v, %v", now.Active, err)
	}
	if text := strings.Join(done.Notices, "; "); !strings.Contains(text, "later, theirs") {
		t.Errorf("notices: %s", text)
	}
}

// TestConvergeKeepsActivated: entries stay that another process adds or activates during a run, and those that may be active.
func TestConvergeKeepsActivated(t *testing.T) {
	for _, test := range []struct {
		name, before, meanwhile, active string
		unknown                         error
		after, notice                   string
	}{
		{name: "added", meanwhile: "1.0.0", after: "1.0.0", notice: "which stay: demo"}, // and not in the cluster yet
		{name: "changed", before: "0.9.0", meanwhile: "1.0.0", after: "1.0.0", notice: "which stay: demo"},
		{name: "activated", before: "1.0.0", active: "1.0.0", after: "1.0.0", notice: "which stay: demo"},
		{
			name: "unknown", before: "1.0.0", unknown: report.Errorf(report.Corrupt, "unexpected EOF"), after: "1.0.0",
			notice: "the version of demo that is active in the cluster is not known: unexpected EOF",
		},
		{name: "inactive", before: "1.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			path := w.archive("1.0.0")
			if _, err := w.do(path); err != nil {
				t.Fatal(err)
			}
			if test.before != "" {
				w.activate(test.before)
			}
			verbs := &fakeVerbs{plan: &schema.Convergence{Import: []schema.ConvergeImport{{SolutionAt: schema.SolutionAt{Solution: "demo", Version: "1.0.0"}, Path: path}}}}
			verbs.meanwhile = func() {
				if test.meanwhile != "" {
					w.activate(test.meanwhile)
				}
				w.cluster.active, w.cluster.damaged = test.active, test.unknown
			}
			done, err := w.Converge(t.Context(), ConvergeOptions{Configuration: schema.NewSolutionsConfiguration(), Verbs: verbs, Import: w.options})
			if err != nil {
				t.Fatal(err)
			}
			now, err := w.Configuration.Load()
			if err != nil || now.Active["demo"] != test.after {
				t.Errorf("active %v, %v", now.Active, err)
			}
			if text := strings.Join(done.Notices, "; "); !strings.Contains(text, test.notice) {
				t.Errorf("notices %q", text)
			}
		})
	}
}

// TestImportListsActive: an import lists a version as active that is active in the cluster, as on a host that replaces a lost one.
func TestImportListsActive(t *testing.T) {
	for _, test := range []struct {
		name, active, before, after string
		damaged                     error
	}{
		{name: "active", active: "1.0.0", after: "1.0.0"},
		{name: "another version is active", active: "2.0.0"},
		{name: "inactive"},
		{name: "listed already", active: "1.0.0", before: "latest", after: "latest"},
		{name: "another version is listed, by MetalK8s' own tool", active: "1.0.0", before: "2.0.0", after: "2.0.0"},
		{name: "unknown", damaged: report.Errorf(report.Corrupt, "damaged")},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if test.before != "" {
				w.activate(test.before)
			}
			w.cluster.active, w.cluster.damaged = test.active, test.damaged
			done, err := w.do(w.archive("1.0.0"))
			if err != nil {
				t.Fatal(err)
			}
			now, err := w.Configuration.Load()
			if err != nil || now.Active["demo"] != test.after {
				t.Errorf("active %v, %v", now.Active, err)
			}
			if noticed := strings.Contains(strings.Join(done.Notices, "; "), "whether demo-1.0.0 is active is not known"); noticed != (test.damaged != nil) {
				t.Errorf("notices %q", done.Notices)
			}
		})
	}
}

// TestImportWithoutCluster: an import that cannot ask the cluster reports a mounted Solution that is not listed as active.
func TestImportWithoutCluster(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(w *world)
		want   bool
	}{
		{"without a cluster", func(w *world) { w.Cluster = nil }, true},
		{"a cluster that does not answer", func(w *world) { w.cluster.absent = report.Errorf(report.Unavailable, "connection refused") }, true},
		{"listed", func(w *world) { w.Cluster = nil; w.activate("0.9.0") }, false},
		{"not of MetalK8s", func(w *world) { w.Cluster, w.options.RegistryMode = nil, schema.RegistryOwn }, false},
		{"a cluster", func(*world) {}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.options.RegistryMode = schema.RegistryMetalK8s
			test.change(w)
			done, err := w.do(w.archive("1.0.0"))
			if done == nil {
				t.Fatal(err)
			}
			want := w.Configuration.Path + " does not list demo as active, and the cluster was not asked. If it is active there, MetalK8s would delete its CRDs: " +
				"before MetalK8s runs, import it again with access to the cluster, or run on this host: solutionctl deploy activate demo VERSION"
			if slices.Contains(done.Notices, want) != test.want {
				t.Errorf("notices %q", done.Notices)
			}
		})
	}
}

// TestUnimportUnlistsActive: an unimport removes the entry of its version, and that of a Solution without archives: MetalK8s' commands fail with it.
func TestUnimportUnlistsActive(t *testing.T) {
	for _, test := range []struct {
		name, active string
		others       []string // archives that MetalK8s has imported
		after        string
	}{
		{"this version", "1.0.0", []string{"2.0.0"}, ""},
		{"another version", "2.0.0", []string{"2.0.0"}, "2.0.0"},
		{"the latest of others", "latest", []string{"2.0.0"}, "latest"},
		{"the latest of none", "latest", nil, ""},
		{"a version of none", "2.0.0", nil, ""},
		{"no entry", "", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.do(w.archive("1.0.0")); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Configuration.Edit(t.Context(), func(c *schema.SolutionsConfiguration) {
				if c.Active["theirs"] = "1.0.0"; test.active != "" {
					c.Active["demo"] = test.active
				}
				for _, version := range test.others {
					c.Archives = append(c.Archives, w.archive(version))
				}
			}); err != nil {
				t.Fatal(err)
			}
			done, err := w.Unimport(t.Context(), UnimportOptions{Archive: "demo", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			now, err := w.Configuration.Load()
			if err != nil || now.Active["demo"] != test.after || now.Active["theirs"] != "1.0.0" {
				t.Errorf("active %v, %v", now.Active, err)
			}
			if noticed := strings.Contains(strings.Join(done.Notices, "; "), "no longer lists demo "+test.active+" as active"); noticed != (test.active != test.after) {
				t.Errorf("notices %q", done.Notices)
			}
		})
	}
}

// TestUnimportListsOther: an unimport lists the version that another machine has activated, where its archive is here.
func TestUnimportListsOther(t *testing.T) {
	for _, test := range []struct {
		name, active, after string // in the cluster, and in the file after the unimport
		unknown             error
		notice              string
	}{
		{"with an archive here", "2.0.0", "2.0.0", nil, "now lists demo 2.0.0, which is active in the cluster, instead of 1.0.0"},
		{"without an archive here", "3.0.0", "", nil, "no longer lists demo 1.0.0 as active"},
		{"unknown", "", "1.0.0", report.Errorf(report.Unavailable, "connection refused"), "still lists demo 1.0.0 as active: the version that is active in the cluster is not known: connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.do(w.archive("1.0.0"), w.archive("2.0.0")); err != nil {
				t.Fatal(err)
			}
			w.activate("1.0.0")
			w.cluster.active, w.cluster.damaged = test.active, test.unknown
			done, err := w.Unimport(t.Context(), UnimportOptions{Archive: "demo", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			now, err := w.Configuration.Load()
			if err != nil || now.Active["demo"] != test.after {
				t.Errorf("active %v, %v", now.Active, err)
			}
			if !slices.Contains(done.Notices, w.Configuration.Path+" "+test.notice) {
				t.Errorf("notices %q", done.Notices)
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
