package web

import (
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/plan"
)

// TestReplacedDraft: a page that changes its draft again and again does not displace that of another page.
func TestReplacedDraft(t *testing.T) {
	var d drafts
	now := time.Now()
	other := d.Keep([]plan.ValueEdit{{Path: "other"}}, now)
	mine := d.Keep(nil, now)
	for range 2 * maxDrafts {
		mine = d.Replace(mine, []plan.ValueEdit{{Path: "mine"}}, now)
	}
	for id, path := range map[string]string{other: "other", mine: "mine"} {
		if edits, found := d.Find(id, now); !found || len(edits) != 1 || edits[0].Path != path {
			t.Errorf("%s: %v, %t", path, edits, found)
		}
	}
	d.Forget(mine)
	renewed := d.Replace(mine, []plan.ValueEdit{{Path: "again"}}, now)
	if edits, found := d.Find(renewed, now); renewed == mine || !found || edits[0].Path != "again" {
		t.Errorf("%q, after %q was forgotten: %v, %t", renewed, mine, edits, found)
	}
}
