package engine_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPlanRefusesWhatCannotBeApplied checks new objects that the API server refuses to apply: a plan refuses them with the same error.
func TestPlanRefusesWhatCannotBeApplied(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	const container = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: $ns}, spec: {selector: {matchLabels: {a: b}},
template: {metadata: {labels: {a: b}}, spec: {containers: [CONTAINERS]}}}}`
	deployment := func(containers string) string { return strings.Replace(container, "CONTAINERS", containers, 1) }
	for name, document := range map[string]string{
		"an unknown field":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $ns}, dat: {a: b}}",
		"an unknown field in a list": deployment("{name: a, image: a, imag: a}"),
		"a number for a text":        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $ns}, data: {a: 1}}",
		"a text for a number":        deployment("{name: a, image: a, ports: [{containerPort: a}]}"),
		"a list for a map":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $ns}, data: [a]}",
		"a field in another case":    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $ns}, Data: {a: b}}",
		"an entry without its key":   deployment("{name: a, image: a, env: [{value: a}]}"),
		"a port without its key":     deployment("{name: a, image: a, ports: [{name: a}]}"),
		"a volume without its key":   deployment("{name: a, image: a}], volumes: [{emptyDir: {}}"),
		"a Secret without its key":   "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: $ns}, secrets: [{namespace: $ns}]}",
		"equal entries":              deployment("{name: a, image: a, env: [{name: a, value: a}, {name: a, value: b}]}"),
		"equal members of a set":     "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $ns, finalizers: [a.example/b, a.example/b]}}",
		"null in a list":             deployment("null"),
		"not valid":                  deployment("{name: A_, image: a}"),
		"no quantity":                deployment("{name: a, image: a, resources: {limits: {cpu: much}}}"),
	} {
		t.Run(name, func(t *testing.T) {
			r := b.release("1.0.0", document)
			_, applied := b.Cluster.Create(t.Context(), r.Objects[0], cluster.WriteOptions{})
			_, planned := b.Plan(t.Context(), r, engine.PlanOptions{})
			if applied == nil || planned == nil || !strings.Contains(planned.Error(), applied.Error()) || report.CodeOf(planned) != report.CodeOf(applied) {
				t.Errorf("applied: %v\nplanned: %v", applied, planned)
			}
		})
	}
}
