package prometheus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/prometheus"
)

// readAlerts parses an answer of a Prometheus, as one line for each alert.
func readAlerts(answer string) (lines []string, err error) {
	for a, err := range prometheus.Alerts([]byte(answer)) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, fmt.Sprint(a.State, " ", a.Labels["alertname"], " ", a.Since.UTC().Format(time.RFC3339), " ", a.Annotations["summary"]))
	}
	return lines, nil
}

func answer(alerts ...string) string {
	return `{"status":"success","data":{"alerts":[` + strings.Join(alerts, ",") + `]}}`
}

func TestAlerts(t *testing.T) {
	const fires = `{"labels":{"alertname":"Down"},"annotations":{"summary":"it is"},"state":"firing","activeAt":"2026-11-23T10:00:00.5Z","value":"1e+00"}`
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"l%d":""`, i)
	}
	for name, test := range map[string]struct {
		answer string
		want   []string
		wrong  string
	}{
		"none":                  {answer: answer()},
		"one":                   {answer: answer(fires), want: []string{"firing Down 2026-11-23T10:00:00Z it is"}},
		"a state that is newer": {answer: answer(`{"state":"unknown"}`, fires), want: []string{"firing Down 2026-11-23T10:00:00Z it is"}},
		"a field that is newer": {answer: answer(strings.Replace(fires, `"value"`, `"keepFiringSince"`, 1)), want: []string{"firing Down 2026-11-23T10:00:00Z it is"}},
		"status comes last":     {answer: `{"data":{"alerts":[]},"status":"success"}`},
		"nothing":               {wrong: "not that of a Prometheus"},
		"a page":                {answer: "<html>", wrong: "not that of a Prometheus"},
		"an error":              {answer: `{"status":"error","error":"x"}`, wrong: "not that of a Prometheus"},
		"no alerts":             {answer: `{"status":"success","data":{}}`, wrong: "no list of alerts"},
		"an object of alerts":   {answer: `{"status":"success","data":{"alerts":{}}}`, wrong: "no list of alerts"},
		"cut off":               {answer: answer(fires)[:60], wrong: "not that of a Prometheus"},
		"a number for an alert": {answer: answer(fires, "5"), want: []string{"firing Down 2026-11-23T10:00:00Z it is"}, wrong: "not that of a Prometheus"},
		"a number for a label":  {answer: answer(`{"labels":{"a":5}}`), wrong: "not that of a Prometheus"},
		"labels in a list":      {answer: answer(`{"labels":["a"]}`), wrong: "labels are not an object"},
		"no time":               {answer: answer(`{"activeAt":"yesterday"}`), wrong: "not that of a Prometheus"},
		"too many labels":       {answer: answer(`{"labels":{` + strings.Join(many, ",") + `}}`), wrong: "more than 100 labels"},
		"something after it":    {answer: answer() + "{}", wrong: "not that of a Prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAlerts(test.answer)
			if fmt.Sprint(got) != fmt.Sprint(test.want) || (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// FuzzAlerts: reading always ends, and each alert is firing or pending.
func FuzzAlerts(f *testing.F) {
	f.Add(answer(`{"labels":{"alertname":"A"},"state":"pending","activeAt":"2026-11-23T10:00:00Z"}`))
	f.Add(answer(`{"labels":null,"annotations":[]}`))
	f.Add(`{"status":"success","data":{"alerts":[{"labels":{"a":"b","a":"c"}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for a, err := range prometheus.Alerts([]byte(text)) {
			if err == nil && (a.State != "firing" && a.State != "pending" || len(a.Labels) > 100) {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestServiceOf(t *testing.T) {
	const (
		stack = `{metadata: {name: kps-prometheus, namespace: monitoring}, spec: {selector: {app.kubernetes.io/name: prometheus, operator.prometheus.io/name: kps},
			ports: [{name: reloader-web, port: 8080, targetPort: reloader-web}, {name: http-web, port: 80, targetPort: 9090}]}}`
		older     = `{metadata: {name: older, namespace: monitoring}, spec: {selector: {prometheus: kps}, ports: [{name: web, port: 9091}]}}`
		neighbour = `{metadata: {name: neighbour, namespace: monitoring}, spec: {selector: {prometheus: other}, ports: [{name: web, port: 9092}]}}`
		operated  = `{metadata: {name: prometheus-operated, namespace: monitoring}, spec: {clusterIP: None, selector: {app.kubernetes.io/name: prometheus}, ports: [{name: web, port: 9090}]}}`
		sidecar   = `{metadata: {name: sidecar, namespace: monitoring}, spec: {selector: {prometheus: kps}, ports: [{name: grpc, port: 10901}]}}`
		everyone  = `{metadata: {name: everyone, namespace: monitoring}, spec: {ports: [{name: web, port: 9090}]}}`
		shaped    = `{metadata: {name: shaped, namespace: monitoring}, spec: {selector: 5, ports: {a: b}}}`
	)
	for name, test := range map[string]struct {
		kind, spec string
		services   []string
		want       string
	}{
		"the operator's own":              {services: []string{operated, neighbour, sidecar, everyone, shaped}, want: "http://prometheus-operated.monitoring:9090"},
		"nothing can be listed":           {want: "http://prometheus-operated.monitoring:9090"},
		"as kube-prometheus-stack has it": {services: []string{operated, stack}, want: "http://kps-prometheus.monitoring:80"},
		"as older ones have it":           {services: []string{neighbour, older}, want: "http://older.monitoring:9091"},
		"another governing Service":       {spec: "serviceName: mine", want: "http://mine.monitoring:9090"},
		"behind a path":                   {spec: "routePrefix: /prometheus/", want: "http://prometheus-operated.monitoring:9090/prometheus"},
		"behind no path":                  {spec: "routePrefix: /", want: "http://prometheus-operated.monitoring:9090"},
		"with TLS":                        {spec: "web: {tlsConfig: {cert: {}}}", want: "https://prometheus-operated.monitoring:9090"},
		"a ruler":                         {kind: "ThanosRuler", services: []string{operated, older}, want: "http://thanos-ruler-operated.monitoring:10902"},
		"labels that were given to its pods": {
			spec: "podMetadata: {labels: {app: kps}}", services: []string{strings.Replace(older, "prometheus: kps", "app: kps", 1)}, want: "http://older.monitoring:9091",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "Prometheus"
			if test.kind != "" {
				kind = test.kind
			}
			var services []*unstructured.Unstructured
			for _, text := range test.services {
				o := &unstructured.Unstructured{}
				data, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Service, " + text[1:]))
				if err == nil {
					err = o.UnmarshalJSON(data)
				}
				if err != nil {
					t.Fatal(err)
				}
				services = append(services, o)
			}
			if got := prometheus.ServiceOf(server(t, kind, "kps", test.spec), services).String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if prometheus.HasAlerts(server(t, "PrometheusAgent", "a", "")) {
		t.Error("an agent evaluates no rules")
	}
	escaping := prometheus.ServiceOf(server(t, "Prometheus", "kps", "routePrefix: /../../secrets"), nil)
	if escaping.IsValid() {
		t.Errorf("%s leads out of the Service", escaping)
	}
}
