package page_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func source(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func zipped(t *testing.T, text string) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

func TestSizes(t *testing.T) {
	const kib = 1024
	style, script := zipped(t, source(t, "static/console.css")), zipped(t, source(t, "static/console.js")+source(t, "static/begun.js"))
	if style > 8*kib {
		t.Errorf("the styles have %d bytes", style)
	}
	if script > 6*kib {
		t.Errorf("the script has %d bytes", script)
	}
	p := newPages(t, "")
	for name, v := range pagetest.Samples(pagetest.Honest) {
		text := render(t, p, v)
		requests, bytes := 1, zipped(t, text)
		all, _ := elements(t, text)
		for _, e := range all {
			if to := e.attributes["src"]; to != "" || e.name == "link" {
				requests++
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, to+e.attributes["href"], http.NoBody)
				r.Header.Set("Accept-Encoding", "gzip")
				p.Static().ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Errorf("%s: %s: status %d", name, r.URL, w.Code)
				}
				bytes += w.Body.Len()
			}
		}
		if requests > 6 || bytes > 24*kib {
			t.Errorf("%s takes %d requests and %d bytes", name, requests, bytes)
		}
	}
}

func TestStatic(t *testing.T) {
	p := newPages(t, "/base")
	text := render(t, p, page.View{Content: &page.Login{}})
	path := regexp.MustCompile(`/base(/static/console\.[0-9a-f]{12}\.css)`).FindStringSubmatch(text)
	if path == nil {
		t.Fatal("no style sheet with a digest in its name")
	}
	for _, test := range []struct {
		name, path, accept, encoding string
		status                       int
	}{
		{"plain", path[1], "", "", http.StatusOK},
		{"compressed", path[1], "br, gzip", "gzip", http.StatusOK},
		{"another digest", "/static/console.000000000000.css", "", "", http.StatusNotFound},
		{"without digest", "/static/console.css", "", "", http.StatusNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, test.path, http.NoBody)
			r.Header.Set("Accept-Encoding", test.accept)
			p.Static().ServeHTTP(w, r)
			if w.Code != test.status || w.Header().Get("Content-Encoding") != test.encoding {
				t.Fatalf("status %d, encoding %q", w.Code, w.Header().Get("Content-Encoding"))
			}
			if w.Code == http.StatusOK && (!strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") != "text/css; charset=utf-8") {
				t.Errorf("%v", w.Header())
			}
		})
	}
}

func TestRespond(t *testing.T) {
	p := newPages(t, "")
	v := page.View{Content: &page.Overview{Status: pagetest.Status(pagetest.Honest, 200)}}
	for _, test := range []struct {
		accept, encoding string
		most             int
	}{{"", "", 400 << 10}, {"gzip", "gzip", 24 << 10}} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept-Encoding", test.accept)
		if err := p.Respond(w, r, http.StatusAccepted, v); err != nil {
			t.Fatal(err)
		}
		if h := w.Header(); w.Code != http.StatusAccepted || h.Get("Content-Encoding") != test.encoding || h.Get("Vary") != "Accept-Encoding" || w.Body.Len() > test.most {
			t.Errorf("status %d, %d bytes, %v", w.Code, w.Body.Len(), h)
		}
	}
	w := httptest.NewRecorder()
	broken := page.View{Content: &page.Failure{Problem: page.Problem{Remedies: []page.Action{{URL: "https://evil.example"}}}}}
	if err := p.Respond(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), http.StatusOK, broken); err == nil || w.Body.Len() > 0 {
		t.Errorf("%v, %d bytes", err, w.Body.Len())
	}
}

