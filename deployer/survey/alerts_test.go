package survey_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	monitoring "github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	prometheusKind = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: prometheuses.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: Prometheus, plural: prometheuses},
  versions: [{name: v1, served: true, storage: true}]}}`
	monitoringNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}"
	kps                 = "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}}"
	tenants             = "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: tenants, namespace: monitoring}}"
	tenantsService      = "{apiVersion: v1, kind: Service, metadata: {name: tenants, namespace: monitoring}, spec: {selector: {prometheus: tenants}, ports: [{name: web, port: 9090}]}}"
)

// alerting is a cluster with the environments site and calm, Solution shop in the former, and the answers of Services
// by name.
func alerting(t *testing.T, answers map[string]http.HandlerFunc, documents ...string) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t, append([]string{monitoringNamespace, prometheusKind}, documents...)...)
	b.Namespace("calm", "calm")
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Server.Answer = proxied(answers)
	return b
}

// proxied answers for the Services behind an API server.
func proxied(answers map[string]http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		rest, is := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/monitoring/services/http:")
		name, path, _ := strings.Cut(rest, ":9090/proxy")
		switch answer := answers[name]; {
		case !is:
			return false
		case answer == nil:
			clustertest.Fail(w, apierrors.NewServiceUnavailable("no endpoints available for service "+name))
		case path != "/api/v1/alerts":
			http.NotFound(w, r)
		default:
			answer(w, r)
		}
		return true
	}
}

// answers serves alerts: each is its state, seconds since it began, and labels as in PromQL.
func answers(alerts ...string) http.HandlerFunc {
	var list []string
	for _, text := range alerts {
		var state string
		var second int
		var labels string
		if _, err := fmt.Sscanf(text, "%s %d %s", &state, &second, &labels); err != nil {
			panic(err)
		}
		var pairs []string
		for pair := range strings.SplitSeq(labels, ",") {
			name, value, _ := strings.Cut(pair, "=")
			pairs = append(pairs, fmt.Sprintf("%q:%q", name, value))
		}
		list = append(list, fmt.Sprintf(`{"state":%q,"activeAt":"2026-11-23T10:00:%02d+01:00","labels":{%s},"annotations":{"summary":"so it is"}}`,
			state, second, strings.Join(pairs, ",")))
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"alerts":[%s]}}`, strings.Join(list, ","))
	}
}

// TestAlerts: which alerts of a cluster concern Solutions, environments or solutionctl.
func TestAlerts(t *testing.T) {
	b := alerting(t, map[string]http.HandlerFunc{
		"tenants": answers("pending 30 alertname=Slow,severity=warning,namespace=site,environment=site,solution=shop"),
		"prometheus-operated": answers(
			"firing 20 alertname=Slow,severity=warning,namespace=site,environment=site,solution=shop",
			"firing 10 alertname=Down,severity=critical,namespace=site,environment=site,solution=shop",
			"firing 12 alertname=Elsewhere,namespace=monitoring,environment=site,solution=shop",
			"firing 13 alertname=KubePodCrashLooping,severity=warning,namespace=site",
			"firing 14 alertname=Everywhere,severity=info,solution=shop",
			"firing 15 alertname=SolutionctlDrift,severity=warning,namespace=monitoring,environment=site,environment_namespace=site,solution=shop",
			"firing 16 alertname=SolutionctlRegistryDown,severity=critical,namespace=site",
			"firing 17 alertname=Watchdog,severity=none",
			"firing 18 alertname=Theirs,namespace=kube-system,solution=unknown",
			"firing 19 alertname=Mistaken,environment=nowhere,namespace=nowhere",
		),
	}, kps, tenants, tenantsService)
	for _, test := range []struct {
		o    survey.AlertOptions
		want []string
	}{
		{survey.AlertOptions{}, []string{
			"firing Down site/shop in site", "firing SolutionctlRegistryDown /", "firing KubePodCrashLooping site/ in site", "firing SolutionctlDrift site/shop in site",
			"firing Slow site/shop in site", "firing Everywhere /shop", "firing Elsewhere site/shop",
		}},
		{survey.AlertOptions{Environment: "site", Solution: "shop"}, []string{
			"firing Down site/shop in site", "firing SolutionctlDrift site/shop in site", "firing Slow site/shop in site", "firing Elsewhere site/shop",
		}},
		{survey.AlertOptions{Solution: "shop", Environment: "calm"}, nil},
		{survey.AlertOptions{Environment: "calm"}, nil},
	} {
		list, err := b.Survey.Alerts(t.Context(), test.o)
		if err != nil {
			t.Fatal(err)
		}
		deployertest.Valid(t, "alerts", list)
		var got []string
		for _, a := range list.Alerts {
			line := fmt.Sprintf("%s %s %s/%s", a.State, a.Name, a.Environment, a.Solution)
			if a.Namespace != "" {
				line += " in " + a.Namespace
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test.o, diff)
		}
		if want := []string{"Prometheus monitoring/kps", "Prometheus monitoring/tenants"}; !slices.Equal(list.Asked, want) || len(list.Problems)+len(list.Unseen) > 0 {
			t.Errorf("asked %q, %q, %v", list.Asked, list.Problems, list.Unseen)
		}
	}
	list, err := b.Survey.Alerts(t.Context(), survey.AlertOptions{})
	if err != nil || list.Firing() != 7 || len(list.In("site", "")) != 5 || len(list.In("", "shop")) != 5 {
		t.Errorf("%d fire, %v", list.Firing(), err)
	}
	if first := list.Alerts[0]; first.Summary != "so it is" || first.Severity != "critical" || first.Since.Format(time.RFC3339) != "2026-11-23T09:00:10Z" {
		t.Errorf("%+v", first)
	}
	_, err = b.Survey.Alerts(t.Context(), survey.AlertOptions{Environment: "nowhere"})
	deployertest.Refused(t, err, report.NotFound, "nowhere")
}

