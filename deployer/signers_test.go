package deployer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// TestSigners checks that a plan names the signers that the import has recorded, and nothing of an older record; the digest does not depend on them.
func TestSigners(t *testing.T) {
	for name, test := range map[string]struct {
		signers []string
		want    []schema.VersionSigners
		text    string
	}{
		"an older record": {nil, nil, ""},
		"signed":          {[]string{"acme-release", "acme-security"}, []schema.VersionSigners{{Solution: shop, Version: "1.0.0", Signers: []string{"acme-release", "acme-security"}}}, "shop 1.0.0 is signed by acme-release and acme-security, trusted at its import"},
		"not signed":      {[]string{}, []schema.VersionSigners{{Solution: shop, Version: "1.0.0", Signers: []string{}}}, "shop 1.0.0 was imported without a trusted signature"},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			record := b.Record(shop, "1.0.0", plain)
			if _, err := b.RecordImport(t.Context(), record); err != nil { // by an older version of the program
				t.Fatal(err)
			}
			older, failure := activate("1.0.0")(t.Context(), b.Deployer, plan.Options{DryRun: true})
			if failure != nil || older.Signers != nil {
				t.Fatalf("%v, %v", older, failure)
			}
			record.Signers = test.signers
			if _, err := b.RecordImport(t.Context(), record); err != nil { // again
				t.Fatal(err)
			}
			check := func(verb string, run verb) *schema.Operation {
				t.Helper()
				planned, err := run(t.Context(), b.Deployer, plan.Options{DryRun: true})
				if err != nil {
					t.Fatalf("%s: %v", verb, err)
				}
				if diff := cmp.Diff(planned.Signers, test.want); diff != "" {
					t.Errorf("%s: %s", verb, diff)
				}
				for _, s := range planned.Signers {
					if s.String() != test.text {
						t.Errorf("%s: %s", verb, s)
					}
				}
				return planned
			}
			if check("activate", activate("1.0.0")).Digest != older.Digest {
				t.Error("the digest depends on the signers")
			}
			must(b, activate("1.0.0"))
			check("add", add("1.0.0"))
			must(b, add("1.0.0"))
			again, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{DryRun: true})
			if err != nil || again.Signers != nil {
				t.Errorf("a version that is deployed: %v, %v", again, err)
			}
			status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status.Solutions[0].Versions[0].Signers, test.signers); diff != "" {
				t.Errorf("status: %s", diff)
			}
		})
	}
}
