package engine_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestConditions checks that a release is ready only when its objects meet its conditions.
func TestConditions(t *testing.T) {
	const phase = `object.status.phase == "Baked"`
	baked := func(w *fixture) { w.edit("Pizza", "margherita", "Baked", "status", "phase") }
	burnt := func(w *fixture) { w.edit("Pizza", "margherita", "Burnt", "status", "phase") }
	for name, test := range map[string]struct {
		ready     schema.Readiness
		meanwhile func(*fixture) // as soon as it is watched
		says      []string       // when it does not become ready
	}{
		"is met later": {schema.Readiness{GVK: "example.com/v1/Pizza", Name: "margherita", CEL: phase}, baked, nil},
		"of all":       {schema.Readiness{GVK: "example.com/v1/Pizza", Name: "*", CEL: phase}, baked, nil},
		"is not met": {
			schema.Readiness{GVK: "example.com/v1/Pizza", CEL: phase},
			burnt,
			[]string{"Pizza shop/margherita", "does not meet " + phase, "1 of 1 object did not become ready"},
		},
		"no status": {
			schema.Readiness{GVK: "example.com/v1/Pizza", CEL: phase}, nil, []string{"does not meet " + phase + ": no such key: status"},
		},
		"of what is ready as soon as it exists": {
			schema.Readiness{GVK: "v1/ConfigMap", Name: "settings", CEL: `object.data.color == "none"`},
			nil,
			[]string{"ConfigMap shop/settings", `does not meet object.data.color == "none"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, definition)
			r := w.release("1.0.0", pizza, settings)
			r.Ready = []schema.Readiness{test.ready}
			plan, err := w.Plan(t.Context(), r, engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("watch") != "" {
					if w.server.Answer = nil; test.meanwhile != nil {
						test.meanwhile(w)
					}
				}
				return false
			}
			if test.says == nil {
				if err := w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Minute}); err != nil {
					t.Fatal(err)
				}
				w.same("record", w.record(), []string{"current 1 add done 1.0.0"})
				return
			}
			w.failed(w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Second}), report.Timeout, test.says...)
			w.same("record", w.record(), []string{"pending 1 add pending 1.0.0"})
		})
	}
}

// TestImpossibleConditions checks that impossible conditions are refused before any change.
func TestImpossibleConditions(t *testing.T) {
	for name, test := range map[string]struct {
		ready schema.Readiness
		says  string
	}{
		"syntax":        {schema.Readiness{GVK: "v1/ConfigMap", CEL: "object.data =="}, "readiness of v1/ConfigMap *: "},
		"no boolean":    {schema.Readiness{GVK: "v1/ConfigMap", CEL: "1 + 1"}, "it yields int and not a boolean"},
		"other name":    {schema.Readiness{GVK: "v1/ConfigMap", Name: "setting", CEL: "true"}, "readiness of v1/ConfigMap setting: no such object is applied"},
		"other version": {schema.Readiness{GVK: "v2/ConfigMap", CEL: "true"}, "no such object is applied"},
		"other group":   {schema.Readiness{GVK: "example.com/v1/ConfigMap", CEL: "true"}, "no such object is applied"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			r := w.release("1.0.0", settings)
			r.Ready = []schema.Readiness{test.ready}
			_, err := w.Plan(t.Context(), r, engine.PlanOptions{})
			w.failed(err, report.Invalid, test.says)
			w.same("writes", w.writes(), nil)
		})
	}
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	r := w.release("")
	r.Ready = []schema.Readiness{{GVK: "v1/ConfigMap", CEL: "true"}}
	w.deploy(r, engine.PlanOptions{}) // a removal waits for nothing to become ready
}

// TestConditionsOfUnchangedObjects checks that conditions see the whole object even if the plan has read only its metadata.
func TestConditionsOfUnchangedObjects(t *testing.T) {
	w := newFixture(t, definition)
	w.deploy(w.release("1.0.0", pizza), engine.PlanOptions{})
	w.edit("Pizza", "margherita", "Burnt", "status", "phase")
	w.restart()
	r := w.release("2.0.0", pizza)
	r.Ready = []schema.Readiness{{GVK: "example.com/v1/Pizza", CEL: `!has(object.status) || object.status.phase != "Burnt"`}}
	plan, err := w.Plan(t.Context(), r, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.same("plan", actions(plan), nil)
	w.failed(w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Second}), report.Timeout, "Pizza shop/margherita: does not meet")
}
