package rights_test

import (
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, namespace: site}\n"
	role       = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: shop, namespace: site}
rules:
- {apiGroups: [batch], resources: [jobs/status], verbs: [get]}
- {apiGroups: [apps], resources: [deployments], resourceNames: [shop], verbs: [patch]}
`
	binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shop, namespace: site}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
`
	clusterRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
`
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// connect returns a cluster in memory whose user has the permissions that may reports.
func connect(t *testing.T, may func(authorization.ResourceAttributes) bool) *cluster.Cluster {
	t.Helper()
	server := clustertest.Start(t)
	server.May = may
	c, err := cluster.Connect(cluster.Options{Kubeconfig: server.Kubeconfig(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// of returns the work of one action on an object that is a release of its own.
func of(t *testing.T, action schema.Action, text string) *rights.Work {
	t.Helper()
	o := object(t, text)
	plan := &engine.Plan{Release: engine.Release{Key: record.Key{Namespace: o.GetNamespace(), Name: "shop"}, Objects: []*unstructured.Unstructured{o}}}
	if action != schema.ActionNone {
		plan.Changes = []schema.Change{{Action: action, Object: records.RefOf(o.GroupVersionKind(), o)}}
	}
	return &rights.Work{Plans: []*engine.Plan{plan}}
}

// beyond writes permissions that are not among others as "VERB RESOURCE.GROUP/NAME", sorted.
func beyond(permissions, others []cluster.Permission) string {
	var lines []string
	for _, p := range permissions {
		if slices.Contains(others, p) {
			continue
		}
		line := p.Verb + " " + strings.Trim(p.Resource+"/"+p.Subresource, "/")
		if p.Name+p.One != "" {
			line += " " + p.Name + p.One
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), ", ")
}

func TestRequired(t *testing.T) {
	everything := func(authorization.ResourceAttributes) bool { return true }
	nothing := func(authorization.ResourceAttributes) bool { return false }
	for _, test := range []struct {
		name string
		may  func(authorization.ResourceAttributes) bool
		work *rights.Work
		wait bool
		want string
	}{
		{"nothing changes", everything, of(t, schema.ActionNone, deployment), true, ""},
		{"create and wait", everything, of(t, schema.ActionCreate, deployment), true, "create deployments, get deployments shop, list deployments, patch deployments shop, watch deployments"},
		{"create without waiting", everything, of(t, schema.ActionCreate, deployment), false, "create deployments, get deployments shop, patch deployments shop"},
		{"delete", everything, of(t, schema.ActionDelete, deployment), true, "delete deployments shop, get deployments shop"},
		{"delete a namespace and wait", everything, of(t, schema.ActionDelete, "apiVersion: v1\nkind: Namespace\nmetadata: {name: site}\n"), true, "delete namespaces site, get namespaces site, list namespaces, watch namespaces"},
		{"a kind that the cluster does not have", everything, of(t, schema.ActionCreate, "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop, namespace: site}\n"), true, ""},
		{"a role of a user who may escalate", everything, of(t, schema.ActionCreate, role), true, "create roles, get roles shop, patch roles shop"},
		{"a role of a user who may not escalate", nothing, of(t, schema.ActionCreate, role), true, "create roles, get jobs/status, get roles shop, patch deployments shop, patch roles shop"},
		{"a role of the cluster", nothing, of(t, schema.ActionCreate, clusterRole), true, "create clusterroles shop, get clusterroles shop, list nodes, patch clusterroles shop"},
		{"a role that exists", nothing, of(t, schema.ActionUpdate, role), true, "get roles shop, patch roles shop"},
		{"a shared document", everything, &rights.Work{Records: []schema.Change{{
			Action: schema.ActionUpdate, Object: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "site", Name: "document"},
		}}}, true, "get configmaps document, update configmaps document"},
		{"a step before the plans", everything, &rights.Work{Also: cluster.Permission{Resource: "pods"}.Each("delete")}, true, "delete pods"},
	} {
		t.Run(test.name, func(t *testing.T) {
			required, err := test.work.Required(t.Context(), connect(t, test.may), test.wait)
			if err != nil {
				t.Fatal(err)
			}
			if got := beyond(required, rights.WriteRecords()); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestLeast(t *testing.T) {
	for _, test := range []struct {
		name string
		work *rights.Work
		want string
	}{
		{"nothing changes", of(t, schema.ActionNone, deployment), "get deployments shop, list deployments, watch deployments"},
		{"create", of(t, schema.ActionCreate, deployment), "create deployments, get deployments shop, list deployments, patch deployments shop, watch deployments"},
		{"a role grants what its creator has", of(t, schema.ActionCreate, role), "create roles, get jobs/status, get roles shop, list roles, patch deployments shop, patch roles shop"},
		{"a binding to a role outside the release", of(t, schema.ActionCreate, binding), "bind clusterroles view, create rolebindings, get rolebindings shop, list rolebindings, patch rolebindings shop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			least, err := test.work.Least(t.Context(), connect(t, nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := beyond(least, slices.Concat(rights.Plan(true), rights.Wait("site"))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRepairReadsOnly: without permission to change, a repair compares everything and has only verbs that read.
func TestRepairReadsOnly(t *testing.T) {
	c := connect(t, nil)
	releases := []engine.Release{of(t, schema.ActionNone, role).Plans[0].Release, of(t, schema.ActionNone, deployment).Plans[0].Release}
	for change, want := range map[bool]string{
		false: "get deployments shop, get roles shop, list deployments, list roles, watch deployments",
		true: "create deployments, create roles, get deployments shop, get jobs/status, get roles shop, list deployments, list roles, " +
			"patch deployments shop, patch roles shop, watch deployments",
	} {
		list, err := rights.Repair(t.Context(), c, releases, change)
		if err != nil {
			t.Fatal(err)
		}
		if got := beyond(list, slices.Concat(rights.Plan(true), rights.Wait("site"))); got != want {
			t.Errorf("change %t: got  %s\nwant %s", change, got, want)
		}
	}
}

func TestWidened(t *testing.T) {
	wider := strings.Replace(role, "verbs: [get]", "verbs: [get, delete]", 1)
	for _, test := range []struct {
		name          string
		before, after string
		want          string
	}{
		{"the same", role, role, ""},
		{"a verb more", role, wider, "delete"},
		{"a verb less", wider, role, ""},
		{"a rule of the cluster", role, clusterRole, "nodes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines, err := rights.Widened([]*unstructured.Unstructured{object(t, test.before)}, []*unstructured.Unstructured{object(t, test.after)})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(lines, "\n"); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want one with %q", got, test.want)
			}
		})
	}
}

// TestAccount: an account has a role and a binding for each namespace, and they are about nothing else.
func TestAccount(t *testing.T) {
	permissions := append(cluster.Permission{Resource: "pods", Namespace: "site"}.Each("get"), cluster.Permission{Resource: "nodes"}.Each("list")...)
	var got []string
	for _, o := range rights.Account("loader", permissions) {
		got = append(got, strings.TrimSpace(o.GetKind()+" "+o.GetNamespace()))
		if o.GetName() != "loader" {
			t.Errorf("%s has the name %s", o.GetKind(), o.GetName())
		}
	}
	if want := []string{"ClusterRole", "ClusterRoleBinding", "Role site", "RoleBinding site"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
