package notify_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/support/notify"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// observed is a cluster with a Solution whose deployments have these healths, by environment, and checks with these results, by name.
func observed(healths, checks map[string]string) notify.Observed {
	status, diagnosis := &schema.Status{}, &schema.Diagnosis{}
	for name, health := range healths {
		status.Environments = append(status.Environments, schema.EnvironmentStatus{Name: name, Namespaces: []schema.NamespaceStatus{{
			Name: name, Deployments: []schema.DeploymentStatus{{Solution: "shop", Version: "1.0.0", Health: schema.DeploymentHealth(health), Reasons: []schema.Reason{{Text: "Deployment web: crashes"}}}},
		}}})
	}
	for name, result := range checks {
		diagnosis.Checks = append(diagnosis.Checks, schema.Check{Area: "host", Name: name, Result: schema.CheckResult(result), Message: name + " is damaged", Hint: "import it again"})
	}
	return notify.Observed{Status: status, Diagnosis: diagnosis}
}

func lines(changes []schema.ReportedProblem) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s %s: %s\n", c.State, c.Name, c.Since.Format("15:04"), c.Summary)
	}
	return b.String()
}

// TestCompare returns each problem once, after a while if it can be normal for a while, and its end once.
func TestCompare(t *testing.T) {
	journal := &notify.Journal{}
	for i, step := range []struct {
		at       int // minutes
		observed notify.Observed
		accepted bool
		want     string
	}{
		{0, observed(map[string]string{"prod": "ready", "test": "drifted"}, map[string]string{"store": "ok", "clock": "warning"}), true, ""},
		{
			5, observed(map[string]string{"prod": "progressing", "test": "failed"}, map[string]string{"store": "problem"}), false,
			"firing CheckFailed 03:05: store is damaged\nfiring DeploymentFailed 03:05: shop 1.0.0 in environment test has failed: Deployment web: crashes\n",
		},
		// The webhook did not answer: the same again, with the time at which it began.
		{
			10, observed(map[string]string{"prod": "progressing", "test": "failed"}, map[string]string{"store": "problem"}), true,
			"firing CheckFailed 03:05: store is damaged\nfiring DeploymentFailed 03:05: shop 1.0.0 in environment test has failed: Deployment web: crashes\n",
		},
		{14, observed(map[string]string{"prod": "progressing", "test": "failed"}, map[string]string{"store": "problem"}), true, ""},
		{
			15, observed(map[string]string{"prod": "progressing", "test": "failed"}, map[string]string{"store": "problem"}), true,
			"firing DeploymentNotReady 03:05: shop 1.0.0 in environment prod is not ready: Deployment web: crashes\n",
		},
		// The cluster could not be read, then the host.
		{20, notify.Observed{Diagnosis: observed(nil, map[string]string{"store": "problem"}).Diagnosis}, true, ""},
		{25, notify.Observed{Status: observed(map[string]string{"prod": "progressing", "test": "failed"}, nil).Status}, true, ""},
		{
			30, observed(map[string]string{"prod": "ready", "test": "pending"}, map[string]string{"store": "ok"}), true,
			"resolved CheckFailed 03:05: store is damaged\nresolved DeploymentFailed 03:05: shop 1.0.0 in environment test has failed: Deployment web: crashes\n" +
				"resolved DeploymentNotReady 03:05: shop 1.0.0 in environment prod is not ready: Deployment web: crashes\n",
		},
		// An operation that ends in time is never mentioned.
		{35, observed(map[string]string{"prod": "ready", "test": "ready"}, nil), true, ""},
		{50, observed(map[string]string{"test": "pending"}, nil), true, ""},
		{
			60, observed(map[string]string{"test": "pending"}, nil), true,
			"firing OperationUnfinished 03:50: shop 1.0.0 in environment test has an operation that has not ended: Deployment web: crashes\n",
		},
		{
			65, observed(nil, nil), true,
			"resolved OperationUnfinished 03:50: shop 1.0.0 in environment test has an operation that has not ended: Deployment web: crashes\n",
		},
		{70, observed(nil, nil), true, ""},
	} {
		changes := journal.Compare(step.observed, start.Add(time.Duration(step.at)*time.Minute), 10*time.Minute)
		if diff := cmp.Diff(step.want, lines(changes)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if step.accepted {
			journal.Confirm(changes)
		}
	}
	if len(journal.Problems) > 0 {
		t.Errorf("left: %v", journal.Problems)
	}
}

// TestObjects returns the problem of each object of a check, and its end.
func TestObjects(t *testing.T) {
	journal := &notify.Journal{}
	at := func(objects ...string) notify.Observed {
		d := &schema.Diagnosis{}
		for _, object := range objects {
			d.Checks = append(d.Checks, schema.Check{Area: "registry", Name: "endpoints", Object: object, Result: schema.CheckProblem, Message: object + " does not answer"})
		}
		return notify.Observed{Diagnosis: d}
	}
	for i, step := range []struct {
		observed notify.Observed
		want     string
	}{
		{at("https://a"), "firing CheckFailed 03:00: https://a does not answer\n"},
		{at("https://a", "https://b"), "firing CheckFailed 03:00: https://b does not answer\n"},
		{at("https://b"), "resolved CheckFailed 03:00: https://a does not answer\n"},
	} {
		changes := journal.Compare(step.observed, start, time.Minute)
		if diff := cmp.Diff(step.want, lines(changes)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		journal.Confirm(changes)
	}
}

// TestUnread keeps the problems of checks that did not run.
func TestUnread(t *testing.T) {
	connection := schema.Check{Area: "cluster", Name: "connection", Result: schema.CheckOK}
	gone := schema.Check{Area: "cluster", Name: "connection", Result: schema.CheckProblem, Message: "no answer", Unread: true}
	store := schema.Check{Area: "host", Name: "store", Object: "shop-1.0.0", Result: schema.CheckProblem, Message: "shop is damaged"}
	endpoint := schema.Check{Area: "registry", Name: "endpoints", Object: "https://a", Result: schema.CheckProblem, Message: "a does not answer"}
	node := schema.Check{Area: "node", Name: "registry", Result: schema.CheckProblem, Message: "not configured"}
	unread := schema.Check{Area: "registry", Name: "endpoints", Result: schema.CheckSkipped, Message: "no permission", Unread: true}
	nothing := schema.Check{Area: "registry", Name: "endpoints", Result: schema.CheckSkipped, Message: "nothing is imported"}
	journal := &notify.Journal{}
	for i, step := range []struct {
		checks []schema.Check
		want   string
	}{
		{
			[]schema.Check{store, connection, endpoint, node},
			"firing CheckFailed 03:00: shop is damaged\nfiring CheckFailed 03:00: not configured\nfiring CheckFailed 03:00: a does not answer\n",
		},
		{[]schema.Check{gone}, "firing CheckFailed 03:00: no answer\nresolved CheckFailed 03:00: shop is damaged\n"},
		{[]schema.Check{connection, node, unread}, "resolved CheckFailed 03:00: no answer\n"},
		{[]schema.Check{connection, nothing}, "resolved CheckFailed 03:00: not configured\nresolved CheckFailed 03:00: a does not answer\n"},
	} {
		changes := journal.Compare(notify.Observed{Diagnosis: &schema.Diagnosis{Checks: step.checks}}, start, time.Minute)
		if diff := cmp.Diff(step.want, lines(changes)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		journal.Confirm(changes)
	}
}

func notification() *schema.Notification {
	problem := schema.Problem{Name: "CheckFailed", Subject: "host store", Summary: "the store is full", Hint: "remove versions", Since: start}
	ended := schema.Problem{Name: "DeploymentFailed", Subject: "shop", Environment: "prod", Namespace: "prod", Summary: "shop 1.0.0 has failed", Since: start}
	return &schema.Notification{Cluster: "https://10.0.0.1:6443", Host: "host1", Sent: start.Add(time.Hour), Problems: []schema.ReportedProblem{
		{Problem: problem, State: schema.ProblemFiring}, {Problem: ended, State: schema.ProblemResolved},
	}}
}

// TestSend posts by TLS, with the header of the site, and reports what a webhook answers without the address, which can be secret.
func TestSend(t *testing.T) {
	var body []byte
	var header http.Header
	status := http.StatusNoContent
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hook/topsecret" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		body, _ = io.ReadAll(r.Body)
		header = r.Header
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("no ", 10_000))
	}))
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	hook := &notify.Webhook{URL: server.URL + "/hook/topsecret", Header: http.Header{"Authorization": {"Bearer abc"}}, CA: pool}
	if err := hook.Send(t.Context(), notification()); err != nil {
		t.Fatal(err)
	}
	if header.Get("Authorization") != "Bearer abc" || header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", header)
	}
	var got schema.Notification
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(notification(), &got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, status = range []int{http.StatusMovedPermanently, http.StatusForbidden, http.StatusInternalServerError} {
		err := hook.Send(t.Context(), notification())
		if report.CodeOf(err) != report.Unavailable || len(report.Hints(err)) == 0 || strings.Contains(err.Error(), "topsecret") || len(err.Error()) > 2000 {
			t.Errorf("%d: %v, %q", status, err, report.Hints(err))
		}
	}
	stranger := &notify.Webhook{URL: hook.URL}
	if err := stranger.Send(t.Context(), notification()); report.CodeOf(err) != report.Unavailable || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("a certificate that is not trusted: %v", err)
	}
	for _, address := range []string{"", "topsecret", "ftp://host/topsecret", "https://", "https://%zz"} {
		if err := (&notify.Webhook{URL: address}).Send(t.Context(), notification()); report.CodeOf(err) != report.Usage || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestAlertmanager writes what receivers of Alertmanager read.
func TestAlertmanager(t *testing.T) {
	data, err := (&notify.Webhook{Format: notify.FormatAlertmanager}).Encode(notification())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version, Status string
		Alerts          []struct {
			Status              string
			Labels, Annotations map[string]string
			StartsAt, EndsAt    time.Time
			Fingerprint         string
		}
	}
	if err = json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	first, second := got.Alerts[0], got.Alerts[1]
	if got.Version != "4" || got.Status != "firing" || first.Status != "firing" || !first.EndsAt.IsZero() || second.Status != "resolved" ||
		!second.EndsAt.Equal(start.Add(time.Hour)) || !second.StartsAt.Equal(start) || first.Fingerprint == second.Fingerprint {
		t.Errorf("%s", data)
	}
	want := map[string]string{"alertname": "SolutionctlDeploymentFailed", "cluster": "https://10.0.0.1:6443", "environment": "prod", "namespace": "prod", "subject": "shop"}
	if diff := cmp.Diff(want, second.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"summary": "the store is full", "description": "remove versions"}, first.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// TestRecover reads the whole problems of a damaged record, and takes no other file for one.
func TestRecover(t *testing.T) {
	journal := &notify.Journal{}
	journal.Confirm(journal.Compare(observed(map[string]string{"a": "failed", "b": "failed"}, nil), start, 0))
	journal.Stamp = schema.NewStamp("notifications", "1.0.0")
	whole, err := schema.MarshalStored(&journal.Notifications)
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	second := strings.Index(text, `"DeploymentFailed/b`)
	for name, test := range map[string]struct {
		text string
		want int // problems; -1 for none of these records
	}{
		"whole":                   {text, 2},
		"cut at the end":          {text[:len(text)-4], 2},
		"cut in the second one":   {text[:second+40], 1},
		"cut in its name":         {text[:second+5], 1},
		"zeros at the end":        {text[:second+5] + strings.Repeat("\x00", 512), 1},
		"only zeros":              {strings.Repeat("\x00", 4096), 0},
		"empty":                   {"", 0},
		"another kind of problem": {strings.Replace(text, `"subject": "shop"`, `"subject": 5`, 1), 1},
		"under another name":      {strings.Replace(text, `"DeploymentFailed/b`, `"DeploymentFailed/c`, 1), 1},
		"no object of problems":   {`{"problems": []}`, 0},
		"of something else":       {"root:x:0:0:root:/root:/bin/sh\n", -1},
		"a list":                  {"[]", -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := -1
			if j := notify.Recover([]byte(test.text)); j != nil {
				got = len(j.Problems)
				for key, p := range j.Problems {
					if !p.Sent || p.Key() != key {
						t.Errorf("%s: %+v", key, p)
					}
				}
			}
			if got != test.want {
				t.Errorf("%d problems, want %d", got, test.want)
			}
		})
	}
}
