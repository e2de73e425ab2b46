package schema_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestParsePrometheusService(t *testing.T) {
	for text, want := range map[string]string{
		"http://kps.monitoring:9090":                            "http://kps.monitoring:9090",
		"http://kps.monitoring.svc:9090/":                       "http://kps.monitoring:9090",
		"https://kps.monitoring.svc.cluster.local/a/prometheus": "https://kps.monitoring:443/a/prometheus",
		"http://kps.monitoring":                                 "http://kps.monitoring:80",
		"kps.monitoring:9090":                                   "",
		"http://kps:9090":                                       "",
		"http://prometheus.example.com:9090":                    "",
		"http://10.96.0.5:9090":                                 "",
		"http://user:secret@kps.monitoring:9090":                "",
		"http://kps.monitoring:9090/?a=b":                       "",
		"http://kps.monitoring:9090/#a":                         "",
		"http://kps.monitoring:9090/../secrets":                 "",
		"http://kps.monitoring:9090/a%2fb/..":                   "",
		"http://kps.monitoring:0":                               "",
		"http://kps.monitoring:65536":                           "",
		"http://KPS.monitoring:9090":                            "",
		"ftp://kps.monitoring:9090":                             "",
		"http://[::1]:9090":                                     "",
		"":                                                      "",
	} {
		got, err := schema.ParsePrometheusService(text)
		if want == "" {
			if report.CodeOf(err) != report.Usage || strings.Contains(err.Error(), "secret@") {
				t.Errorf("%q: got %s, %v", text, got, err)
			}
			continue
		}
		if err != nil || got.String() != want || !got.IsValid() {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}
