package survey_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metrics"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
)

var looked = time.Unix(1764000000, 0)

// numbers are the series of a cluster, by name and labels as the text has them.
func numbers(b *deployertest.Bed, drift bool) (series map[string]string, text string) {
	b.Helper()
	status, err := b.Survey.Status(b.Context(), survey.StatusOptions{Drift: drift})
	if err != nil {
		b.Fatal(err)
	}
	var page metrics.Page
	survey.WriteMetrics(&page, status, looked)
	var out bytes.Buffer
	if _, err = page.WriteTo(&out); err != nil {
		b.Fatal(err)
	}
	text = out.String()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err = parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		b.Fatalf("%v in\n%s", err, text)
	}
	series = map[string]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		name := strings.TrimPrefix(line[:at], "solutionctl_")
		if _, twice := series[name]; twice {
			b.Errorf("%s is there twice", name)
		}
		series[name] = strings.TrimSpace(line[at:])
	}
	return series, text
}

// killed makes the verbs lose the API server at the first Deployment, so that they can write nothing more, as when the
// program is killed. back restores the server.
func killed(b *deployertest.Bed) (back func()) {
	var armed, dead atomic.Bool
	armed.Store(true)
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if armed.Load() && r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && r.URL.Query().Get("dryRun") == "" {
			dead.Store(true)
		}
		if dead.Load() {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	return func() {
		armed.Store(false)
		dead.Store(false)
	}
}

// TestMetrics: what happens to a Solution shows in numbers. A row lists series with their values; "" is none.
func TestMetrics(t *testing.T) {
	const here = `{environment="site",environment_namespace="site",solution="shop"`
	const cluster = `{environment="",environment_namespace="",solution="shop"`
	const add = "pending_operation_start_timestamp_seconds" + here + `,operation="add"}`
	monitor := deployertest.Content{Files: map[string]string{
		"monitoring/monitor.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: shop}\nspec: {selector: {}, endpoints: []}\n",
	}}
	for _, test := range []struct {
		name  string
		bed   func(*deployertest.Bed)
		drift bool
		want  map[string]string
	}{
		{"nothing", func(*deployertest.Bed) {}, true, map[string]string{
			"status_timestamp_seconds": "1764000000", "problems": "0", `environment_ready{environment="site"}`: "1", "deployment_ready" + here + "}": "",
		}},
		{"imported twice, active and deployed", func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", deployertest.Content{})
			b.Imported(shop, "1.1.0", deployertest.Content{})
		}, true, map[string]string{
			`imported_archives{solution="shop"}`: "2", `active_version_info{solution="shop",version="1.0.0"}`: "1",
			"deployment_ready" + here + "}": "1", "deployment_ready" + cluster + "}": "1", add: "", "deployment_waiting_objects" + here + "}": "",
			"deployment_info" + here + `,version="1.0.0",wanted="1.0.0",health="ready"}`: "1", "deployment_drifted_objects" + here + "}": "0",
		}},
		{"drift is not requested", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", deployertest.Content{}) }, false, map[string]string{
			"deployment_ready" + here + "}": "1", "deployment_drifted_objects" + here + "}": "",
		}},
		{"two objects were changed", func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", deployertest.Content{})
			edit(b, "ConfigMap", site, "shop-operator-config", "changed", "data", "operator.yaml")
			b.Deleted("Role", site, "shop-operator")
		}, true, map[string]string{
			"deployment_drifted_objects" + here + "}": "2", "deployment_ready" + here + "}": "0", `environment_ready{environment="site"}`: "0",
			"deployment_ready" + cluster + "}": "1",
		}},
		{"the program was killed", func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{})
			back := killed(b)
			if _, err := b.Add(b.Context(), deployer.AddOptions{Environment: site, Solution: shop}); err == nil {
				b.Fatal("it was not killed")
			}
			back()
		}, true, map[string]string{
			add: "*", "deployment_ready" + here + "}": "0", "deployment_drifted_objects" + here + "}": "",
		}},
		{"the kind of an object is not there", func(b *deployertest.Bed) { b.Added(shop, "1.0.0", monitor) }, true, map[string]string{
			"deployment_waiting_objects" + here + "}": "1", "deployment_ready" + here + "}": "1",
		}},
		{"it is asked for, and not there", ask("7.0.0"), true, map[string]string{
			"deployment_info" + here + `,version="",wanted="7.0.0",health="missing"}`: "1", `environment_ready{environment="site"}`: "0",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			test.bed(b)
			series, text := numbers(b, test.drift)
			for name, want := range test.want {
				if got, found := series[name]; got != want && (want != "*" || !found) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// BenchmarkMetrics writes the metrics of 200 environments with 5 Solutions each, and reports the number of series.
func BenchmarkMetrics(b *testing.B) {
	bed := deployertest.New(b)
	for i := range 5 {
		bed.Activated(fmt.Sprint("shop", i), "1.0.0", deployertest.Content{})
	}
	for i := range 200 {
		environment := fmt.Sprint("env", i)
		bed.Namespace(environment, environment)
		for j := range 5 {
			o := deployer.AddOptions{Environment: environment, Solution: fmt.Sprint("shop", j), Options: plan.Options{NoWait: true}}
			if _, err := bed.Add(b.Context(), o); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, drift := range []bool{false, true} {
		b.Run(fmt.Sprintf("drift=%t", drift), func(b *testing.B) {
			series := 0
			for b.Loop() {
				found, _ := numbers(bed, drift)
				series = len(found)
			}
			b.ReportMetric(float64(series), "series")
		})
	}
}
