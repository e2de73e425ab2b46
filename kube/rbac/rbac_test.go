package rbac_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/rbac"
)

func rules(tb testing.TB, text string) []rbacv1.PolicyRule {
	tb.Helper()
	var list []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
		tb.Fatal(err)
	}
	return list
}

// scope knows a few resources; package lint passes the one of package kube.
func scope(group, resource string) (namespaced, known bool) {
	resource, _, _ = strings.Cut(resource, "/")
	namespaced, known = map[string]bool{
		"/pods": true, "/secrets": true, "/configmaps": true, "/services": true, "apps/deployments": true,
		"/nodes": false, "/namespaces": false, "/serviceaccounts": true, "/persistentvolumes": false,
		"rbac.authorization.k8s.io/roles": true, "rbac.authorization.k8s.io/clusterroles": false,
		"rbac.authorization.k8s.io/clusterrolebindings": false, "certificates.k8s.io/certificatesigningrequests": false,
		"apiextensions.k8s.io/customresourcedefinitions": false, "admissionregistration.k8s.io/mutatingwebhookconfigurations": false,
	}[group+"/"+resource]
	return namespaced, known
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, rules string
		role        []string // hazards in a Role
		cluster     []string // in a ClusterRole that is bound by a RoleBinding
		wide        []string // in a ClusterRole that is bound everywhere
	}{
		{"harmless", `[{apiGroups: [""], resources: [pods, configmaps], verbs: [get, list, watch]},
			{apiGroups: [example.com], resources: [widgets, widgets/status], verbs: [get, update, reconcile]}]`, nil, nil, nil},
		{"everything", `[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, nil, nil, nil},
		{
			"write what lies outside of the namespace", `[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [get, create]}]`,
			[]string{"warning cluster-scoped"},
			[]string{"warning cluster-scoped"},
			nil,
		},
		{
			"its own namespace", `[{apiGroups: [""], resources: [namespaces], verbs: [get, patch]}]`,
			nil,
			nil,
			nil,
		},
		{
			"every namespace", `[{apiGroups: [""], resources: [namespaces, nodes], verbs: [list, watch]}]`,
			[]string{"warning cluster-scoped"},
			[]string{"warning cluster-scoped"},
			nil,
		},
		{
			"every verb on roles", `[{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: ["*"]}]`,
			[]string{"warning wildcard-verb"},
			nil, nil,
		},
		{
			"every resource of the core group", `[{apiGroups: [""], resources: ["*"], verbs: [list]}]`,
			[]string{"warning wildcard-resource"},
			[]string{"warning wildcard-resource"},
			[]string{"warning wildcard-resource"},
		},
		{
			"own group", `[{apiGroups: [example.com], resources: ["*"], verbs: ["*"]}]`,
			[]string{"warning wildcard-verb", "warning wildcard-resource"},
			nil, nil,
		},
		{"every group", `[{apiGroups: ["*"], resources: [widgets], verbs: [get]}]`, []string{"warning wildcard-group"}, nil, nil},
		{
			"cluster-scoped", `[{apiGroups: [""], resources: [nodes], verbs: [get]}]`,
			[]string{"warning cluster-scoped"},
			[]string{"warning cluster-scoped"},
			nil,
		},
		{
			"URLs", `[{nonResourceURLs: [/metrics], verbs: [get]}]`,
			[]string{"error refused"},
			[]string{"warning cluster-scoped"},
			nil,
		},
		{"singular", `[{apiGroups: [""], resources: [pod], verbs: [get]}]`, []string{"warning unknown-resource"}, nil, nil},
		{"HTTP method", `[{apiGroups: [""], resources: [pods], verbs: [put]}]`, []string{"warning unknown-verb"}, nil, nil},
		{"made-up verb", `[{apiGroups: [apps], resources: [deployments], verbs: [read]}]`, []string{"warning unknown-verb"}, nil, nil},
		{"upper case", `[{apiGroups: [example.com], resources: [widgets], verbs: [GET]}]`, []string{"warning unknown-verb"}, nil, nil},
		{"no verbs", `[{apiGroups: [""], resources: [pods]}]`, []string{"error refused"}, nil, nil},
		{"no groups", `[{resources: [pods], verbs: [get]}]`, []string{"error refused"}, nil, nil},
		{"no resources", `[{apiGroups: [""], verbs: [get]}]`, []string{"error refused"}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			role := rbac.Role{Name: "a", Rules: rules(t, test.rules)}
			options := rbac.Options{OwnGroups: []string{"example.com"}, Scope: scope}
			check(t, "Role", rbac.Judge(role, options), test.role)
			role.Cluster = true
			if test.cluster != nil || test.role == nil {
				check(t, "ClusterRole", rbac.Judge(role, options), test.cluster)
			}
			options.ClusterWide = true
			if test.wide != nil || test.role == nil {
				check(t, "cluster-wide", rbac.Judge(role, options), test.wide)
			}
		})
	}
}

func check(t *testing.T, name string, got []rbac.Hazard, want []string) {
	t.Helper()
	var text []string
	for _, h := range got {
		text = append(text, fmt.Sprintf("%s %s", h.Severity, h.Reason))
		if h.Message == "" || !strings.HasPrefix(h.Path, "rules[") {
			t.Errorf("%s: incomplete hazard %+v", name, h)
		}
	}
	if !slices.Equal(text, want) {
		t.Errorf("%s: got %q, want %q", name, text, want)
	}
}

func TestJudgeTheWholeRole(t *testing.T) {
	hazards := rbac.Judge(rbac.Role{Name: "system:node", Cluster: true}, rbac.Options{})
	if len(hazards) != 1 || hazards[0].Reason != rbac.SystemName {
		t.Errorf("got %v", hazards)
	}
}

// The rules of a ClusterRole with such a label reach as far as the bindings of admin: they have an effect outside of namespaces.
func TestJudgeWhatJoinsOtherRoles(t *testing.T) {
	object := map[string]any{
		"kind": "ClusterRole", "metadata": map[string]any{"name": "a", "labels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
		"rules": []any{map[string]any{"verbs": []any{"list"}, "apiGroups": []any{""}, "resources": []any{"nodes"}}},
	}
	role, err := rbac.FromObject(object)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "joined", rbac.Judge(role, rbac.Options{Scope: scope}), nil)
}

func TestFromObject(t *testing.T) {
	role, err := rbac.FromObject(map[string]any{
		"kind": "ClusterRole", "metadata": map[string]any{"name": "a"}, "aggregationRule": map[string]any{},
		"rules": []any{map[string]any{"verbs": []any{"get"}, "nonResourceURLs": []any{"/a"}}},
	})
	want := rbac.Role{
		Name: "a", Cluster: true, Aggregated: true,
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/a"}}},
	}
	if err != nil || !reflect.DeepEqual(role, want) {
		t.Errorf("got %+v, %v", role, err)
	}
	for _, bad := range []map[string]any{nil, {"kind": "RoleBinding"}, {"kind": "Role", "rules": "x"}, {"kind": "Role", "rules": []any{map[string]any{"verbs": 1}}}} {
		if role, err := rbac.FromObject(bad); err == nil {
			t.Errorf("%v was read as %+v", bad, role)
		}
	}
}

func TestWidened(t *testing.T) {
	for _, test := range []struct{ name, previous, next, want string }{
		{"nothing", `[{apiGroups: [""], resources: [pods], verbs: [get]}]`, `[{apiGroups: [""], resources: [pods], verbs: [get]}]`, "[]"},
		{"less", `[{apiGroups: [""], resources: [pods], verbs: ["*"]}]`, `[{apiGroups: [""], resources: [pods], verbs: [get]}]`, "[]"},
		{
			"written differently", `[{apiGroups: [""], resources: [pods, services], verbs: [get, list]}]`,
			`[{apiGroups: [""], resources: [pods], verbs: [list, get]}, {apiGroups: [""], resources: [services], verbs: [get, list]}]`, "[]",
		},
		{
			"a verb and a resource", `[{apiGroups: [""], resources: [pods], verbs: [get]}]`,
			`[{apiGroups: ["", apps], resources: [pods, services], verbs: [get, list]}]`,
			`[{apiGroups: [""], resources: [pods], verbs: [list]}, {apiGroups: [""], resources: [services], verbs: [get, list]},
			  {apiGroups: [apps], resources: [pods, services], verbs: [get, list]}]`,
		},
		{
			"wildcard instead of a list", `[{apiGroups: [""], resources: [pods], verbs: [get, list]}]`,
			`[{apiGroups: [""], resources: [pods], verbs: [get, "*"]}]`, `[{apiGroups: [""], resources: [pods], verbs: ["*"]}]`,
		},
		{
			"names dropped", `[{apiGroups: [""], resources: [secrets], resourceNames: [a], verbs: [get]}]`,
			`[{apiGroups: [""], resources: [secrets], verbs: [get]}]`, `[{apiGroups: [""], resources: [secrets], verbs: [get]}]`,
		},
		{"URLs", `[{nonResourceURLs: [/a/*], verbs: [get]}]`, `[{nonResourceURLs: [/a/b, /c], verbs: [get]}]`, `[{nonResourceURLs: [/c], verbs: [get]}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := rbac.Widened(rules(t, test.previous), rules(t, test.next))
			if err != nil || !reflect.DeepEqual(got, rules(t, test.want)) {
				t.Errorf("got  %v, %v\nwant %v", got, err, rules(t, test.want))
			}
			all, err := rbac.Missing(slices.Concat(rules(t, test.previous), got), rules(t, test.next))
			if err != nil || len(all) > 0 {
				t.Errorf("after adding what is missing, %v is still missing, %v", all, err)
			}
		})
	}
}

// A small document can name as many permissions as it likes; neither time nor memory may follow.
func TestHugeRulesAreRefused(t *testing.T) {
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	huge := []rbacv1.PolicyRule{{APIGroups: many, Resources: many, Verbs: many, ResourceNames: many}}
	if _, err := rbac.Widened(nil, huge); err == nil {
		t.Error("Widened accepted it")
	}
	if got := rbac.Judge(rbac.Role{Rules: huge}, rbac.Options{Scope: scope}); len(got) != 1 || got[0].Reason != rbac.Refused {
		t.Errorf("Judge = %v", got)
	}
}

func ExampleJudge() {
	role := rbac.Role{Name: "operator", Cluster: true, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
	}}
	for _, hazard := range rbac.Judge(role, rbac.Options{ClusterWide: true}) {
		fmt.Printf("%s %s: %s\n", hazard.Severity, hazard.Reason, hazard)
	}
	// Output: warning wildcard-verb: rules[0]: permits every verb, also those that later releases add
}

func ExampleMissing() {
	have := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}
	need := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}, Verbs: []string{"get", "patch"}}}
	missing, err := rbac.Missing(have, need)
	if err != nil {
		panic(err)
	}
	for _, rule := range missing {
		fmt.Println(rbac.Summary(rule))
	}
	// Output:
	// patch on deployments.apps
	// get, patch on statefulsets.apps
}
