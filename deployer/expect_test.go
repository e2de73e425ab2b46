package deployer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// expectsOther checks that a run that expects another plan is refused with the new one, and changes nothing.
func expectsOther(t *testing.T, b *deployertest.Bed, run verb, shown *schema.Operation) {
	t.Helper()
	for _, dryRun := range []bool{true, false} {
		b.Writes()
		done, err := run(t.Context(), b.Deployer, plan.Options{DryRun: dryRun, Expect: "sha256:another"})
		changed, ok := errors.AsType[*plan.ChangedError](err)
		if done != nil || !ok || report.CodeOf(err) != report.Conflict || !strings.Contains(strings.Join(report.Hints(err), ""), "--expect "+shown.Digest) {
			t.Fatalf("another plan was expected: %+v, %v, %q", done, err, report.Hints(err))
		}
		if diff := cmp.Diff(shown, changed.Plan); diff != "" {
			t.Errorf("it shows another plan (-planned +shown):\n%s", diff)
		}
		if writes := slices.DeleteFunc(b.Writes(), isLock); len(writes) > 0 {
			t.Errorf("it wrote %q", writes)
		}
	}
}

// TestExpect checks that a run reports what changed since the plan was made, and that it carries out the new plan when that is expected.
func TestExpect(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	must(b, add("1.0.0"))
	b.Activated(shop, "1.1.0", coloured)
	upgrade := change(records.Up, "")
	seen, err := upgrade(t.Context(), b.Deployer, plan.Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	b.Deleted("Role", site, "shop-operator")
	_, err = upgrade(t.Context(), b.Deployer, plan.Options{Expect: seen.Digest})
	changed, ok := errors.AsType[*plan.ChangedError](err)
	if !ok || changed.Plan.Digest == seen.Digest {
		t.Fatal(err)
	}
	if done, err := upgrade(t.Context(), b.Deployer, plan.Options{Expect: changed.Plan.Digest}); err != nil || done.Digest != changed.Plan.Digest {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestDigest: equal plans of clusters that have nothing to do with each other have one digest, and others have others, also where
// the difference is in an object of which the plan shows the name only.
func TestDigest(t *testing.T) {
	planned := func(content deployertest.Content, run verb, o plan.Options) string {
		t.Helper()
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", content)
		b.Imported(shop, "1.1.0", deployertest.Content{Fields: content.Fields, Role: content.Role})
		o.DryRun = true
		shown, err := run(t.Context(), b.Deployer, o)
		if err != nil {
			t.Fatal(err)
		}
		return shown.Digest
	}
	want := planned(plain, add("1.0.0"), plan.Options{})
	if got := planned(plain, add("1.0.0"), plan.Options{NoWait: true, Timeout: time.Hour}); got != want || len(want) != len("sha256:")+64 {
		t.Errorf("%q, and once more %q", want, got)
	}
	rights := deployertest.Content{Role: "- {apiGroups: [''], resources: [pods, secrets], verbs: [get, list]}"}
	for name, other := range map[string]string{
		"other rights":                     planned(rights, add("1.0.0"), plan.Options{}),
		"objects of others are taken over": planned(plain, add("1.0.0"), plan.Options{Adopt: true}),
		"fields of others are taken over":  planned(plain, add("1.0.0"), plan.Options{Force: true}),
		"another verb":                     planned(plain, activate("1.1.0"), plan.Options{}),
		"other fields":                     planned(coloured, activate("1.1.0"), plan.Options{}),
	} {
		if other == want {
			t.Errorf("%s: the same digest", name)
		}
	}
}

// TestNothingExpected checks that commands without a single plan refuse an expected digest.
func TestNothingExpected(t *testing.T) {
	b := deployertest.New(t)
	o := plan.Options{Expect: "sha256:seen"}
	_, err := b.Resume(t.Context(), deployer.ResumeOptions{Options: o})
	deployertest.Refused(t, err, report.Usage)
	_, err = b.RebuildRecords(t.Context(), rebuild.Options{Options: o})
	deployertest.Refused(t, err, report.Usage)
	deployertest.Refused(t, b.Converge(t.Context(), deployer.ConvergeOptions{Options: o}), report.Usage)
}
