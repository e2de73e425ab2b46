package page_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/schema"
)

// parameters returns the parameters of an address.
func parameters(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// column returns the texts of the heads of rows that are shown, and the names of groups.
func column(t *testing.T, text string) (names []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data != "th" || !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "scope" && strings.HasPrefix(a.Val, "row") }) || isHidden(n) {
			continue
		}
		var words []string
		for child := range n.Descendants() {
			if child.Type == html.TextNode {
				words = append(words, strings.Fields(child.Data)...)
			}
		}
		names = append(names, strings.Join(words, " "))
	}
	return names
}

func deployed(pairs ...string) []schema.NamespaceStatus {
	n := schema.NamespaceStatus{Name: "x"}
	for i := 0; i+2 < len(pairs); i += 3 {
		n.Deployments = append(n.Deployments, schema.DeploymentStatus{Solution: pairs[i], Version: pairs[i+1], Wanted: pairs[i+1], Health: schema.DeploymentHealth(pairs[i+2])})
	}
	return []schema.NamespaceStatus{n}
}

func TestListing(t *testing.T) {
	p := newPages(t, "/base")
	environments := []schema.EnvironmentStatus{
		{Name: "a", Namespaces: deployed("shop", "1.10.0", "ready", "health", "2.0.0", "drifted")},
		{Name: "b", Namespaces: deployed("shop", "1.9.0", "failed")},
		{Name: "c", Namespaces: deployed()},
		{Name: "d", Namespaces: deployed("shop", "1.9.0", "ready")},
	}
	for i := range environments {
		environments[i].Namespaces[0].Name = environments[i].Name
	}
	for _, test := range []struct {
		name, want string
		asked      []string
	}{
		{"as it comes", "a b c d", nil},
		{"backwards", "d c b a", []string{"sort", "-environment"}},
		{"the worst first", "b a d c", []string{"sort", "health"}},
		{"the best first, and nothing last", "d a b c", []string{"sort", "-health"}},
		{"by version", "b d a c", []string{"sort", "solution.shop"}},
		{"the highest version first, the best of it first", "a d b c", []string{"sort", "-solution.shop"}},
		{"a Solution with the name of a column", "a b c d", []string{"sort", "solution.health"}},
		{"an unknown column", "a b c d", []string{"sort", "solution.none"}},
		{"in a state", "a", []string{"state", "drifted"}},
		{"all ready", "d", []string{"state", "ready"}},
		{"without a Solution", "c", []string{"state", "empty"}},
		{"a word that is no state", "a b c d", []string{"state", "<b>"}},
		{"grouped", "Failed 1|b|Drifted 1|a|Ready 1|d|empty 1|c", []string{"group", "state"}},
		{"grouped and searched", "Failed 1|b|Ready 1|d", []string{"group", "state", "q", "1.9.0"}},
		{"grouped and sorted", "Failed 1|b|Drifted 1|a|Ready 1|d|empty 1|c", []string{"group", "state", "sort", "-environment"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			content := &page.Environments{Environments: environments, Listing: page.NewListing(parameters(test.asked...))}
			separator := " "
			if content.Listing.Group {
				separator = "|"
			}
			got := strings.Join(column(t, render(t, p, page.View{Content: content})), separator)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestListingLinks: each link of a list keeps what the others have chosen.
func TestListingLinks(t *testing.T) {
	p := newPages(t, "/base")
	status := pagetest.Status(pagetest.Honest, 60)
	l := page.NewListing(parameters("q", "customer", "sort", "health", "state", "failed", "group", "state"))
	text := render(t, p, page.View{Content: &page.Environments{Environments: status.Environments, Listing: l}})
	for _, want := range []string{
		`href="/base/environments?group=state&amp;q=customer&amp;sort=-health&amp;state=failed"`, `aria-sort="ascending"`,
		`href="/base/environments?group=state&amp;q=customer&amp;sort=environment&amp;state=failed"`,
		`href="/base/environments?group=state&amp;q=customer&amp;sort=health"`, `href="/base/environments?q=customer&amp;sort=health&amp;state=failed"`,
		`<input type="hidden" name="sort" value="health"><input type="hidden" name="state" value="failed"><input type="hidden" name="group" value="state">`,
		`value="customer"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Count(text, "aria-sort") != 1 {
		t.Error("rows are sorted by one column")
	}
	over := render(t, p, page.View{Content: &page.Overview{Status: status, Listing: l}})
	if want := `href="/base/?group=state&amp;q=customer&amp;sort=-health&amp;state=failed#environments"`; !strings.Contains(over, want) {
		t.Errorf("the overview has no %s", want)
	}
}

// TestApplicationsListing: applications are sorted and left out by state as environments are.
func TestApplicationsListing(t *testing.T) {
	p := newPages(t, "")
	list := &schema.AppList{Apps: []schema.App{
		{Name: "a", Kind: "Shop", Health: schema.AppReady, Created: pagetest.Noon},
		{Name: "b", Kind: "Blog", Health: schema.AppFailed, Created: pagetest.Noon.Add(-1)},
		{Name: "c", Kind: "Shop", Health: schema.AppDeleting, Created: pagetest.Noon.Add(1)},
	}}
	for asked, want := range map[string]string{
		"": "a b c", "-name": "c b a", "health": "b c a", "kind": "b a c", "created": "b a c", "-created": "c a b", "unknown": "a b c",
	} {
		content := &page.Apps{Environment: "test", List: list, Listing: page.NewListing(parameters("sort", asked))}
		if got := strings.Join(column(t, render(t, p, page.View{Content: content})), " "); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
	content := &page.Apps{Environment: "test", List: list, Listing: page.NewListing(parameters("state", "deleting"))}
	if got := column(t, render(t, p, page.View{Content: content})); !slices.Equal(got, []string{"c"}) {
		t.Errorf("got %s", got)
	}
}
