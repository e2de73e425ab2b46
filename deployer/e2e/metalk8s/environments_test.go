package metalk8s_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	label       = "solutions.metalk8s.scality.com/environment"
	description = "solutions.metalk8s.scality.com/environment-description"
)

func kubeconfigOf(t *testing.T, user string, groups ...string) string {
	t.Helper()
	file, err := testcluster.Shared(t).KubeconfigFor(user, groups...)
	check(t, err)
	return file
}

func create(t *testing.T, d *metalk8s.Documents, o metalk8s.CreateOptions, want metalk8s.Creation) {
	t.Helper()
	got, err := d.CreateEnvironment(t.Context(), o)
	check(t, err)
	if got != want {
		t.Errorf("create %+v: %s, want %s", o, got, want)
	}
}

// summary is an environment in a form that can be compared.
func summary(e *metalk8s.Environment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", e.Name, e.Description)
	for _, n := range e.Namespaces {
		description := "-"
		if n.Description != nil {
			description = *n.Description
		}
		fmt.Fprintf(&b, " %s[%s %v]", n.Name, description, n.Versions)
	}
	return b.String()
}

func wantEnvironment(t *testing.T, d *metalk8s.Documents, name, want string) {
	t.Helper()
	e, err := d.Environment(t.Context(), name)
	check(t, err)
	if got := summary(e); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCreateEnvironment(t *testing.T) {
	d, client := connect(t)
	ctx := t.Context()
	create(t, d, metalk8s.CreateOptions{Name: "create-a"}, metalk8s.Created)
	create(t, d, metalk8s.CreateOptions{Name: "create-a"}, metalk8s.Unchanged)
	wantEnvironment(t, d, "create-a", "create-a () create-a[ map[]]")

	// What solutions.sh would have made.
	namespace, err := client.CoreV1().Namespaces().Get(ctx, "create-a", metav1.GetOptions{})
	check(t, err)
	if namespace.Labels[label] != "create-a" || len(namespace.Labels) != 2 {
		t.Errorf("labels: %v", namespace.Labels)
	}
	if diff := cmp.Diff(namespace.Annotations, map[string]string{description: ""}); diff != "" {
		t.Errorf("annotations (-got +want):\n%s", diff)
	}
	if data := mustData(t, client, "create-a", "metalk8s-environment"); data != nil {
		t.Errorf("data: %v", data)
	}

	// A second namespace inherits the description; a new one is for all.
	create(t, d, metalk8s.CreateOptions{Name: "create-a", Description: new("For tests")}, metalk8s.Changed)
	create(t, d, metalk8s.CreateOptions{Name: "create-a", Description: new("For tests")}, metalk8s.Unchanged)
	create(t, d, metalk8s.CreateOptions{Name: "create-a", Namespace: "create-0"}, metalk8s.Created)
	wantEnvironment(t, d, "create-a", "create-a (For tests) create-0[For tests map[]] create-a[For tests map[]]")
	create(t, d, metalk8s.CreateOptions{Name: "create-a", Namespace: "create-b", Description: new("For all")}, metalk8s.Created)
	wantEnvironment(t, d, "create-a", "create-a (For all) create-0[For all map[]] create-a[For all map[]] create-b[For all map[]]")

	// The name of an environment need not be that of a namespace.
	create(t, d, metalk8s.CreateOptions{Name: "Create_C.1", Namespace: "create-c"}, metalk8s.Created)
	wantEnvironment(t, d, "Create_C.1", "Create_C.1 () create-c[ map[]]")

	// An interrupted run left no ConfigMap.
	check(t, client.CoreV1().ConfigMaps("create-c").Delete(ctx, "metalk8s-environment", metav1.DeleteOptions{}))
	create(t, d, metalk8s.CreateOptions{Name: "Create_C.1", Namespace: "create-c"}, metalk8s.Unchanged)
	mustData(t, client, "create-c", "metalk8s-environment")
}

// TestEnvironmentsOfSolutionsSh reads what solutions.sh and the old web interface made, and lets them write again.
func TestEnvironmentsOfSolutionsSh(t *testing.T) {
	d, client := connect(t)
	ctx := t.Context()
	newNamespace(t, client, "sh-1", map[string]string{label: "sh"}, map[string]string{description: ""})
	newNamespace(t, client, "sh-2", map[string]string{label: "sh"}, map[string]string{description: "Second"})
	newNamespace(t, client, "sh-3", map[string]string{label: "sh"}, nil)
	newNamespace(t, client, "sh-4", map[string]string{label: ""}, nil)
	newConfigMap(t, client, "sh-1", "metalk8s-environment", map[string]string{"example-solution": "1.0.0"})
	newConfigMap(t, client, "sh-2", "metalk8s-environment", nil)
	wantEnvironment(t, d, "sh", "sh (Second) sh-1[ map[example-solution:1.0.0]] sh-2[Second map[]] sh-3[- map[]]")

	// The patch of 'solutions.sh add-solution', and the JSON patch of the old web interface.
	patch := func(kind types.PatchType, data string) {
		t.Helper()
		_, err := client.CoreV1().ConfigMaps("sh-1").Patch(ctx, "metalk8s-environment", kind, []byte(data), metav1.PatchOptions{})
		check(t, err)
	}
	check(t, d.SetVersion(ctx, "sh-1", "ours", "2.0.0"))
	patch(types.StrategicMergePatchType, `{"data": {"their-solution": "3.0.0"}}`)
	check(t, d.SetVersion(ctx, "sh-1", "ours", "2.1.0"))
	patch(types.JSONPatchType, `[{"op": "remove", "path": "/data/example-solution"}]`)
	wantEnvironment(t, d, "sh", "sh (Second) sh-1[ map[ours:2.1.0 their-solution:3.0.0]] sh-2[Second map[]] sh-3[- map[]]")
	check(t, d.SetVersion(ctx, "sh-1", "ours", ""))
	check(t, d.SetVersion(ctx, "sh-1", "never-there", ""))
	check(t, d.SetVersion(ctx, "sh-3", "ours", "1.0.0")) // the ConfigMap was not there
	patch(types.JSONPatchType, `[{"op": "remove", "path": "/data/their-solution"}]`)
	wantEnvironment(t, d, "sh", "sh (Second) sh-1[ map[]] sh-2[Second map[]] sh-3[- map[ours:1.0.0]]")

	_, err := d.Environment(ctx, "sg")
	wantError(t, err, report.NotFound, `no environment "sg"`, "sh")
	wantError(t, d.SetVersion(ctx, "sh-9", "ours", "1.0.0"), report.NotFound, "sh-9")
}

// TestEnvironmentsOfOneNamespace reads environments as a user who may list namespaces, but ConfigMaps in one of them only.
func TestEnvironmentsOfOneNamespace(t *testing.T) {
	d, client := connect(t)
	ctx := t.Context()
	create(t, d, metalk8s.CreateOptions{Name: "limited"}, metalk8s.Created)
	check(t, d.SetVersion(ctx, "limited", "db", "1.0.0"))
	names, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: label})
	check(t, err)
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "limited"}}
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "limited"},
	}, metav1.CreateOptions{})
	check(t, err)
	for _, n := range names.Items {
		_, err = client.RbacV1().RoleBindings(n.Name).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.HasStatusCause(err, "NamespaceTerminating") {
			t.Fatal(err)
		}
	}
	limited := documents(t, kubeconfigOf(t, "limited"))
	wantEnvironment(t, limited, "limited", "limited () limited[ map[db:1.0.0]]")
	_, err = limited.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: "limited-2"})
	wantError(t, err, report.Forbidden, "limited", "namespaces")
}

