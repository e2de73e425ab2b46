package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/example-solution/api"
)

func environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// contract is how the operator's Deployment starts it.
var contract = environment(map[string]string{
	"WATCH_NAMESPACE": "shop", "POD_NAME": "example-solution-operator-1", "OPERATOR_NAME": "example-solution-operator",
})

func TestParse(t *testing.T) {
	got, err := parse([]string{"--config=/etc/config/operator.yaml"}, contract, os.Stderr)
	want := settings{"/etc/config/operator.yaml", "shop", "example-solution-operator", ":8080", ":8081"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestRunRefuses(t *testing.T) {
	invalid := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(invalid, []byte("kind: OperatorConfig\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		env  func(string) string
		want string
	}{
		"no namespace":   {nil, environment(map[string]string{"OPERATOR_NAME": "x"}), "WATCH_NAMESPACE"},
		"no name":        {nil, environment(map[string]string{"WATCH_NAMESPACE": "x"}), "OPERATOR_NAME"},
		"argument":       {[]string{"start"}, contract, `"start"`},
		"unknown flag":   {[]string{"--conf=x"}, contract, "conf"},
		"no config":      {[]string{"--config=/nowhere/operator.yaml"}, contract, "/nowhere/operator.yaml"},
		"invalid config": {[]string{"--config=" + invalid}, contract, invalid + ": want solutions.metalk8s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tt.args, tt.env, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

// TestNewManager puts all parts together; it needs no cluster until it is started.
func TestNewManager(t *testing.T) {
	s, err := parse(nil, contract, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newManager(&rest.Config{Host: "https://127.0.0.1:1"}, s)
	if err != nil {
		t.Fatal(err)
	}
	if !m.GetScheme().Recognizes(api.GroupVersion.WithKind("Website")) {
		t.Error("the scheme lacks Website")
	}
}

func TestHelp(t *testing.T) {
	var usage bytes.Buffer
	if _, err := parse([]string{"--help"}, contract, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v", err)
	}
	var got []string
	for line := range strings.Lines(usage.String()) {
		if name, ok := strings.CutPrefix(line, "  -"); ok {
			got = append(got, strings.Fields(name)[0])
		}
	}
	if diff := cmp.Diff(got, []string{"config", "health", "metrics"}); diff != "" {
		t.Errorf("flags (-got +want):\n%s", diff)
	}
}
