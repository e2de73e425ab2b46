package deployer_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestEnsureOthers: what an environment has besides stays and is told, or goes when what is wanted is ready, what needs others first.
func TestEnsureOthers(t *testing.T) {
	b := environmentWithTwo(t)
	both := wanted(shop+"=1.0.0", "base=1.0.0")
	ensure(t, b, both)
	only := wanted("base=1.0.0")
	if done := ensure(t, b, only); strings.Contains(strings.Join(done.Notices, "\n"), shop) || !done.Empty() {
		t.Errorf("nobody asked about the others: %q", done.Notices)
	}
	only.Others = deployer.TellOthers
	if done := ensure(t, b, only); !done.Empty() || !strings.Contains(strings.Join(done.Notices, "\n"), "Solution shop is in environment site and not wanted there: it stays") {
		t.Errorf("told is %q", done.Notices)
	}

	alone := wanted(shop + "=1.0.0")
	alone.Others = deployer.RemoveOthers
	_, err := b.Ensure(t.Context(), alone)
	deployertest.Refused(t, err, report.InUse, "shop 1.0.0 in environment site needs base")

	b.Clock(shop, site, "one", "hands: 2")
	only.Others, only.DryRun = deployer.RemoveOthers, true
	_, err = b.Ensure(t.Context(), only)
	deployertest.Refused(t, err, report.DataLoss, "custom resources of Solution shop", "deploy remove site shop")
	b.Deleted("Clock", site, "one")
	plan := ensure(t, b, only)
	b.Writes()
	only.DryRun, only.Expect = false, plan.Digest
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
	before := len(b.Sink.Events())
	ensure(t, b, deployer.EnsureOptions{Environment: site, Others: deployer.RemoveOthers})
	order := slices.DeleteFunc(b.Sink.Events()[before:], func(e report.Event) bool { return e.Step != "deploy" || e.State != report.Done })
	if len(order) == 0 || !strings.HasPrefix(order[len(order)-1].Name, site+"/base") {
		t.Errorf("the end is not that of what others need: %v", order)
	}
	if got := versions(b); len(got) > 0 {
		t.Errorf("there is still %v", got)
	}
}

// TestWanted: what a document says of components is what the command line says of them.
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
}
