package deployer_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestEnsureOthers checks that other Solutions of an environment stay and are reported, or are removed once the wanted ones are ready,
// dependents first.
func TestEnsureOthers(t *testing.T) {
	b := environmentWithTwo(t)
	both := wanted(shop+"=1.0.0", "base=1.0.0")
	ensure(t, b, both)
	only := wanted("base=1.0.0")
	if done := ensure(t, b, only); strings.Contains(strings.Join(done.Notices, "\n"), shop) || !done.Empty() {
		t.Errorf("nobody asked about the others: %q", done.Notices)
	}
	only.Others = plan.TellOthers
	if done := ensure(t, b, only); !done.Empty() || !strings.Contains(strings.Join(done.Notices, "\n"), "Solution shop is in environment site and not wanted there: it stays") {
		t.Errorf("the notices are %q", done.Notices)
	}

	alone := wanted(shop + "=1.0.0")
	alone.Others = plan.RemoveOthers
	_, err := b.Ensure(t.Context(), alone)
	deployertest.Refused(t, err, report.InUse, "shop 1.0.0 in environment site needs base")

	b.Clock(shop, site, "one", "hands: 2")
	only.Others, only.DryRun = plan.RemoveOthers, true
	_, err = b.Ensure(t.Context(), only)
	deployertest.Refused(t, err, report.DataLoss, "custom resources of Solution shop", "deploy remove site shop")
	b.Deleted("Clock", site, "one")
	planned := ensure(t, b, only)
	b.Writes()
	only.DryRun, only.Expect = false, planned.Digest
	if done := ensure(t, b, only); done.Empty() {
		t.Error("nothing was removed")
	}
	if diff := cmp.Diff(map[string]string{"base": "1.0.0"}, versions(b)); diff != "" {
		t.Error(diff)
	}
	if got := there(b); strings.Contains(got, "db") || strings.Contains(got, "api") {
		t.Errorf("there is still %s", got)
	}

	ensure(t, b, both)
	b.Writes()
	ensure(t, b, deployer.EnsureOptions{Environment: site, Others: plan.RemoveOthers})
	order := slices.DeleteFunc(b.Writes(), func(r string) bool {
		return !strings.HasPrefix(r, "DELETE ") || strings.Contains(r, "/solutionctl-system/")
	})
	ofBase := func(r string) bool { return strings.Contains(r, "/base-") }
	if first := slices.IndexFunc(order, ofBase); first < 1 || slices.ContainsFunc(order[first:], func(r string) bool { return !ofBase(r) }) {
		t.Errorf("what others need did not go last: %v", order)
	}
	if got := versions(b); len(got) > 0 {
		t.Errorf("there is still %v", got)
	}
}

// TestWanted checks that a document selects components as the flags of the command line do.
func TestWanted(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	b.Server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: db-values, namespace: solutionctl-system}, data: {values.yaml: "+base64.StdEncoding.EncodeToString([]byte("hosts: {standby: hidden}"))+"}}")
	for _, step := range []struct {
		wishes map[string]schema.ComponentWish
		want   string
	}{
		{map[string]schema.ComponentWish{"extra": schema.ComponentWanted, "api": schema.ComponentUnwanted}, "db db-password extra"},
		{nil, "db db-password extra"},
		{map[string]schema.ComponentWish{"extra": schema.ComponentDefault, "api": schema.ComponentDefault}, "api db db-password"},
	} {
		list, err := b.Wanted(t.Context(), schema.EnvironmentContents{Name: site, Solutions: []schema.SolutionSelection{{
			Name: shop, Components: step.wishes, Values: map[string]map[string]any{"db": {"size": 4.0}},
			ValuesFrom: map[string]schema.ValuesSource{"db": {Secret: "db-values"}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ensure(t, b, deployer.EnsureOptions{Environment: site, Solutions: list})
		if got := there(b); got != step.want {
			t.Errorf("with %v there is %s, want %s", step.wishes, got, step.want)
		}
		if got := state(b)["db"]; got != "map[primary:a size:4 standby:hidden]" {
			t.Errorf("the values are %s", got)
		}
	}
	for _, text := range []string{"size: 1\n---\nsize: 2\n", "hosts: {standby: hidden}\nhosts: {primary: hidden}\n", "- hidden"} {
		b.Server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: db-values, namespace: solutionctl-system}, data: {values.yaml: "+base64.StdEncoding.EncodeToString([]byte(text))+"}}")
		_, err := b.Wanted(t.Context(), schema.EnvironmentContents{Name: site, Solutions: []schema.SolutionSelection{{
			Name: shop, ValuesFrom: map[string]schema.ValuesSource{"db": {Secret: "db-values"}},
		}}})
		if report.CodeOf(err) != report.Invalid || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestEnsureOthersInterrupted: what was never added as a whole goes as well, wherever its removal was interrupted.
func TestEnsureOthersInterrupted(t *testing.T) {
	b := environmentWithTwo(t)
	both, none := wanted(shop+"=1.0.0", "base=1.0.0"), deployer.EnsureOptions{Environment: site, Others: plan.RemoveOthers}
	for written := range 16 { // records come first, and objects of both by then
		if testing.Short() && written%5 > 0 { // 'make check' interrupts the first run at every write
			continue
		}
		mend := endingAt(b, written)
		if _, err := b.Ensure(t.Context(), both); err == nil {
			t.Fatalf("%d writes were all", written)
		}
		mend()
		for number := 1; ; number++ {
			mend = endingAt(b, number)
			_, failure := b.Ensure(t.Context(), none)
			if mend(); failure == nil {
				break
			}
			if number > 50 {
				t.Fatalf("after %d writes: it never ends: %v", written, failure)
			}
		}
		if left, got := b.Server.Names("Deployment"), versions(b); len(left)+len(got) > 0 || there(b) != "" {
			t.Fatalf("after %d writes there is %v, %s, and %v on record", written, left, there(b), got)
		}
		states, failure := b.Records.Engine.States(t.Context())
		for _, s := range states {
			if s.Pending != nil {
				t.Fatalf("after %d writes: not finished is %s, %v", written, s.Key, failure)
			}
		}
	}
}

// TestEnsureSome: of what an environment has besides only what is named is meant.
func TestEnsureSome(t *testing.T) {
	b := environmentWithTwo(t)
	ensure(t, b, wanted(shop+"=1.0.0", "base=1.0.0"))
	o := deployer.EnsureOptions{Environment: site, Others: plan.RemoveOthers, Going: []string{}}
	if done := ensure(t, b, o); !done.Empty() {
		t.Errorf("done was %+v", done)
	}
	o.Going = []string{shop, "never"}
	ensure(t, b, o)
	if diff := cmp.Diff(map[string]string{"base": "1.0.0"}, versions(b)); diff != "" {
		t.Error(diff)
	}
}