// TestBegin: a page in two parts is the page, with a sentence in between that goes when the rest is there.
func TestBegin(t *testing.T) {
	p := newPages(t, "")
	v := page.View{Frame: pagetest.Samples(pagetest.Honest)["overview"].Frame, Content: &page.Overview{Status: pagetest.Status(pagetest.Honest, 3)}}
	for _, accept := range []string{"", "gzip"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept-Encoding", accept)
		early := v
		early.Feed, early.Content = "", &page.Overview{}
		begun, err := p.Begin(w, r, early)
		if err != nil || !w.Flushed {
			t.Fatalf("%v, the browser has got something: %t", err, w.Flushed)
		}
		sent := w.Body.Len()
		broken := page.View{Content: &page.Failure{Problem: page.Problem{Remedies: []page.Action{{URL: "https://evil.example"}}}}}
		if err = begun.Finish(broken); err == nil || w.Body.Len() > sent {
			t.Errorf("%v, %d bytes after %d", err, w.Body.Len(), sent)
		}
		if err = begun.Finish(v); err != nil {
			t.Fatal(err)
		}
		var body io.Reader = w.Body
		if accept != "" {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		asking := regexp.MustCompile(`(?s)\n<p class="asking dim".*?<span>` + page.Text("frame.asking") + `</span>.*?</p>\n<script [^>]*></script>`)
		found := len(asking.FindAllString(string(got), -1)) == 1
		if !found || asking.ReplaceAllString(string(got), "") != render(t, p, v) {
			t.Errorf("found %t in\n%s", found, got)
		}
	}
}

// TestPreview: a preview has the names and the requested versions, has nothing about health, and is followed by the page as it is without it.
func TestPreview(t *testing.T) {
	p := newPages(t, "")
	status := pagetest.Status(pagetest.Honest, 60)
	v := page.View{Frame: pagetest.Samples(pagetest.Honest)["overview"].Frame, Content: &page.Overview{Status: status}}
	title, preview := v, v
	title.Content, preview.Content = page.PreviewOverview(nil, page.Listing{}), page.PreviewOverview(pagetest.Preview(status), page.Listing{})
	for name, first := range map[string]page.View{"with the frame": preview, "after the frame": title} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			begun, err := p.Begin(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), first)
			if err == nil {
				err = begun.Preview(preview) // a second one is not sent
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := w.Body.String()
			_, shown, _ := strings.Cut(sent, `<div class="preview">`)
			if strings.Count(sent, `class="preview"`) != 1 || regexp.MustCompile(` id=`).MatchString(shown) {
				t.Errorf("not one preview, or one with ids:\n%s", sent)
			}
			for _, text := range []string{">production</bdi>", ">customer-049</bdi>", `<span class="dim">1.10.0</span>`, page.Text("health.checking"), page.Text("matrix.shown", 50, 60)} {
				if !strings.Contains(shown, text) {
					t.Errorf("nothing of %q in\n%s", text, shown)
				}
			}
			for _, health := range []string{"ready", "failed", "drifted", "unknown"} {
				if text := page.Text("health." + health); strings.Contains(shown, text) {
					t.Errorf("%q in\n%s", text, shown)
				}
			}
			if err = begun.Finish(v); err != nil {
				t.Fatal(err)
			}
			if got := regexp.MustCompile(`(?s)<div class="head">.*(<div class="head">)`).ReplaceAllString(w.Body.String(), "$1"); got != render(t, p, v) {
				t.Errorf("the rest is another page:\n%s", got)
			}
		})
	}
}

