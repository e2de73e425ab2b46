package page_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/schema/report"
)

var update = flag.Bool("update", false, "write the golden pages")

func render(t *testing.T, p *page.Pages, v page.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Render(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func newPages(t *testing.T, base string) *page.Pages {
	t.Helper()
	p, err := page.New(base)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// element is an element of a page with its attributes.
type element struct {
	name       string
	attributes map[string]string
}

// elements parses a page as a browser does.
func elements(t *testing.T, text string) (found []element, visible string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			if !isHidden(n) {
				words.WriteString(n.Data)
			}
		case html.ElementNode:
			e := element{n.Data, map[string]string{}}
			if n.Namespace == "svg" && n.Data == "title" {
				e.name = "svg title" // a part of a picture has one, too
			}
			for _, a := range n.Attr {
				e.attributes[a.Key] = a.Val
			}
			found = append(found, e)
			if e.name == "td" && e.attributes["data-label"] != "" && isMixed(n) {
				t.Errorf("a cell has words beside elements, which a narrow window puts below its label: %s", e.attributes["data-label"])
			}
		case html.CommentNode:
			t.Errorf("a comment: %q", n.Data)
		default:
		}
	}
	return found, words.String()
}

// isHidden reports whether a node is in a row of a table that is hidden.
func isHidden(n *html.Node) bool {
	for above := range n.Ancestors() {
		if above.Data == "tr" && slices.ContainsFunc(above.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) {
			return true
		}
	}
	return false
}

// isMixed reports whether an element has text and elements beside each other.
func isMixed(n *html.Node) bool {
	words, others := false, false
	for child := range n.ChildNodes() {
		words = words || child.Type == html.TextNode && strings.TrimSpace(child.Data) != ""
		others = others || child.Type == html.ElementNode
	}
	return words && others
}

// assetNames are the assets of this build; golden pages have them without the digest, so that a new style changes no
// page.
var assetNames = []string{"console", "begun", "icon"}

func withoutDigests(text string) string {
	for _, name := range assetNames {
		for at := 0; ; {
			i := strings.Index(text[at:], "/static/"+name+".")
			if i < 0 {
				break
			}
			at += i + len("/static/"+name+".")
			text = text[:at] + text[at+13:]
		}
	}
	return text
}

// framed are the pages whose golden file has everything around the content: with a menu, and before the login.
var framed = []string{"overview", "login"}

// contentOf returns the element main of a page.
func contentOf(t *testing.T, text string) string {
	t.Helper()
	_, after, begins := strings.Cut(text, "<main")
	content, _, ends := strings.Cut(after, "</main>")
	if !begins || !ends {
		t.Fatalf("the page has no element main:\n%s", text)
	}
	return "<main" + content + "</main>\n"
}

// TestNewIsSmall: pages take little memory before one of them is shown.
func TestNewIsSmall(t *testing.T) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // no heap has 2⁶³ bytes
	}
	before := inUse()
	p := newPages(t, "")
	fresh := inUse() - before
	for _, v := range pagetest.Samples(pagetest.Honest) {
		render(t, p, v)
	}
	t.Logf("%d KB, and %d KB when each page was shown", fresh>>10, (inUse()-before)>>10)
	if fresh > 2<<20 {
		t.Errorf("%d KB before a page is shown", fresh>>10)
	}
	runtime.KeepAlive(p)
}

// TestGoldenPages compares pages with those in testdata.
func TestGoldenPages(t *testing.T) {
	p := newPages(t, "")
	for name, v := range pagetest.Samples(pagetest.Honest) {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", name+".html")
			got := withoutDigests(render(t, p, v))
			if !slices.Contains(framed, name) {
				got = contentOf(t, got)
			}
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s has changed: look at it, then run the test with -update\n%s", golden, firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got:  " + g[i] + "\nwant: " + w[i]
		}
	}
	return "one is longer than the other"
}

