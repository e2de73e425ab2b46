package site

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/schema/report"
)

// WithLabels returns labels after changes, KEY=VALUE or KEY-, nil for none.
func WithLabels(labels map[string]string, changes []string) (map[string]string, error) {
	next := map[string]string{}
	maps.Copy(next, labels)
	for _, change := range changes {
		key, value, sets := strings.Cut(change, "=")
		if name, goes := strings.CutSuffix(change, "-"); goes && !sets && name != "" {
			delete(next, name)
			continue
		}
		if !sets || key == "" {
			return nil, report.Errorf(report.Usage, "label %q is neither KEY=VALUE nor KEY-", change)
		}
		if err := checkName("label", key, validation.IsQualifiedName); err != nil {
			return nil, err
		}
		if err := checkName("value of label "+key, value, validation.IsValidLabelValue); err != nil {
			return nil, err
		}
		if isReserved(key) {
			return nil, report.Errorf(report.Usage, "label %s identifies the owner of an object: it cannot have another value", key).
				WithHint("give the Prometheus or the Grafana of the site a selector with another label")
		}
		next[key] = value
	}
	if len(next) == 0 {
		return nil, nil
	}
	return next, nil
}

// isReserved reports whether objects of Solutions are found by a label.
func isReserved(key string) bool {
	return strings.HasPrefix(key, "solutionctl.io/") || key == "app.kubernetes.io/managed-by" || key == "app.kubernetes.io/part-of"
}

// checkName checks a text by a rule of Kubernetes; an empty one removes something, and is valid.
func checkName(what, text string, check func(string) []string) error {
	if text == "" {
		return nil
	}
	if problems := check(text); len(problems) > 0 {
		return report.Errorf(report.Usage, "%s %q: %s", what, text, problems[0])
	}
	return nil
}
