package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// loads writes how far the loader is, as its Job does.
func loads(bed *deployertest.Bed, progress *schema.LoadProgress) {
	bed.Helper()
	progress.Stamp = schema.NewStamp("loadprogress", "1.0.0")
	text, err := json.Marshal(progress)
	if err != nil {
		bed.Fatal(err)
	}
	bed.Server.Put(bed.TB, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": %q, "name": "loader"}, "data": {"progress.json": %q}}`, cluster.SystemNamespace, text))
}

// TestLoader: the console shows the progress of the loader, with the permissions of the user, and the present state of
// its parts.
func TestLoader(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	if a := c.get("/loader"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "never run") || !strings.Contains(a.body, "solutionctl deploy loader start") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	var failure refused
	if a := c.json("/loader", &failure); a.StatusCode != http.StatusNotFound || failure.Code != report.NotFound {
		t.Errorf("a program is told %d %s", a.StatusCode, a.body)
	}
	if a := c.get("/"); strings.Contains(content(a.body), "/loader") {
		t.Errorf("the overview tells of a loader\n%s", content(a.body))
	}

	site, began := deployertest.Environment, time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	progress := &schema.LoadProgress{
		Run: "run-1", Phase: schema.LoadRunning, Digest: "sha256:" + strings.Repeat("4f", 32), StartedAt: began, UpdatedAt: began, Ready: 1,
		Parts: []schema.LoadPart{
			{Environment: site, Namespace: site, Solution: "shop", Version: "1.0.0", State: schema.PartReady},
			{Environment: "elsewhere", Namespace: "elsewhere", Solution: "cloud", Component: "db", State: schema.PartWaiting, WaitingFor: []string{"Deployment elsewhere/db: <script>"}},
		},
		Notices: []string{}, Loaded: []schema.LoadedContent{},
	}
	seen := regexp.MustCompile(`seen=[0-9a-f]+`)
	before := seen.FindString(c.get("/loader").body)
	loads(bed, progress)
	b.clock.advance(2 * time.Second) // the earlier snapshot is too old to be shown
	a := c.get("/loader")
	for _, text := range []string{"At work", "1 of 2 parts are ready", "Coming up", "Deployment elsewhere/db: &lt;script&gt;", `/events?seen=`} {
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, text) {
			t.Errorf("%d, nothing of %q\n%s", a.StatusCode, text, content(a.body))
		}
	}
	if after := seen.FindString(a.body); before == "" || after == before {
		t.Errorf("browsers that follow the page are not told: %s", after)
	}
	var told schema.LoadProgress
	if a := c.json("/loader", &told); a.StatusCode != http.StatusOK || told.Run != "run-1" || len(told.Parts) != 2 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	deployertest.Valid(t, "loadprogress", told)
	if a := c.get("/"); !strings.Contains(a.body, "The loader is at work: 1 of 2 parts are ready") || !strings.Contains(a.body, `href="/loader"`) {
		t.Errorf("the overview says\n%s", content(a.body))
	}

	progress.Phase, progress.Parts[1].State, progress.Parts[1].WaitingFor, progress.Ready = schema.LoadReady, schema.PartReady, nil, 2
	progress.Repair = &schema.LoadRepair{At: began, Changed: []string{"ConfigMap site/shop was changed by kubectl-edit"}, Times: 4}
	loads(bed, progress)
	b.clock.advance(2 * time.Second)
	if a := c.get("/loader"); !strings.Contains(a.body, "1 of 2 parts are ready") || !strings.Contains(a.body, "<span>Not ready</span>") ||
		!strings.Contains(a.body, "changed by kubectl-edit") || !strings.Contains(a.body, "4 times in a row") {
		t.Errorf("what was ready and is gone:\n%s", content(a.body))
	}

	bed.Server.Put(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": %q, "name": "loader"}, "data": {"progress.json": "{"}}`, cluster.SystemNamespace))
	b.clock.advance(2 * time.Second)
	if a := c.json("/loader", &failure); a.StatusCode < 400 || failure.Code != report.Corrupt || !strings.Contains(a.body, "solutionctl-system/loader") {
		t.Errorf("damaged: %d\n%s", a.StatusCode, a.body)
	}
	if a := c.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("the overview of somebody whose loader is damaged: %d", a.StatusCode)
	}

	bed.Only(site, nil)
	if a := b.with(t, "joe").json("/loader", &failure); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "configmaps") {
		t.Errorf("who has no rights there: %d\n%s", a.StatusCode, a.body)
	}
	loads(bed, progress)
	bed.Only(site, func(a authorization.ResourceAttributes) bool {
		return a.Namespace == cluster.SystemNamespace && a.Resource == "configmaps" && a.Name == "loader"
	})
	ann := b.with(t, "ann")
	if a := ann.json("/loader", &told); a.StatusCode != http.StatusOK || told.Phase != schema.LoadReady {
		t.Errorf("who may see this and nothing else: %d\n%s", a.StatusCode, a.body)
	}
	if a := ann.get("/loader"); !strings.Contains(a.body, "2 of 2 parts are ready") {
		t.Errorf("who may see this and nothing else is shown\n%s", content(a.body))
	}
}