// deleteUnused deletes namespaces of an environment unless something in them is used.
func deleteUnused(ctx context.Context, d *metalk8s.Documents, environment, namespace string, timeout time.Duration) error {
	namespaces, err := d.Select(ctx, environment, namespace)
	if err != nil {
		return err
	}
	usage, _, err := d.Usage(ctx, namespaces)
	if err != nil {
		return err
	}
	if len(usage) > 0 {
		return report.Errorf(report.InUse, "%s: %v", environment, usage)
	}
	return d.DeleteNamespaces(ctx, namespaces, metalk8s.DeleteOptions{Timeout: timeout})
}

func TestDeleteEnvironment(t *testing.T) {
	t.Parallel()
	d, client := connect(t)
	ctx := t.Context()
	for _, n := range []string{"delete-1", "delete-2", "delete-3"} {
		create(t, d, metalk8s.CreateOptions{Name: "delete", Namespace: n}, metalk8s.Created)
	}
	remove := func(namespace string) error {
		return deleteUnused(ctx, d, "delete", namespace, testcluster.Deadline(time.Minute))
	}
	wantError(t, remove("delete-9"), report.NotFound, "delete-9", "delete-1, delete-2, delete-3")
	check(t, remove("delete-2"))
	wantEnvironment(t, d, "delete", "delete () delete-1[ map[]] delete-3[ map[]]")
	check(t, d.SetVersion(ctx, "delete-3", "db", "1.0.0"))
	wantError(t, remove(""), report.InUse, "Solution db 1.0.0 in namespace delete-3")
	wantEnvironment(t, d, "delete", "delete () delete-1[ map[]] delete-3[ map[db:1.0.0]]")
	check(t, d.SetVersion(ctx, "delete-3", "db", ""))
	check(t, remove(""))
	wantError(t, remove(""), report.NotFound, `no environment "delete"`)

	// A namespace that the cluster needs is not deleted, whatever its labels.
	patch := func(value string) {
		t.Helper()
		data := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, label, value)
		_, err := client.CoreV1().Namespaces().Patch(ctx, "kube-public", types.MergePatchType, []byte(data), metav1.PatchOptions{})
		check(t, err)
	}
	patch(`"delete"`)
	wantError(t, remove(""), report.Refused, "kube-public", "kubectl label")
	patch(`null`)
}

