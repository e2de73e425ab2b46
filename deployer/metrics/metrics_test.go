package metrics_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solutionctl/solutionctl/deployer/metrics"
)

func Example() {
	var page metrics.Page
	family := page.Family("shop_orders_total", metrics.Counter, "Orders, by outcome.")
	family.Add(12, "outcome", "paid")
	family.Add(1, "outcome", "cancelled")
	page.Family("shop_open", metrics.Gauge, "Whether the shop is open.").Add(1)
	_, _ = page.WriteTo(os.Stdout)
	// Output:
	// # HELP shop_orders_total Orders, by outcome.
	// # TYPE shop_orders_total counter
	// shop_orders_total{outcome="paid"} 12
	// shop_orders_total{outcome="cancelled"} 1
	// # HELP shop_open Whether the shop is open.
	// # TYPE shop_open gauge
	// shop_open 1
}

// parse reads a page as Prometheus does, and returns its only family.
func parse(t *testing.T, page *metrics.Page) *dto.MetricFamily {
	t.Helper()
	var text bytes.Buffer
	if _, err := page.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text.String()))
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, %v in\n%s", len(families), err, &text)
	}
	for _, family := range families {
		return family
	}
	return nil
}

// TestValues: any number and any text arrive as they were.
func TestValues(t *testing.T) {
	for _, value := range []float64{0, 1, -1, 0.001, 1764000000, 1 << 53, 1e300, 5e-324, math.Inf(1), math.Inf(-1), math.NaN()} {
		var page metrics.Page
		page.Family("x", metrics.Gauge, "help").Add(value)
		got := parse(t, &page).GetMetric()[0].GetGauge().GetValue()
		if got != value && !(math.IsNaN(got) && math.IsNaN(value)) {
			t.Errorf("%v became %v", value, got)
		}
	}
	for _, text := range []string{"", "a b", `"`, `\`, `\n`, "\n", "\r\n\t\x00", "ü 世", "} 1\ny 2", "# HELP x"} {
		var page metrics.Page
		page.Family("x", metrics.Gauge, text+".").Add(1, "a", text, "b", text)
		family := parse(t, &page)
		for _, label := range family.GetMetric()[0].GetLabel() {
			if label.GetValue() != text {
				t.Errorf("label %q became %q", text, label.GetValue())
			}
		}
		if family.GetHelp() != text+"." {
			t.Errorf("help %q became %q", text, family.GetHelp())
		}
	}
	var page metrics.Page
	page.Family("x", metrics.Gauge, "help").Add(1, "a", "b\xffc")
	if got := parse(t, &page).GetMetric()[0].GetLabel()[0].GetValue(); got != "b\uFFFDc" {
		t.Errorf("what is no text became %q", got)
	}
}

func TestHistogram(t *testing.T) {
	labels := append(make([]string, 0, 8), "a", "b") // has room in which a bucket could write
	var page metrics.Page
	page.Family("x", metrics.Histogram, "help").Histogram([]float64{0.01, 1}, []uint64{3, 0, 2}, 7.5, labels...)
	m := parse(t, &page).GetMetric()
	if len(m) != 1 {
		t.Fatalf("%d metrics", len(m))
	}
	h := m[0].GetHistogram()
	got := fmt.Sprint(h.GetSampleCount(), h.GetSampleSum())
	for _, b := range h.GetBucket() {
		got += fmt.Sprint(" ", b.GetUpperBound(), ":", b.GetCumulativeCount())
	}
	if want := "5 7.5 0.01:3 1:3 +Inf:5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
