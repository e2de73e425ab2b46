package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestRowsOfApplications fills in a list of objects row by row, without a script, and changes it.
func TestRowsOfApplications(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{
		Fields: "users: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, age: {type: integer}}}}",
	})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	apps := "/environments/" + deployertest.Environment + "/apps"
	has := func(a answer, status int, words ...string) {
		t.Helper()
		for _, word := range words {
			if a.StatusCode != status || !strings.Contains(a.body, word) {
				t.Fatalf("%d, no %s in\n%s", a.StatusCode, word, content(a.body))
			}
		}
	}
	const names, ages = "spec.users#", ".age"
	has(c.get(apps+"/new?kind=Clock"), http.StatusOK, `name="rows:spec.users" value="1"`, `name="spec.users#0.name"`, "Users, one more", "Add another one")
	first := []string{"kind", "Clock", "name", "wall", "spec.hands", "2", "spec.users", "", "rows:spec.users", "1", names + "0.name", "jane", names + "0" + ages, "7"}
	has(c.post(apps, append(first, "show", "rows")...), http.StatusOK, `name="rows:spec.users" value="2"`, `value="jane"`, `name="spec.users#1.name"`)
	if a := c.post(apps, append(first[:len(first)-1:len(first)-1], "old")...); a.StatusCode < 400 || !strings.Contains(a.body, "users[0].age") && !strings.Contains(a.body, "[0].age") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	c.ends(c.post(apps, first...))
	spec := func() any {
		t.Helper()
		return bed.Server.Object("Clock."+deployertest.Group("shop"), deployertest.Environment, "wall").Object["spec"].(map[string]any)["users"]
	}
	if diff := cmp.Diff(spec(), any([]any{map[string]any{"name": "jane", "age": int64(7)}})); diff != "" {
		t.Errorf("created: %s", diff)
	}
	edit := "/environments/" + deployertest.Environment + "/apps/" + deployertest.Environment + "/Clock/wall/edit"
	has(c.get(edit), http.StatusOK, `name="rows:spec.users" value="2"`, `name="drop:spec.users" value="0"`)
	c.ends(c.post(edit, "spec.hands", "2", "rows:spec.users", "2", "drop:spec.users", "0", names+"0.name", "jane", names+"0"+ages, "7", names+"1.name", "joe"))
	if diff := cmp.Diff(spec(), any([]any{map[string]any{"name": "joe"}})); diff != "" {
		t.Errorf("changed: %s", diff)
	}
}
