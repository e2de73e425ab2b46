package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/health"
)

func TestCondition(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"phase": "Running", "members": int64(3), "list": make([]any, 500)},
	}}
	costly := "object.status.list.all(a, object.status.list.all(b, object.status.list.all(c, true)))"
	for name, test := range map[string]struct{ expression, reason, message string }{
		"holds":                 {`object.status.phase == "Running"`, "Ready", ""},
		"numbers":               {`object.status.members >= 3`, "Ready", ""},
		"a field that may lack": {`object.?status.ready.orValue(true)`, "Ready", ""},
		"does not hold":         {`object.status.members > 3`, "ConditionNotMet", "does not meet object.status.members > 3"},
		"no such field":         {`object.status.ready`, "ConditionUnknown", "no such key: ready"},
		"no boolean":            {`object.status.phase`, "ConditionUnknown", "it yields string and not a boolean"},
		"never ends":            {costly, "ConditionUnknown", "cost limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := health.NewCondition(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Of(t.Context(), object)
			if got.Reason != test.reason || !strings.Contains(got.Message, test.message) || got.Ready != (test.reason == "Ready") || got.Failed {
				t.Errorf("got %+v, want %s with %q", got, test.reason, test.message)
			}
		})
	}
}

func TestConditionsThatCannotBe(t *testing.T) {
	for expression, want := range map[string]string{
		`object.status.phase ==`: "Syntax error",
		`objects.status`:         "undeclared reference to 'objects'",
		`size(object.status)`:    "it yields int and not a boolean",
		``:                       "Syntax error",
	} {
		if _, err := health.NewCondition(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", expression, err, want)
		}
	}
}
