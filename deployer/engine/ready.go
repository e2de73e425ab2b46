package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// addConditions adds the conditions of the release to the steps. A condition that cannot be compiled is refused, and so is one without
// an object, because it would always hold.
func addConditions(steps []*step, conditions []schema.Readiness) error {
	for _, c := range conditions {
		condition, err := health.NewCondition(c.CEL)
		if err != nil {
			return report.Errorf(report.Invalid, "readiness of %s %s: %w", c.GVK, cmp.Or(c.Name, "*"), err)
		}
		concerned := false
		for _, s := range steps {
			if concerns(c, s.desired) {
				s.conditions = append(s.conditions, condition)
				concerned = true
			}
		}
		if !concerned {
			return report.Errorf(report.Invalid, "readiness of %s %s: no such object is applied", c.GVK, cmp.Or(c.Name, "*"))
		}
	}
	return nil
}

// concerns reports whether a condition is about an object.
func concerns(c schema.Readiness, object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	gvk := slices.DeleteFunc([]string{kind.Group, kind.Version, kind.Kind}, func(part string) bool { return part == "" })
	return c.GVK == strings.Join(gvk, "/") && (c.Name == "" || c.Name == "*" || c.Name == object.GetName())
}

// health returns the health of an object: by the rules of its kind, then by the conditions of the release.
func (s *step) health(ctx context.Context, object *unstructured.Unstructured) health.Status {
	status := health.Of(object)
	if s.taskStep != nil && s.taskStep.runs() && status.Ready && !endedWell(object) {
		status = health.Status{Reason: "Running", Message: "has not ended yet"}
	}
	for _, c := range s.conditions {
		if !status.Ready {
			break
		}
		status = c.Of(ctx, object)
	}
	return status
}