// TestDeleteEnvironmentWithCustomResources counts what people made, not what belongs to it.
func TestDeleteEnvironmentWithCustomResources(t *testing.T) {
	t.Parallel()
	d, _ := connect(t)
	ctx := t.Context()
	create(t, d, metalk8s.CreateOptions{Name: "custom"}, metalk8s.Created)
	kind := define(t, d.Cluster, "Database", "databases")
	remove := func(used bool) error {
		if !used {
			return deleteUnused(ctx, d, "custom", "", testcluster.Deadline(time.Minute))
		}
		namespaces, err := d.Select(ctx, "custom", "")
		check(t, err)
		return d.DeleteNamespaces(ctx, namespaces, metalk8s.DeleteOptions{Timeout: testcluster.Deadline(time.Minute)})
	}
	var first *unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "owned"} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		object.SetNamespace("custom")
		object.SetName(name)
		if name == "owned" {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "a", UID: first.GetUID()}})
		}
		made, err := d.Cluster.Create(ctx, object, cluster.WriteOptions{})
		check(t, err)
		if first == nil {
			first = made
		}
	}
	wantError(t, remove(false), report.InUse, "Database a, b, c and 1 more in namespace custom")
	wantEnvironment(t, d, "custom", "custom () custom[ map[]]")
	check(t, remove(true))
}

// define makes a kind of custom resources and waits until the cluster serves it.
func define(t *testing.T, c *cluster.Cluster, kind, plural string) kube.GroupVersionKind {
	t.Helper()
	ctx := t.Context()
	object := &unstructured.Unstructured{}
	definition := map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".metalk8s-test.example"},
		"spec": map[string]any{
			"group": "metalk8s-test.example", "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}
	object.SetUnstructuredContent(definition)
	_, err := c.Create(ctx, object, cluster.WriteOptions{})
	check(t, err)
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()}
	for change, err := range c.Watch(ctx, object.GroupVersionKind(), "", one) {
		check(t, err)
		conditions, _, _ := unstructured.NestedSlice(change.Object.Object, "status", "conditions")
		for _, condition := range conditions {
			if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return awaitKind(t, c, kube.GroupVersionKind{Group: "metalk8s-test.example", Version: "v1", Kind: kind})
			}
		}
	}
	t.Fatal("the definition was not established")
	return kube.GroupVersionKind{}
}

// awaitKind waits until the server serves a kind.
func awaitKind(t *testing.T, c *cluster.Cluster, kind kube.GroupVersionKind) kube.GroupVersionKind {
	t.Helper()
	for t.Context().Err() == nil {
		c.Refresh()
		_, err := c.Mapping(t.Context(), kind)
		if err == nil {
			break
		}
		if !errors.Is(err, cluster.ErrNoKind) {
			t.Fatal(err)
		}
	}
	return kind
}

// TestPillar compares with what MetalK8s' external pillar returns for the same cluster.
func TestPillar(t *testing.T) {
	d, client := connect(t)
	reset(t, client)
	ctx := t.Context()
	newNamespace(t, client, "metalk8s-solutions", nil, nil)
	newConfigMap(t, client, "metalk8s-solutions", "metalk8s-solutions", map[string]string{
		"db": `[{"name": "DB", "id": "db-1.0.0", "version": "1.0.0", "active": true, "archive": "/a.iso", "mountpoint": "/srv/scality/db-1.0.0", "manifest": {"kind": "Solution"}}]`,
	})
	newNamespace(t, client, "pillar-1", map[string]string{label: "pillar"}, nil)
	newNamespace(t, client, "pillar-2", map[string]string{label: "pillar"}, map[string]string{description: "Both"})
	newConfigMap(t, client, "pillar-1", "metalk8s-environment", map[string]string{"db": "1.0.0"})
	newConfigMap(t, client, "pillar-2", "metalk8s-environment", nil)
	config := schema.NewSolutionsConfiguration()
	config.Archives, config.Active["db"] = []string{"/a.iso"}, "latest"
	p, err := d.Pillar(ctx, config, nil)
	check(t, err)
	for name := range p.Environments {
		if name != "pillar" {
			delete(p.Environments, name) // of other tests
		}
	}
	got, err := p.MarshalJSON()
	check(t, err)
	want := `{"available": {"db": [{"name": "DB", "id": "db-1.0.0", "version": "1.0.0", "active": true, "archive": "/a.iso",
		"mountpoint": "/srv/scality/db-1.0.0", "manifest": {"kind": "Solution"}}]},
		"config": {"apiVersion": "solutions.metalk8s.scality.com/v1alpha1", "kind": "SolutionsConfiguration", "archives": ["/a.iso"], "active": {"db": "latest"}},
		"environments": {"pillar": {"name": "pillar", "description": "Both", "namespaces": {"pillar-1": {"config": {"db": "1.0.0"}}, "pillar-2": {"config": null}}}}}`
	if diff := cmp.Diff(generic(t, string(got)), generic(t, want)); diff != "" {
		t.Errorf("pillar (-got +want):\n%s", diff)
	}
}
