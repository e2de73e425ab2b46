package survey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// show is the status of an environment for a user with the present permissions.
func show(b *deployertest.Bed, o survey.EnvironmentOptions) *schema.EnvironmentStatus {
	b.Helper()
	status, err := b.Connect().Survey.EnvironmentStatus(b.Context(), o)
	if err != nil {
		b.Fatal(err, report.Hints(err))
	}
	return status
}

// hidden lists the parts that are not shown, each with the missing permissions.
func hidden(status *schema.EnvironmentStatus) string {
	var texts []string
	for _, u := range status.Unseen {
		texts = append(texts, u.What+": "+u.Rules)
	}
	return strings.Join(texts, "\n")
}

// TestUserOfOneNamespace: a user with permissions in one namespace sees its deployments, and which parts are not shown.
func TestUserOfOneNamespace(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	full := show(b, survey.EnvironmentOptions{Environment: site})
	if len(full.Unseen) > 0 {
		t.Errorf("to who may see everything, something is hidden: %v", full.Unseen)
	}
	b.Only(site, nil)
	status := show(b, survey.EnvironmentOptions{Environment: site})
	d := status.Namespaces[0].Deployments
	if len(d) != 1 || d[0].Solution != shop || d[0].Version != "1.0.0" || d[0].Wanted != "1.0.0" || d[0].Health != schema.HealthReady || d[0].Objects == 0 || d[0].Ready != d[0].Objects {
		t.Errorf("it shows %+v", d)
	}
	for _, words := range []string{"other namespaces", `resources: ["namespaces"]`, "the records", `resources: ["secrets"]`} {
		if !strings.Contains(hidden(status), words) {
			t.Errorf("nothing about %s in:\n%s", words, hidden(status))
		}
	}
	if strings.Contains(hidden(status), "all that is deployed") {
		t.Errorf("what is seen is said to be hidden:\n%s", hidden(status))
	}
}

// TestDimNamespace: nothing is reported about objects that the user is not allowed to read.
func TestDimNamespace(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Only("elsewhere", func(a authorization.ResourceAttributes) bool {
		return a.Verb == "get" && (a.Name == site || a.Namespace == site && a.Resource == "configmaps")
	})
	status := show(b, survey.EnvironmentOptions{Environment: site, Members: true})
	d := status.Namespaces[0].Deployments
	if len(d) != 1 || d[0].Health != schema.HealthUnknown || d[0].Wanted != "1.0.0" || d[0].Version != "" {
		t.Errorf("it shows %+v", d)
	}
	for _, words := range []string{"all that is deployed in namespace site", "deployments", "who may do what in namespace site", "rolebindings"} {
		if !strings.Contains(hidden(status), words) {
			t.Errorf("nothing about %s in:\n%s", words, hidden(status))
		}
	}
	b.Only("elsewhere", func(a authorization.ResourceAttributes) bool {
		return a.Verb == "get" && a.Name == site || a.Namespace == site && a.Resource != "configmaps"
	})
	status = show(b, survey.EnvironmentOptions{Environment: site})
	d = status.Namespaces[0].Deployments
	if len(d) != 1 || d[0].Health != schema.HealthReady || d[0].Version != "1.0.0" || len(d[0].Reasons) > 0 {
		t.Errorf("without what is asked for, it shows %+v", d)
	}
	if !strings.Contains(hidden(status), "which versions namespace site asks for") {
		t.Errorf("it hides:\n%s", hidden(status))
	}
}

// TestNameTheNamespace: an environment whose namespaces have other names is found by one of them.
func TestNameTheNamespace(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace("production", "production-1")
	b.Namespace("production", "production-2")
	b.Only("production-1", nil)
	_, err := b.Connect().Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: "production"})
	deployertest.Refused(t, err, report.Forbidden, "production", "--namespace")
	status := show(b, survey.EnvironmentOptions{Environment: "production", Namespace: "production-1"})
	if len(status.Namespaces) != 1 || status.Namespaces[0].Name != "production-1" {
		t.Errorf("it shows %+v", status.Namespaces)
	}
	_, err = b.Connect().Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: "other", Namespace: "production-1"})
	deployertest.Refused(t, err, report.NotFound, "production-1", "other")
	for _, odd := range []string{"", "../secrets", "a b", strings.Repeat("x", 300)} {
		if _, err = b.Connect().Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: odd}); err == nil {
			t.Errorf("environment %q was found", odd)
		}
	}
	_, err = b.Connect().Survey.Status(t.Context(), survey.StatusOptions{})
	deployertest.Refused(t, err, report.Forbidden, "solutionctl deploy env show ENVIRONMENT")
}

// TestMembers: people are listed before programs.
func TestMembers(t *testing.T) {
	b := deployertest.New(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: people, namespace: site}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: "joe <script>"}
- {kind: ServiceAccount, name: builder}
- {kind: Group, apiGroup: rbac.authorization.k8s.io, name: operators}
`)
	b.Added(shop, "1.0.0", deployertest.Content{})
	var got []string
	for _, m := range show(b, survey.EnvironmentOptions{Environment: site, Members: true}).Members {
		got = append(got, strings.Join([]string{m.Kind, m.Name, m.Role, m.Solution}, "|"))
	}
	want := []string{"User|joe <script>|edit|", "Group|operators|edit|", "ServiceAccount|site/builder|edit|"}
	if diff := cmp.Diff(want, slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasSuffix(s, "|"+shop) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "ServiceAccount|site/shop-operator|") && strings.HasSuffix(s, "|"+shop)
	}) {
		t.Errorf("the operator is not among %q", got)
	}
}