// TestStructure checks the needs of browsers and screen readers, on each page.
func TestStructure(t *testing.T) {
	p := newPages(t, "/console")
	for name, v := range pagetest.Samples(pagetest.Honest) {
		t.Run(name, func(t *testing.T) {
			all, _ := elements(t, render(t, p, v))
			number := map[string]int{}
			ids := map[string]bool{}
			labelled := map[string]bool{}
			for _, e := range all {
				number[e.name]++
				if id := e.attributes["id"]; id != "" {
					if ids[id] {
						t.Errorf("two elements have the id %s", id)
					}
					ids[id] = true
				}
				if e.name == "label" {
					labelled[e.attributes["for"]] = true
				}
			}
			for _, landmark := range []string{"h1", "main", "footer", "title"} {
				if number[landmark] != 1 {
					t.Errorf("%d elements %s, want 1", number[landmark], landmark)
				}
			}
			for _, e := range all {
				judgeElement(t, e, ids, labelled)
			}
		})
	}
}

func judgeElement(t *testing.T, e element, ids, labelled map[string]bool) {
	t.Helper()
	for key, value := range e.attributes {
		switch {
		case strings.HasPrefix(key, "on"), key == "style":
			t.Errorf("<%s %s=%q>: the policy does not allow it", e.name, key, value)
		case key == "aria-labelledby", key == "aria-describedby", key == "for", key == "popovertarget":
			for id := range strings.FieldsSeq(value) {
				if !ids[id] {
					t.Errorf("<%s %s=%q> names nothing", e.name, key, value)
				}
			}
		case e.name == "use" && key == "href":
			if !ids[strings.TrimPrefix(value, "#")] {
				t.Errorf("there is no icon %s", value)
			}
		case key == "href" && e.attributes["rel"] == "noopener noreferrer":
			if !strings.HasPrefix(value, "https://shop.example.com/") {
				t.Errorf("<%s href=%q>: the samples have no such user interface", e.name, value)
			}
		case (key == "href" || key == "src" || key == "action") && !strings.HasPrefix(value, "#") && !strings.HasPrefix(value, "/console/"):
			t.Errorf("<%s %s=%q> leads out of the console", e.name, key, value)
		}
	}
	switch e.name {
	case "style", "iframe", "object", "embed", "base":
		t.Errorf("there is a <%s>", e.name)
	case "script":
		if e.attributes["src"] == "" {
			t.Error("a script stands in the page")
		}
	case "input", "select", "textarea":
		if e.attributes["type"] != "hidden" && !labelled[e.attributes["id"]] {
			t.Errorf("<%s name=%q> has no label", e.name, e.attributes["name"])
		}
	case "table":
	}
}

// hostile are strings as they could come from an archive or a cluster. None has a dot, which would take the path of a field apart.
var hostile = []string{
	`<script>alert(1)</script>`, `"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `"onmouseover="alert(1)`, `' autofocus onfocus='alert(1)`,
	"` onload=`alert(1)", `javascript:alert(1)`, `</title></textarea></template><svg onload=alert(1)>`, `<a href="javascript:alert(1)">click</a>`,
	`--><script>alert(1)</script><!--`, `]]><b>`, `&lt;script&gt;alert(1)&lt;/script&gt;`, `<<b>script>`, `{{template "page"}}`, `${alert(1)}`, `\"><b>`, `<base href=//evil>`,
	`<meta http-equiv=refresh content="0;url=//evil">`, `<form action=//evil><button>`, `<!--`, `<plaintext>`, `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`, `<style>*{display:none}</style>`,
	"a\x00b\x1b]0;owned\x07", "safe\u202egnp\u202c", "zero\u200bwidth\u2066isolate\u2069", "\xff\xfe<b>", "line\nfeed\ttab\rreturn", strings.Repeat("W", 3000), "שלום <b>", "＜script＞",
}

