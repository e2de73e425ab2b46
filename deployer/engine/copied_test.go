package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestCopiedObject checks that a copied object with the label of a release is adopted only with --adopt.
func TestCopiedObject(t *testing.T) {
	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings%s}, data: {a: %s}}"
	w := newFixture(t)
	w.server.Put(t, fmt.Sprintf(settings, ", namespace: shop, labels: {"+schema.LabelRelease+": "+demo.ID()+"}", "theirs"))
	release := w.release("1.0.0", fmt.Sprintf(settings, "", "ours"))
	_, err := w.Plan(t.Context(), release, engine.PlanOptions{})
	w.failed(err, report.Conflict, "ConfigMap shop/settings exists and is not part of shop/demo", "--adopt")
	w.deploy(release, engine.PlanOptions{Adopt: true})
	w.same("there", w.everything(), []string{"ConfigMap settings [a:ours]"})
	w.deploy(w.release(""), engine.PlanOptions{})
	w.same("there", w.everything(), nil)
}

// TestCommonCause checks that a common cause of several errors is reported once.
func TestCommonCause(t *testing.T) {
	w := newFixture(t)
	refusal := apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.com": failed to call webhook: no endpoints`))
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/configmaps") {
			return false
		}
		clustertest.Fail(rw, refusal)
		return true
	}
	var documents []string
	for _, name := range []string{"a", "b", "c", "d"} {
		documents = append(documents, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}")
	}
	_, err := w.Plan(t.Context(), w.release("1.0.0", documents...), engine.PlanOptions{})
	w.failed(err, report.Unavailable, `admission webhook "deny.example.com" of the cluster does not work`, "; and 3 more objects for the same reason")
	if n := strings.Count(err.Error(), "deny.example.com"); n != 1 {
		t.Errorf("the webhook is named %d times: %v", n, err)
	}
}
