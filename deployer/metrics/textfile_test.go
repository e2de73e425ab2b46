package metrics_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solutionctl/solutionctl/deployer/metrics"
)

// TestTextfile: the results of the last successful run remain; the end of the last run is always written, once.
func TestTextfile(t *testing.T) {
	file := metrics.Textfile{Name: filepath.Join(t.TempDir(), "x.prom"), Run: "x_run"}
	succeed := func(value float64, at int64) {
		t.Helper()
		var page metrics.Page
		page.Family("x", metrics.Gauge, "help").Add(value)
		if err := file.Succeed(&page, time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(at int64) {
		t.Helper()
		if err := file.Fail(time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file.Name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want string) {
		t.Helper()
		data, err := os.ReadFile(file.Name)
		if err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if _, err = parser.TextToMetricFamilies(bytes.NewReader(data)); err != nil {
			t.Error(err)
		}
		var values []string
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "#") {
				values = append(values, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(values, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if info, err := os.Stat(file.Name); err != nil || info.Mode().Perm() != 0o644 && runtime.GOOS != "windows" {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	fail(1) // before any good run
	want("x_run_success 0, x_run_timestamp_seconds 1")
	succeed(7, 2)
	want("x 7, x_run_success 1, x_run_timestamp_seconds 2")
	fail(3)
	fail(4)
	want("x 7, x_run_success 0, x_run_timestamp_seconds 4")
	succeed(8, 5)
	want("x 8, x_run_success 1, x_run_timestamp_seconds 5")
	put("y 1\n") // of another program, or incomplete
	fail(6)
	want("x_run_success 0, x_run_timestamp_seconds 6")
	succeed(9, 7)
	if err := os.Rename(file.Name, file.Name+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file.Name+".real", file.Name); err != nil {
		t.Skip(err)
	}
	fail(8) // the target of a link is neither kept nor written
	want("x_run_success 0, x_run_timestamp_seconds 8")
	file.Name += ".real"
	want("x 9, x_run_success 1, x_run_timestamp_seconds 7")
	file.Name = filepath.Join(t.TempDir(), "none", "x.prom")
	if err := file.Fail(time.Unix(9, 0)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