// TestHostileStrings renders each page with each string wherever data stands, and compares the elements and attributes with
// those of the pagetest.Honest page: data must add none.
func TestHostileStrings(t *testing.T) {
	p := newPages(t, "")
	plain := map[string][]element{}
	for name, v := range pagetest.Samples(pagetest.Honest) {
		plain[name], _ = elements(t, render(t, p, v))
	}
	for _, evil := range hostile {
		for name, v := range pagetest.Samples(func(text string) string { return text + evil }) {
			text := render(t, p, v)
			got, visible := elements(t, text)
			if i := differs(got, plain[name]); i >= 0 {
				t.Errorf("%s with %q: element %d is %v", name, evil, i, got[min(i, len(got)-1)])
			}
			if shown := strings.ReplaceAll(report.Clean(evil), `\u0000`, "\ufffd"); !strings.HasPrefix(name, "overview-empty") && !strings.Contains(visible, strings.TrimPrefix(shown, "\n")) {
				t.Errorf("%s does not show %q", name, shown)
			}
			if strings.ContainsFunc(text, func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u200b' || r == '\u2066'
			}) {
				t.Errorf("%s with %q has an invisible character", name, evil)
			}
		}
	}
}

// differs returns the place of the first element that has another name, other attributes, or leads elsewhere; -1 for none.
func differs(got, want []element) int {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i].name != want[i].name {
			return i
		}
		names := slices.Sorted(maps.Keys(got[i].attributes))
		if !slices.Equal(names, slices.Sorted(maps.Keys(want[i].attributes))) {
			return i
		}
		for _, key := range []string{"href", "src", "action"} {
			if to := got[i].attributes[key]; to != "" && to != "https://shop.example.com/" && (to[0] != '/' && to[0] != '#' || strings.HasPrefix(to, "//")) {
				return i
			}
		}
	}
	return -1
}

func TestRenderRefusesLinksThatLeadElsewhere(t *testing.T) {
	p := newPages(t, "")
	for _, to := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "javascript:alert(1)", "evil", "", "/\x00", "data:text/html,x"} {
		v := page.View{Content: &page.Failure{Problem: page.Problem{Remedies: []page.Action{{Label: "x", URL: to}}}}}
		var b bytes.Buffer
		if err := p.Render(&b, v); err == nil || b.Len() > 0 {
			t.Errorf("%q was rendered", to)
		}
	}
}

// TestExternalLink: only a web address of a cluster becomes a link out of the console, and nothing else is rendered as one.
func TestExternalLink(t *testing.T) {
	for text, want := range map[string]string{
		"https://shop.example.com/": "shop.example.com", "http://10.0.0.1:8080/shop/": "10.0.0.1:8080/shop",
		"javascript:alert(1)": "", "data:text/html,x": "", "//evil.example": "", "/settings": "", "https://": "", "https://user:pass@shop.example.com/": "", "https://a\x00b/": "",
	} {
		link, ok := page.ExternalLink(text)
		if link.Label != want || ok != (want != "") {
			t.Errorf("%q: %+v, %v", text, link, ok)
		}
		var b bytes.Buffer
		done := pagetest.Done(pagetest.Honest)
		done.Outcome.Interface = []page.External{{Label: "open", URL: text}}
		if err := newPages(t, "").Render(&b, page.View{Content: done}); (err == nil) != ok {
			t.Errorf("%q is rendered: %v", text, err)
		}
	}
}

