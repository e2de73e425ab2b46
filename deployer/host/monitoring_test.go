package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/deployer/metrics"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMonitoring(t *testing.T) {
	w := newWorld(t)
	own := ServeOptions{Store: w.path("store"), Listen: "10.0.0.1:5000", Now: w.Now}
	for name, wrong := range map[string]ServeOptions{
		"every address":      {Listen: ":5000"},
		"every IPv4 address": {Listen: "0.0.0.0:5000"},
		"loopback":           {Listen: "127.0.0.1:5000"},
		"a name":             {Listen: "host:5000"},
		"any port":           {Listen: "10.0.0.1:0"},
		"of one link":        {Listen: "[fe80::1%eth0]:5000"},
		"that of metrics":    {Listen: "10.0.0.1:5000", MetricsListen: "localhost:9100"},
	} {
		if text, err := wrong.Monitoring(); report.CodeOf(err) != report.Usage || text != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := own.Monitoring(); report.CodeOf(err) != report.NotFound {
		t.Errorf("before there is an authority: %v", err)
	}
	if _, err := openAuthority(own.Store, w.Now); err != nil {
		t.Fatal(err)
	}
	plain, given, beside := own, own, own
	plain.PlainHTTP = true
	given.Certificate, given.Key = "a.crt", "a.key"
	beside.MetricsListen = "10.0.0.1:5001"
	for name, test := range map[string]struct {
		o          ServeOptions
		has, lacks string
	}{
		"its own authority":     {own, "BEGIN CERTIFICATE", "scheme: http\n"},
		"not encrypted":         {plain, "scheme: http\n", "tlsConfig"},
		"of the user":           {given, "scheme: https\n", "BEGIN CERTIFICATE"},
		"an address of its own": {beside, "port: 5001", "scheme: https"},
	} {
		text, err := test.o.Monitoring()
		if err != nil || !strings.Contains(string(text), test.has) || strings.Contains(string(text), test.lacks) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// TestMonitored: alerts and dashboard ask for nothing that is not written.
func TestMonitored(t *testing.T) {
	w := newWorld(t)
	if _, err := w.do(w.archive("1.0.0")); err != nil {
		t.Fatal(err)
	}
	written := families(scrape(t, ServeOptions{Store: w.path("store"), Listen: "0.0.0.0:0", MaxTransfers: 1, Now: time.Now}))
	d := schema.DeploymentStatus{
		Drift: []schema.Change{}, Waiting: []schema.ObjectRef{{}}, Pending: &schema.PendingOperation{Operation: "add", Started: time.Unix(1, 0)},
	}
	var page metrics.Page
	survey.WriteMetrics(&page, &schema.Status{
		Solutions:    []schema.SolutionStatus{{Name: "shop", Active: "1.0.0", Deployment: &d}},
		Environments: []schema.EnvironmentStatus{{Name: "prod"}},
	}, time.Unix(1, 0))
	var text bytes.Buffer
	if _, err := page.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for name := range families(text.String()) {
		written[name] = true
	}
	asked := regexp.MustCompile(`solutionctl_[a-z_]+`).FindAllString(string(monitoring.Rules())+string(monitoring.Dashboard()), -1)
	if len(asked) < 20 {
		t.Errorf("only %q are asked for", asked)
	}
	for _, name := range asked {
		if !written[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("nobody writes %s", name)
		}
	}
}

// families are the names of those that have a series.
func families(page string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(page) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			name, _, _ = strings.Cut(name, "{")
			names[strings.TrimSuffix(name, "_bucket")] = true
		}
	}
	return names
}

// scrape serves, encrypted, until /metrics was read once after another request.
func scrape(t *testing.T, o ServeOptions) string {
	t.Helper()
	listening := make(chan string, 1)
	o.Sink = sinkFunc(func(e report.Event) {
		if e.Step == "listen" {
			listening <- e.Name
		}
	})
	o.Output, o.Errors = io.Discard, io.Discard
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, o) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var address string
	select {
	case address = <-listening:
	case err := <-ended:
		ended <- nil
		t.Fatalf("it does not serve: %v", err)
	}
	ca, err := os.ReadFile(AuthorityFile(o.Store))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	served, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	for _, path := range []string{"/v2/", "/metrics"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost:"+served.Port()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, answer.Status, err)
		}
	}
	return string(body)
}