// TestScriptHasNoWayFromTextToCode: the source has none of the constructs that the policy would refuse.
func TestScriptHasNoWayFromTextToCode(t *testing.T) {
	if found := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|DOMParser|document\.write|\beval\b|Function\(|createPolicy|setHTML|localStorage|document\.cookie|https?:`).FindString(source(t, "static/console.js") + source(t, "static/begun.js")); found != "" {
		t.Errorf("the script has %s", found)
	}
	if found := regexp.MustCompile(`url\(|@import|https?:`).FindString(source(t, "static/console.css")); found != "" {
		t.Errorf("the styles have %s", found)
	}
}

// TestContrast computes the contrast (WCAG 2.2, 1.4.3 and 1.4.11) of every pair of colours that stand on each other.
func TestContrast(t *testing.T) {
	tokens := map[string][2]string{}
	css := source(t, "static/console.css")
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(css, -1) {
		tokens[m[1]] = [2]string{m[2], m[3]}
	}
	const text, graphics = 4.5, 3
	grounds := []string{"bg", "side", "soft"}
	pairs := []struct {
		over, under string
		least       float64
	}{
		{"on-accent", "accent", text},
		{"on-bad", "bad", text},
		{"accent", "accent-soft", text},
		{"good", "good-soft", text},
		{"warn", "warn-soft", text},
		{"bad", "bad-soft", text},
	}
	for _, ground := range grounds {
		for _, over := range []string{"text", "dim", "accent", "good", "warn", "bad", "violet"} {
			pairs = append(pairs, struct {
				over, under string
				least       float64
			}{over, ground, text})
		}
		pairs = append(pairs, struct {
			over, under string
			least       float64
		}{"edge", ground, graphics})
	}
	for _, ground := range []string{"accent-soft", "good-soft", "warn-soft", "bad-soft"} {
		for _, over := range []string{"text", "dim"} {
			pairs = append(pairs, struct {
				over, under string
				least       float64
			}{over, ground, text})
		}
	}
	for _, pair := range pairs {
		for i, scheme := range []string{"light", "dark"} {
			over, under := tokens[pair.over], tokens[pair.under]
			if over[i] == "" || under[i] == "" {
				t.Fatalf("there is no token %s or %s", pair.over, pair.under)
			}
			if c := contrast(t, over[i], under[i]); c < pair.least {
				t.Errorf("%s: %s on %s has %.2f, want %.1f", scheme, pair.over, pair.under, c, pair.least)
			}
		}
	}
	_, rules, _ := strings.Cut(css, "}")
	if colour := regexp.MustCompile(`#[0-9a-f]{6}\b`).FindString(rules); colour != "" {
		t.Errorf("%s is no token", colour)
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

// TestCatalogue compares the texts with their uses, in both directions.
func TestCatalogue(t *testing.T) {
	words := map[string]bool{}
	for line := range strings.Lines(source(t, "english.txt")) {
		if key, _, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(key, "#") {
			if words[key] {
				t.Errorf("%s is there twice", key)
			}
			words[key] = false
		}
	}
	use := func(key, where string) {
		if _, ok := words[key]; !ok {
			t.Errorf("%s: there is no text %s", where, key)
		}
		words[key] = true
	}
	var files []string
	for _, pattern := range []string{"templates/*.html", "templates/pages/*.html", "../*.go", "../*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	// Texts of actions are used by the console; all others are used here.
	offered := regexp.MustCompile(`^(action|plan\.apply|plan\.show|field|data|accept|denial|operation|newenvironment|login|frame\.logout|overview\.lock|step|way)\b`)
	asked := regexp.MustCompile(`\b(text|Text|count|Count|word)[ (]"([a-zA-Z0-9.-]+)"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range asked.FindAllStringSubmatch(source(t, file), -1) {
			switch kind, key := m[1], m[2]; {
			case kind == "count" || kind == "Count":
				use(key+".one", file)
				use(key+".other", file)
			case kind == "word", strings.HasSuffix(key, "."):
				prefix := strings.TrimSuffix(key, ".") + "."
				for known := range words {
					if strings.HasPrefix(known, prefix) {
						words[known] = true
					}
				}
			default:
				use(key, file)
			}
		}
	}
	for key, used := range words {
		if !used && !offered.MatchString(key) {
			t.Errorf("nobody asks for %s", key)
		}
	}
	for _, key := range documentWords() {
		if _, ok := words[key]; !ok {
			t.Errorf("there is no text %s", key)
		}
	}
}

// documentWords are the keys of words that documents have.
func documentWords() []string {
	var keys []string
	for _, info := range report.Codes() {
		keys = append(keys, "code."+string(info.Code))
	}
	for _, h := range []schema.DeploymentHealth{
		schema.HealthReady, schema.HealthProgressing, schema.HealthUnknown, schema.HealthPending, schema.HealthDrifted, schema.HealthForeign, schema.HealthMissing, schema.HealthFailed,
	} {
		keys = append(keys, "health."+string(h))
	}
	for _, h := range []schema.AppHealth{schema.AppReady, schema.AppProgressing, schema.AppFailed, schema.AppDeleting} {
		keys = append(keys, "health."+string(h))
	}
	for _, a := range []schema.Action{
		schema.ActionCreate, schema.ActionUpdate, schema.ActionReplace, schema.ActionDelete, schema.ActionAdopt, schema.ActionKeep, schema.ActionNone, schema.ActionSkip,
	} {
		keys = append(keys, "action."+string(a))
	}
	for _, v := range []schema.CompatibilityVerdict{schema.CompatibilityYes, schema.CompatibilityKeeps, schema.CompatibilityNo, schema.CompatibilityLoss} {
		keys = append(keys, "verdict."+string(v))
	}
	for _, o := range []schema.DeploymentOutcome{schema.DeploymentPending, schema.DeploymentDone, schema.DeploymentReplaced} {
		keys = append(keys, "outcome."+string(o))
	}
	for _, r := range []schema.CheckResult{schema.CheckOK, schema.CheckWarning, schema.CheckProblem, schema.CheckSkipped} {
		keys = append(keys, "result."+string(r))
	}
	for _, s := range []report.State{report.Started, report.Running, report.Done, report.Skipped, report.Failed, report.Warning} {
		keys = append(keys, "state."+string(s))
	}
	return keys
}

// TestStates: each state of a deployment or an application has a meaning, and the word of documents.
func TestStates(t *testing.T) {
	known := map[string]bool{}
	for _, s := range schema.States() {
		known[s.Word] = true
		if got := page.Text("health." + s.Word); got != report.Capitalized(s.Word) || s.Meaning == "" {
			t.Errorf("%s is %q: %q", s.Word, got, s.Meaning)
		}
	}
	for _, word := range documentWords() {
		if state, is := strings.CutPrefix(word, "health."); is && !known[state] {
			t.Errorf("nothing explains %s", state)
		}
	}
}
