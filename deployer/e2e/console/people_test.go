package console_test

import (
	"slices"
	"testing"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/sign"
)

// mostClicks is the number of clicks that the life of a Solution may take two people.
const mostClicks = 55

// testPeople lives the life of a Solution as two people do: an administrator, and the owner of one environment, who has the printed roles.
// Both get from page to page by what the pages offer.
func (w *world) testPeople(b *browser) {
	t := b.T
	n := names{"team", "teams"}
	w.pack(t, n.solution, "1.9.0", "1.10.0")
	has := func(versions ...string) { // that are deployed
		t.Helper()
		status, err := w.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var deployed []string
		for _, e := range status.Environments {
			for _, namespace := range e.Namespaces {
				for _, d := range namespace.Deployments {
					deployed = append(deployed, d.Version)
				}
			}
		}
		if !slices.Equal(deployed, versions) {
			t.Errorf("deployed is %q, want %q", deployed, versions)
		}
	}
	admin, owner := b, open(t)
	admin.logsIn(w, jane)
	admin.clicks = 0

	admin.uploads(w, n, "1.9.0")
	admin.press("link", "Activate 1.9.0")
	admin.applies("Activate team 1.9.0", "Activate")
	admin.press("link", "New environment")
	admin.fill("Name", n.environment)
	admin.press("button", "Create")
	admin.find("heading", n.environment)
	has()

	w.grant(t, n)
	owner.logsIn(w, joe)
	owner.clicks = 0
	owner.press("link", "Environments")
	owner.press("link", n.environment)
	owner.press("link", "Add a Solution")
	owner.applies("Add team 1.9.0 to environment teams", "Add")
	owner.press("link", "Create Clock")
	owner.fill("Name", "wall")
	owner.fill("Hands", "3")
	owner.press("button", "Create")
	owner.done()
	has("1.9.0")

	owner.press("link", "Open wall")
	owner.press("link", "Configure")
	owner.fill("Hands", "2")
	owner.press("button", "Save")
	owner.done()
	owner.press("link", "Open wall")
	owner.fill("Replicas", "2")
	owner.press("button", "Scale")
	owner.done()

	admin.uploads(w, n, "1.10.0")
	admin.press("link", "Activate 1.10.0")
	admin.applies("Activate team 1.10.0", "Activate")

	owner.press("link", "Open teams")
	owner.press("link", "Upgrade")
	owner.applies("Upgrade to team 1.10.0 in environment teams", "Upgrade")
	has("1.10.0")
	owner.press("link", "Open teams")
	owner.press("link", "Downgrade")
	owner.applies("Downgrade to team 1.9.0 in environment teams", "Downgrade")
	owner.press("link", "Roll back")
	owner.applies("Roll back to team 1.10.0 in environment teams", "Roll back")
	has("1.10.0")

	owner.press("link", "Open teams")
	owner.press("link", "Applications")
	owner.press("link", "wall")
	owner.press("link", "Delete")
	owner.fill("Type wall to confirm", "wall")
	owner.press("button", "Delete")
	owner.done()
	owner.press("link", "Open teams")
	owner.press("link", "Remove")
	owner.applies("Remove team from environment teams", "Remove")
	has()
	owner.press("button", "Log out")
	owner.find("heading", "Log in")

	admin.press("link", "Environments")
	admin.press("link", n.environment)
	admin.press("link", "Delete")
	admin.applies("Delete environment teams", "Delete the environment")
	admin.press("link", "Solutions")
	admin.press("link", "Team")
	admin.press("link", "Deactivate")
	admin.applies("Deactivate team 1.10.0", "Deactivate")
	for _, version := range []string{"1.9.0", "1.10.0"} {
		admin.press("link", "Open team") // as the last operation offers
		admin.press("link", "Unimport "+version)
		admin.fill("Type team-"+version+" to confirm", "team-"+version)
		admin.press("button", "Unimport")
		admin.done()
	}
	has()
	admin.press("button", "Log out")
	admin.find("heading", "Log in")

	t.Logf("%d clicks by the administrator, %d by the owner", admin.clicks, owner.clicks)
	if clicks := admin.clicks + owner.clicks; clicks > mostClicks {
		t.Errorf("%d clicks, at most %d are allowed", clicks, mostClicks)
	}
}

// grant gives the printed roles for a Solution in an environment to the group of owners.
func (w *world) grant(t *testing.T, n names) {
	t.Helper()
	group := "oidc:" + operators
	w.apply(t, w.command(t, "roles", n.solution, "--environment", n.environment, "--installers", group, "--applications", group))
	w.awaitRight(t, authorization.ResourceAttributes{Verb: "list", Resource: "namespaces"})
	w.awaitRight(t, authorization.ResourceAttributes{Verb: "create", Group: "apps", Resource: "deployments", Namespace: n.environment})
}

// uploads imports an archive.
func (b *browser) uploads(w *world, n names, version string) {
	b.Helper()
	b.press("link", "Import")
	b.find("heading", "Import")
	archive := w.archive(n.solution, version)
	b.choose("bundle", sign.BundleName(archive, ""))
	b.choose("archive", archive)
	b.press("button", "Upload")
	b.find("heading", "Import "+n.solution+" "+version+"?")
	b.press("button", "Import")
	b.done()
}
