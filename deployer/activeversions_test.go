package deployer_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// activeList is a list of active versions on this host.
type activeList struct {
	bed      *deployertest.Bed
	versions map[string]string
	check    error
	read     error
	killed   bool   // the process ends before the next edit
	active   string // version of shop in the cluster, when the list was edited last
}

func listed(t *testing.T, versions map[string]string) *activeList {
	t.Helper()
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Imported(shop, "2.0.0", plain)
	l := &activeList{bed: b, versions: versions}
	b.Active = l
	return l
}

func (l *activeList) Check() error { return l.check }

func (l *activeList) Read() (map[string]string, error) {
	if l.read != nil {
		return nil, l.read
	}
	return maps.Clone(l.versions), nil
}

func (l *activeList) Edit(ctx context.Context, edit func(map[string]string)) ([]string, error) {
	if l.killed {
		l.killed = false
		return nil, errors.New("killed")
	}
	edit(l.versions)
	solutions, err := l.bed.Records.Documents.Solutions(ctx)
	if err != nil {
		return nil, err
	}
	l.active = solutions.Active(shop)
	return []string{"edited"}, nil
}

func (l *activeList) perform(t *testing.T, r deployer.Request) error {
	t.Helper()
	r.Solution = shop
	done, err := l.bed.Perform(t.Context(), r)
	if err == nil && !r.DryRun && (len(done.Notices) == 0 || done.Notices[len(done.Notices)-1] != "edited") {
		t.Errorf("notices %q", done.Notices)
	}
	return err
}

func (l *activeList) is(t *testing.T, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, l.versions); diff != "" {
		t.Error(diff)
	}
}

// TestActiveVersions: a version is listed before the cluster has it, and as long as it does. MetalK8s deletes the CRDs of a Solution that is active and
// not listed.
func TestActiveVersions(t *testing.T) {
	l := listed(t, map[string]string{"theirs": "1"})
	for _, s := range []struct {
		request deployer.Request
		want    string // the entry
		active  string // in the cluster when it was listed
		code    report.Code
	}{
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "3.0.0"}, code: report.NotImported},
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "1.0.0", Options: plan.Options{DryRun: true}}},
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "1.0.0", Options: plan.Options{Expect: "sha256:0"}}, code: report.Conflict},
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "1.0.0"}, want: "1.0.0"},
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "latest"}, want: "latest", active: "1.0.0"},
		{request: deployer.Request{Verb: schema.VerbActivate, Version: "2.0.0"}, want: "2.0.0", active: "2.0.0"},
		{request: deployer.Request{Verb: schema.VerbAdd, Environment: site, Options: plan.Options{DryRun: true}}, want: "2.0.0", active: "2.0.0"},
		{request: deployer.Request{Verb: schema.VerbDeactivate, Options: plan.Options{DryRun: true}}, want: "2.0.0", active: "2.0.0"},
		{request: deployer.Request{Verb: schema.VerbDeactivate}},
		{request: deployer.Request{Verb: schema.VerbDeactivate}},
	} {
		if err := l.perform(t, s.request); report.CodeOf(err) != s.code && (err != nil || s.code != "") {
			t.Fatalf("%s: %v", s.request.Verb, err)
		}
		want := map[string]string{"theirs": "1"}
		if s.want != "" {
			want[shop] = s.want
		}
		l.is(t, want)
		if l.active != s.active {
			t.Errorf("%s: version %q was active when the list was edited, want %q", s.request.Verb, l.active, s.active)
		}
	}
}

