package deployer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestDeleteEnvironmentWithOthers deletes a namespace that had a life before. Objects outside of Solutions are listed, and are deleted
// only if the user has agreed to exactly this list.
func TestDeleteEnvironmentWithOthers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	in := func(head, body string) {
		b.create(strings.Replace(head, "metadata: {", "metadata: {namespace: "+b.Env+", ", 1) + "\n" + body)
	}
	in("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wiki}", "data: {page: text}")
	in("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine-too, labels: {app.kubernetes.io/managed-by: helm}}", "")
	in("apiVersion: v1\nkind: Secret\nmetadata: {name: password}", "stringData: {a: b}")
	in("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: "+b.Solution+"-operator-2}",
		"spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}")
	in("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limits}", "")
	// These are not listed: objects of an operator, of Kubernetes, of leader election.
	in("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: child, labels: {app.kubernetes.io/managed-by: "+b.Solution+"-operator}}", "")
	in("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: leader}", "")
	in("apiVersion: v1\nkind: Event\nmetadata: {name: news}\ninvolvedObject: {namespace: "+b.Env+"}", "")
	await(t, func() (bool, bool) {
		return true, b.find(configMaps, b.Env, "kube-root-ca.crt") != nil
	})
	want := []string{
		"ConfigMap " + b.Env + "/mine-too", "ConfigMap " + b.Env + "/wiki", "Deployment " + b.Env + "/" + b.Solution + "-operator-2",
		"Secret " + b.Env + "/password",
	}

	o := environments.DeleteOptions{Environment: b.Env, Data: plan.DeleteData, Options: plan.Options{Timeout: testcluster.Deadline(time.Minute)}}
	_, err := b.DeleteEnvironment(t.Context(), o)
	b.refused(err, report.InUse, append(want, "solutionctl deploy env delete "+b.Env+" --delete-data --delete-others")...)
	if strings.Contains(err.Error(), "limits") || strings.Contains(err.Error(), "child") {
		t.Error(err)
	}
	o.Others, err = b.Survey.Others(t.Context(), survey.OthersOptions{Environment: b.Env})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ref := range o.Others {
		got = append(got, ref.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	// The consent does not cover a later object.
	in("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: later}", "")
	_, err = b.DeleteEnvironment(t.Context(), o)
	b.refused(err, report.InUse, "ConfigMap "+b.Env+"/later")
	if strings.Contains(err.Error(), "wiki") {
		t.Error(err)
	}
	if err = b.Cluster.Delete(t.Context(), b.get(configMaps, b.Env, "later"), cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	done, err := b.DeleteEnvironment(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, part := range done.Parts {
		for _, change := range part.Changes {
			if change.Action == schema.ActionDelete && change.Note == "not part of a Solution" {
				deleted = append(deleted, change.Object.String())
			}
		}
	}
	want = append(want, "ResourceQuota "+b.Env+"/limits")
	slices.Sort(want)
	if slices.Sort(deleted); !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q", deleted, want)
	}
	if b.find(namespaces, "", b.Env) != nil {
		t.Error("the namespace is still there")
	}
}

// TestDeleteEnvironmentUnseen: who may delete a namespace and not look into it has to agree to that.
func TestDeleteEnvironmentUnseen(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.imported("1.0.0", content{}) // makes the namespace of our own state, which the user has no right to do
	var groups []string            // of all Solutions, also those of other tests
	for definition, err := range b.Cluster.List(t.Context(), cluster.DefinitionKind, "", metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		groups = append(groups, fmt.Sprintf("%q", group))
	}
	b.create(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blind-` + b.Env + `}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch, delete]}
- {apiGroups: [""], resources: [persistentvolumeclaims, configmaps], verbs: [get, list]}
- {apiGroups: [""], resources: [secrets], verbs: [get, list, create, update, delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list]}
- {apiGroups: [` + strings.Join(append(groups, `"`+b.Group+`"`), ", ") + `], resources: ["*"], verbs: [list]}
`)
	b.create(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: blind-` + b.Env + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: blind-` + b.Env + `}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: blind-` + b.Env + `}]
`)
	blind := b.connect(b.kubeconfigFor("blind-" + b.Env))
	await(t, func() (bool, bool) {
		missing, err := blind.Cluster.Missing(t.Context(), cluster.Permission{Verb: "delete", Resource: "namespaces"})
		return true, err == nil && len(missing) == 0
	})
	o := environments.DeleteOptions{Environment: b.Env, Options: plan.Options{Timeout: testcluster.Deadline(time.Minute)}}
	_, err := blind.DeleteEnvironment(t.Context(), o)
	b.refused(err, report.InUse, "kind CronJob in namespace "+b.Env+", which you do not have permission to list", "--delete-others")
	if o.Others, err = blind.Survey.Others(t.Context(), survey.OthersOptions{Environment: b.Env}); err != nil {
		t.Fatal(err)
	}
	done, err := blind.DeleteEnvironment(t.Context(), o)
	b.noticed(done, err, "kind CronJob")
}
