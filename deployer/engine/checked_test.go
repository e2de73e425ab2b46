package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestCheckedBeforeCreation checks how a plan asks whether new objects could be created: as a whole, or by an apply where that could differ.
func TestCheckedBeforeCreation(t *testing.T) {
	const whole, applied = "POST", "PATCH"
	for name, test := range map[string]struct{ document, want string }{
		"no list":             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}", whole},
		"a list of one":       {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1}]}}", whole},
		"a list of two":       {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1}, {port: 2}]}}", applied},
		"a list of two below": {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1, more: [1, 2]}]}}", applied},
		"Secrets":             {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: b}]}", applied},
		"null":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: null}", applied},
		"null in a list":      {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [null]}}", applied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.server.Requests()
			if _, err := w.Plan(t.Context(), w.release("1.0.0", test.document), engine.PlanOptions{}); err != nil {
				t.Fatal(err)
			}
			requests := slices.DeleteFunc(w.server.Requests(), func(r string) bool { return !strings.HasSuffix(r, "(dry run)") })
			if len(requests) != 1 || !strings.HasPrefix(requests[0], test.want+" ") {
				t.Errorf("got %q, want one %s", requests, test.want)
			}
		})
	}
}

// TestRefusedAsAWhole checks that an object that the server refuses as a whole is checked as it would be applied: the answer to that counts.
func TestRefusedAsAWhole(t *testing.T) {
	const document = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}"
	for name, test := range map[string]struct {
		whole *apierrors.StatusError
		code  report.Code
		asked []string
	}{
		"not valid":    {apierrors.NewBadRequest("unknown field"), "", []string{"POST", "PATCH"}},
		"no namespace": {apierrors.NewNotFound(kube.GroupResource{Resource: "namespaces"}, "shop"), report.NotFound, []string{"POST"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			var asked []string
			w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("dryRun") == "" {
					return false
				}
				asked = append(asked, r.Method)
				if r.Method == http.MethodPost {
					clustertest.Fail(rw, test.whole)
				}
				return r.Method == http.MethodPost
			}
			_, err := w.Plan(t.Context(), w.release("1.0.0", document), engine.PlanOptions{})
			if report.CodeOf(err) != test.code || !slices.Equal(asked, test.asked) {
				t.Errorf("%v; asked %q, want %q", err, asked, test.asked)
			}
		})
	}
}