// TestActiveVersionsUnwritable: nothing begins if the list cannot be edited.
func TestActiveVersionsUnwritable(t *testing.T) {
	l := listed(t, map[string]string{})
	l.check = report.Errorf(report.Invalid, "damaged")
	l.bed.Writes()
	for _, verb := range []string{schema.VerbActivate, schema.VerbDeactivate} {
		if err := l.perform(t, deployer.Request{Verb: verb}); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if writes := l.bed.Writes(); len(writes) > 0 {
		t.Errorf("written: %q", writes)
	}
}

// TestResumeListsActive: an activation that is resumed lists its version, and leaves the word "latest" if it stands for that.
func TestResumeListsActive(t *testing.T) {
	for _, test := range []struct{ version, before, after string }{
		{"1.0.0", "", "1.0.0"},
		{"1.0.0", "latest", "1.0.0"},
		{"2.0.0", "latest", "latest"},
	} {
		l := listed(t, map[string]string{shop: test.before})
		l.killed = true
		if err := l.perform(t, deployer.Request{Verb: schema.VerbActivate, Version: test.version}); err == nil {
			t.Fatal("not killed")
		}
		if solutions, err := l.bed.Records.Documents.Solutions(t.Context()); err != nil || solutions.Active(shop) != "" {
			t.Errorf("%s is active, %v", solutions.Active(shop), err)
		}
		activating := func() string {
			version, err := l.bed.Records.Activating(t.Context(), shop)
			if err != nil {
				t.Fatal(err)
			}
			return version
		}
		if version := activating(); version != test.version {
			t.Errorf("%q is activated, not %s", version, test.version)
		}
		if _, err := l.bed.Resume(t.Context(), deployer.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		if version := activating(); version != "" {
			t.Errorf("%q is activated still", version)
		}
		l.is(t, map[string]string{shop: test.after})
	}
}

// TestEnsureActiveLists: versions that are to be active are listed, also where they are active already.
func TestEnsureActiveLists(t *testing.T) {
	for _, test := range []struct{ active, before, wanted, after string }{
		{"", "", "1.0.0", "1.0.0"},
		{"1.0.0", "", "1.0.0", "1.0.0"},
		{"2.0.0", "", "1.0.0", "2.0.0"}, // a higher one stays
		{"2.0.0", "latest", "2.0.0", "latest"},
		{"1.0.0", "latest", "2.0.0", "latest"},
		{"1.0.0", "latest", "1.0.0", "1.0.0"},
	} {
		before := map[string]string{}
		if test.before != "" {
			before[shop] = test.before
		}
		l := listed(t, maps.Clone(before))
		if l.bed.Active = nil; test.active != "" {
			l.bed.Activated(shop, test.active, plain)
		}
		l.bed.Active = l
		changes := test.active == "" || test.active == "1.0.0" && test.wanted == "2.0.0" || test.before != test.after
		for _, dry := range []bool{true, false, true} {
			done, err := l.bed.EnsureActive(t.Context(), plan.Options{DryRun: dry}, []plan.Wanted{{Solution: shop, Version: test.wanted}})
			if err != nil || (len(done) > 0) != changes {
				t.Errorf("%+v, dry run %t: %+v, %v", test, dry, done, err)
			}
			for _, o := range done {
				deployertest.Valid(t, "operation", o)
			}
			if dry && changes {
				l.is(t, before)
				continue
			}
			l.is(t, map[string]string{shop: test.after})
			changes = false
		}
	}
}

// TestEnsureActiveUnreadable: a dry run without permission to read the list shows that a run edits it, and the run is refused.
func TestEnsureActiveUnreadable(t *testing.T) {
	l := listed(t, map[string]string{})
	l.bed.Activated(shop, "1.0.0", plain)
	for _, test := range []struct {
		read    error
		dry     bool
		planned int
		refused bool
	}{
		{fs.ErrPermission, true, 1, false},
		{fs.ErrPermission, false, 0, true},
		{fs.ErrInvalid, true, 0, true},
	} {
		l.read = test.read
		done, err := l.bed.EnsureActive(t.Context(), plan.Options{DryRun: test.dry}, []plan.Wanted{{Solution: shop, Version: "1.0.0"}})
		if len(done) != test.planned || errors.Is(err, test.read) != test.refused || (err != nil) != test.refused {
			t.Errorf("%+v: %+v, %v", test, done, err)
		}
	}
}

// TestRepairListsActive: a repair that makes a version active again lists it before, and leaves the word "latest" if it stands for that.
func TestRepairListsActive(t *testing.T) {
	for _, test := range []struct{ version, before, after string }{
		{"1.0.0", "", "1.0.0"},
		{"1.0.0", "latest", "1.0.0"},
		{"2.0.0", "latest", "latest"},
	} {
		l := listed(t, map[string]string{})
		if err := l.perform(t, deployer.Request{Verb: schema.VerbActivate, Version: test.version}); err != nil {
			t.Fatal(err)
		}
		if err := l.bed.Records.Documents.SetActive(t.Context(), shop, ""); err != nil { // as MetalK8s deactivates it
			t.Fatal(err)
		}
		l.versions, l.active = map[string]string{shop: test.before}, "none"
		if err := l.perform(t, deployer.Request{Verb: schema.VerbRepair, Options: plan.Options{DryRun: true}}); err != nil {
			t.Fatal(err)
		}
		l.is(t, map[string]string{shop: test.before})
		l.check = report.Errorf(report.Invalid, "damaged")
		if err := l.perform(t, deployer.Request{Verb: schema.VerbRepair}); report.CodeOf(err) != report.Invalid {
			t.Errorf("a list that cannot be edited: %v", err)
		}
		l.check = nil
		if err := l.perform(t, deployer.Request{Verb: schema.VerbRepair}); err != nil {
			t.Fatal(err)
		}
		l.is(t, map[string]string{shop: test.after})
		if l.active != "" {
			t.Errorf("version %q was active when the list was edited", l.active)
		}
		// An entry of the user stays when the version is active already.
		l.versions = map[string]string{shop: "other"}
		if _, err := l.bed.Repair(t.Context(), deployer.RepairOptions{}); err != nil {
			t.Fatal(err)
		}
		l.is(t, map[string]string{shop: "other"})
	}
}