// TestNoAnswer: the error names the reason why no Prometheus answers, and quotes no page of another server.
func TestNoAnswer(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>\x1b[31m") }
	for name, test := range map[string]struct {
		documents []string
		answer    http.HandlerFunc
		may       func(a authorization.ResourceAttributes) bool
		code      report.Code
		words     []string
	}{
		"none is known":      {code: report.NotFound, words: []string{"no Prometheus of this cluster is known", "solutionctl deploy monitoring config --prometheus http://SERVICE.NAMESPACE:9090"}},
		"it has no pods":     {documents: []string{kps}, code: report.Unavailable, words: []string{"Prometheus monitoring/kps", "status 503", "no endpoints"}},
		"it is another page": {documents: []string{kps}, answer: page, code: report.Unavailable, words: []string{"not that of a Prometheus"}},
		"it wants a token": {
			documents: []string{kps}, answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			code: report.Unavailable, words: []string{"status 403"},
		},
		"it never ends": {
			documents: []string{kps}, answer: func(w http.ResponseWriter, _ *http.Request) {
				for range 5 << 10 {
					if _, err := w.Write(make([]byte, 1<<10)); err != nil {
						return
					}
				}
			}, code: report.Unavailable, words: []string{"more than 4194304 bytes"},
		},
		"it does not answer": {
			documents: []string{kps}, answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			code: report.Unavailable, words: []string{"does not answer within 2s"},
		},
		"the user lacks the right": {
			documents: []string{kps}, may: func(a authorization.ResourceAttributes) bool { return a.Verb != "*" && a.Subresource != "proxy" },
			code: report.Forbidden, words: []string{
				"in namespace monitoring:", `resources: ["services/proxy"]`, `resourceNames: ["http:prometheus-operated:9090"]`, `verbs: ["get"]`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := alerting(t, map[string]http.HandlerFunc{"prometheus-operated": test.answer}, test.documents...)
			if test.answer == nil {
				b.Server.Answer = proxied(nil)
			}
			b.Server.May = test.may
			list, err := b.Connect().Survey.Alerts(t.Context(), survey.AlertOptions{})
			deployertest.Refused(t, err, test.code, test.words...)
			if list != nil || strings.Contains(fmt.Sprint(err), "\x1b") {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// TestSomeAnswer: the alerts of one Prometheus are shown, with a problem for another one that does not answer.
func TestSomeAnswer(t *testing.T) {
	b := alerting(t, map[string]http.HandlerFunc{"tenants": answers("firing 1 alertname=Down,namespace=site")}, kps, tenants, tenantsService)
	list, err := b.Survey.Alerts(t.Context(), survey.AlertOptions{})
	if err != nil || len(list.Alerts) != 1 || len(list.Problems) != 1 || !strings.Contains(list.Problems[0], "Prometheus monitoring/kps are not known") {
		t.Fatalf("%+v, %v", list, err)
	}
	b.Server.May = func(a authorization.ResourceAttributes) bool {
		return a.Verb != "*" && (a.Subresource != "proxy" || a.Name == "http:tenants:9090")
	}
	if list, err = b.Connect().Survey.Alerts(t.Context(), survey.AlertOptions{}); err != nil || len(list.Unseen) != 1 || !strings.Contains(list.Unseen[0].Rules, "http:prometheus-operated:9090") {
		t.Errorf("%+v, %v", list, err)
	}
	deployertest.Valid(t, "alerts", list)
}

// TestRecordedPrometheus: only the recorded Prometheus is asked. Permissions in its namespace are sufficient for that.
func TestRecordedPrometheus(t *testing.T) {
	b := alerting(t, map[string]http.HandlerFunc{"mine": answers("firing 1 alertname=Down,namespace=site", "firing 2 alertname=Down,namespace=calm")}, kps)
	answer := b.Server.Answer
	if _, err := b.ConfigureMonitoring(t.Context(), monitoring.Options{Prometheus: []string{"http://mine.monitoring.svc:9090"}}); err != nil {
		t.Fatal(err)
	}
	b.Only("site", func(a authorization.ResourceAttributes) bool {
		return a.Resource == "configmaps" && a.Name == "monitoring" || a.Resource == "services" && (a.Name == "http:mine:9090" || strings.HasPrefix(a.Name, "http:mine"))
	})
	refuse := b.Server.Answer
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r) || answer(w, r) }
	user := b.Connect()
	list, err := user.Survey.Alerts(t.Context(), survey.AlertOptions{Environment: "site"})
	if err != nil || len(list.Alerts) != 1 || !slices.Equal(list.Asked, []string{"http://mine.monitoring:9090"}) {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = user.Survey.Alerts(t.Context(), survey.AlertOptions{})
	deployertest.Refused(t, err, report.Forbidden, "deploy env show")
}

// TestManyServers: the list reports servers that are not asked.
func TestManyServers(t *testing.T) {
	var servers []string
	for i := range 34 {
		servers = append(servers, strings.ReplaceAll(kps, "name: kps", fmt.Sprintf("name: kps%02d", i)))
	}
	b := alerting(t, map[string]http.HandlerFunc{"prometheus-operated": answers("firing 1 alertname=Down,namespace=site")}, servers...)
	list, err := b.Survey.Alerts(t.Context(), survey.AlertOptions{})
	problems := []string{"the alerts of 2 further Prometheus servers are not known: only the first 32 are asked"}
	if err != nil || len(list.Alerts) != 1 || len(list.Asked) != 32 || !slices.Equal(list.Problems, problems) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestManyAlerts: the list is bounded and reports that it is incomplete.
func TestManyAlerts(t *testing.T) {
	const long = 5000
	many := make([]string, 1100)
	for i := range many {
		many[i] = fmt.Sprintf("firing 1 alertname=A%d,namespace=site,text=%s", i, strings.Repeat("é", long*min(1, max(0, 2-i))/2))
	}
	b := alerting(t, map[string]http.HandlerFunc{"prometheus-operated": answers(many...)}, kps)
	list, err := b.Survey.Alerts(t.Context(), survey.AlertOptions{})
	if err != nil || len(list.Alerts) != 1000 || !slices.Equal(list.Problems, []string{"100 more alerts are not shown"}) {
		t.Fatalf("%d, %v", len(list.Alerts), err)
	}
	for _, a := range list.Alerts {
		if len(a.Labels["text"]) > 1010 {
			t.Errorf("a label has %d bytes", len(a.Labels["text"]))
		}
	}
	var none *schema.AlertList
	if none.Firing() != 0 {
		t.Error("nothing fires where nobody was asked")
	}
}
