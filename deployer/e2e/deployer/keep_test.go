package deployer_test

import (
	"testing"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// TestDefinitionsOutliveTheirWebhook checks that after the removal of a version with its webhook, the objects that it converted can still
// be read, deleted and adopted.
func TestDefinitionsOutliveTheirWebhook(t *testing.T) {
	t.Parallel()
	m := &matrix{bed: newBed(t), count: 1}
	m.importing("1.0.0", content{})
	m.importing("1.1.0", content{Versions: "v1 v2", Conversion: "webhook"})
	m.begin("1.0.0", content{})
	m.activate("1.1.0", false)
	m.stored("v1", "v2")
	o := deployer.DeactivateOptions{Solution: m.Solution, Data: plan.KeepData}
	done, err := m.Deactivate(t.Context(), o)
	m.noticed(done, err, m.crdName()+" loses its webhook", "only version v2 is served")
	if m.find(services, m.Solution+"-system", "webhook") != nil {
		t.Fatal("the webhook is still there")
	}
	m.served("v2")
	m.stored("v2")
	m.same(m.read())
	if _, err = m.Deactivate(t.Context(), o); err != nil {
		t.Error("a second time:", err)
	}

	m.activate("1.1.0", false)
	m.served("v1", "v2")
	m.get(kube.GroupVersionKind{Group: m.Group, Version: "v1", Kind: "Clock"}, m.Env, "clock-00000")
}
