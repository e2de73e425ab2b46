package schema_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestConsequencesText: a plan begins with what it means, in one sentence.
func TestConsequencesText(t *testing.T) {
	program := func(effect schema.ProgramEffect, image, interrupted bool) schema.ProgramChange {
		return schema.ProgramChange{Effect: effect, Image: image, Interrupted: interrupted}
	}
	shops := schema.DataChange{Definition: "shops.example.com", Kind: "Shop", Outcome: schema.DataChecked, Objects: 14}
	upgrade := schema.VersionChange{Solution: "shop", Namespaces: []string{"prod"}, From: "1.9.0", To: "1.10.0"}
	for name, test := range map[string]struct {
		consequences *schema.Consequences
		powers       []schema.PlannedPower
		want         string
	}{
		"not computed": {nil, nil, ""},
		"an upgrade": {
			&schema.Consequences{
				Versions: []schema.VersionChange{upgrade}, Programs: []schema.ProgramChange{program(schema.ProgramRestarts, true, false), program(schema.ProgramRestarts, true, false)},
				Permissions: []string{"get pods"}, Data: []schema.DataChange{shops},
			}, nil, "shop goes from 1.9.0 to 1.10.0: new image of 2 programs, one restart each; 1 new permission; data of 14 Shops checked: nothing is lost",
		},
		"nothing restarts": {
			&schema.Consequences{Changed: 1, Versions: []schema.VersionChange{{Solution: "shop", Namespaces: []string{"a", "b"}, From: "1.9.0", To: "1.9.0"}}}, nil,
			"shop stays at 1.9.0 in 2 namespaces: no program restarts",
		},
		"an activation": {
			&schema.Consequences{Changed: 1, Versions: []schema.VersionChange{{Solution: "shop", From: "1.9.0", To: "1.10.0"}}, SafeDefinitions: []string{"shops.example.com"}},
			[]schema.PlannedPower{{Approved: true}, {Power: schema.Power{Need: schema.NeedApproval}}},
			"the active version of shop goes from 1.9.0 to 1.10.0: no program restarts; 1 power to approve; 1 definition changed without an effect on stored data",
		},
		"a removal": {
			&schema.Consequences{
				Versions: []schema.VersionChange{{Solution: "shop", Namespaces: []string{"prod"}, From: "1.9.0"}, {Solution: "shop", From: "1.9.0"}},
				Programs: []schema.ProgramChange{program(schema.ProgramStops, false, false)},
				Data:     []schema.DataChange{{Definition: "policies.example.com", Kind: "Policy", Outcome: schema.DataDeleted, Objects: 2}, {Definition: "shops.example.com", Kind: "Shop", Outcome: schema.DataOrphaned, Objects: 1}},
			}, nil, "shop 1.9.0 is removed, shop 1.9.0 is no longer active: 1 program stops; 2 Policies deleted after an export; 1 Shop kept without an operator",
		},
		"all kinds of programs": {
			&schema.Consequences{
				Versions: []schema.VersionChange{{Solution: "shop", Namespaces: []string{"prod"}, To: "1.9.0"}, {Solution: "base", To: "1.0.0"}},
				Programs: []schema.ProgramChange{
					program(schema.ProgramStarts, false, false), program(schema.ProgramStarts, false, false), program(schema.ProgramRuns, false, false), program(schema.ProgramLater, true, false),
					program(schema.ProgramRestarts, false, true), program(schema.ProgramRestarts, true, false), program(schema.ProgramStops, false, false), program(schema.ProgramStops, false, false),
				},
			}, nil, "shop 1.9.0 is added, base 1.0.0 becomes active: new image of 1 program, one restart; 1 program restarts; interruption of 1 program; 2 programs start; 2 programs stop; 1 Job runs; 1 program changes at its next start",
		},
		"accepted losses": {
			&schema.Consequences{Data: []schema.DataChange{{Definition: "shops.example.com", Kind: "Shop", Outcome: schema.DataChecked, Objects: 14, Losing: 2, Invalid: 1}, {Definition: "x", Kind: "Clock", Outcome: schema.DataChecked, Objects: 1}}}, nil,
			"data of 14 Shops, 1 Clock checked: 2 lose fields, 1 become invalid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := schema.Operation{Planned: true, Consequences: test.consequences, Powers: test.powers}
			if got := o.ConsequencesText(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRemarks: a new permission is shown once.
func TestRemarks(t *testing.T) {
	o := schema.Operation{
		Planned: true, Notices: []string{"a", schema.RightNotice("get pods"), schema.RightNotice("get nodes")}, Consequences: &schema.Consequences{Permissions: []string{"get pods"}},
	}
	if got, want := strings.Join(o.Remarks(), "; "), "a; new right: get nodes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if o.Planned = false; len(o.Remarks()) != 3 {
		t.Errorf("what was done has the remarks %q", o.Remarks())
	}
}