func TestURL(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{page.URL(), "/"},
		{page.URL("environments", "a/../b"), "/environments/a%2F..%2Fb"},
		{page.URL("solutions", "ü ?#"), "/solutions/%C3%BC%20%3F%23"},
		{page.Query("/x", "a", "1&2", "b", ""), "/x?a=1%262"},
		{page.Query("/x", "b", ""), "/x"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

func TestSearchWithoutScript(t *testing.T) {
	p := newPages(t, "")
	status := pagetest.Status(pagetest.Honest, 200)
	for _, test := range []struct {
		query, shown, hidden string
	}{
		{"customer-01", "customer-012", "customer-020"},
		{"failed", "customer-042", "customer-043"},
		{"nothing has this", "Nothing matches", "customer-001"},
	} {
		_, text := elements(t, render(t, p, page.View{Content: &page.Environments{Environments: status.Environments, Listing: page.Listing{Query: test.query}}}))
		if !strings.Contains(text, test.shown) || strings.Contains(text, test.hidden) {
			t.Errorf("%q: want %s and not %s", test.query, test.shown, test.hidden)
		}
	}
}

func TestProblemOf(t *testing.T) {
	if page.ProblemOf(nil) != nil {
		t.Error("a problem of nothing")
	}
	older := page.ProblemOf(report.Errorf(report.Downgrade, "shop 1.0.0 is older").WithHint("add --allow-downgrade"))
	if older.Command != "solutionctl deploy import FILE.iso --allow-downgrade" || strings.Contains(strings.Join(older.Hints, ""), "--") {
		t.Errorf("%+v", older)
	}
	p := page.ProblemOf(report.Errorf(report.Locked, "joe is at work").WithHint("wait"))
	if p.Code != report.Locked || p.Message != "joe is at work" || !slices.Equal(p.Hints, []string{"wait"}) {
		t.Errorf("%+v", p)
	}
}

// TestRemedies: a remedy that has a page leads there, and nowhere else.
func TestRemedies(t *testing.T) {
	for want, r := range map[string]report.Remedy{
		"Activate shop 1.1.0 /solutions/shop/plan/activate?version=1.1.0":                                       report.Run("deploy activate", "shop", "1.1.0").With("cluster-wide"),
		"Activate shop 1.1.0 /solutions/shop/plan/activate?component=db&component=quota&version=1.1.0":          report.Run("deploy activate", "shop", "1.1.0").With("component", "db", "quota"),
		"Remove shop from environment test /environments/test/plan/remove?solution=shop":                        report.Run("deploy remove", "test", "shop"),
		"Upgrade to shop 1.1.0 in environment test /environments/test/plan/upgrade?solution=shop&version=1.1.0": report.Run("deploy upgrade", "test", "shop", "1.1.0"),
		"Delete environment test /environments/test/plan/delete?namespace=eu":                                   report.Run("deploy env delete", "test").With("namespace", "eu").With("delete-data"),
		"Remove &<%/ from environment a/b /environments/a%2Fb/plan/remove?solution=%26%3C%25%2F":                report.Run("deploy remove", "a/b", "&<%/"),
		"New environment /environments/new?name=test&namespace=eu":                                              report.Run("deploy env create", "test").With("namespace", "eu"),
		"Applications in test /environments/test/apps":                                                          report.Run("deploy app list", "test"),
		"Applications in test /environments/test/apps?q=wall":                                                   report.Run("deploy app get", "test", "wall"),
		"Versions of shop /solutions/shop":                                                                      report.Run("deploy compatibility", "shop"),
		"Doctor /doctor":                                                                                        report.Run("deploy doctor"),
	} {
		p := page.ProblemOf(report.Errorf(report.InUse, "x").WithHint("%s", r))
		if len(p.Remedies) != 1 || p.Remedies[0].Label+" "+p.Remedies[0].URL != want || p.Remedies[0].Post {
			t.Errorf("got %+v, want %s", p.Remedies, want)
		}
	}
	for _, none := range []report.Remedy{
		report.Accept("adopt"), report.Run("deploy remove", "ENVIRONMENT", "shop"), report.Run("deploy import", "/srv/shop.iso"),
		report.Run("deploy upgrade", "test", "shop", "1.1.0").With("with", "base=2.0.0"), report.Run("deploy repair", "test", "shop").With("records"),
	} {
		if p := page.ProblemOf(report.Errorf(report.InUse, "x").WithHint("%s", none)); len(p.Remedies) != 0 || len(p.Hints) != 1 {
			t.Errorf("%s: %+v", none, p)
		}
	}
}

// TestAnnouncement: a screen reader announces completed steps, and not each step in progress.
func TestAnnouncement(t *testing.T) {
	steps := []report.Event{
		{Step: "lock", Name: "production", State: report.Done}, {Step: "apply", Name: "a\u202eb", State: report.Running, Done: 9, Total: 4, Unit: "objects"},
	}
	if got, want := (&page.Progress{Steps: steps}).Announcement(), "Done: Take the lock production"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&page.Progress{Steps: steps[1:]}).Announcement(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func BenchmarkOverview(b *testing.B) {
	p, err := page.New("")
	if err != nil {
		b.Fatal(err)
	}
	v := page.View{Frame: page.Frame{User: "jane"}, Content: &page.Overview{Status: pagetest.Status(pagetest.Honest, 200)}}
	for b.Loop() {
		var out bytes.Buffer
		if err := p.Render(&out, v); err != nil {
			b.Fatal(err)
		}
	}
}
