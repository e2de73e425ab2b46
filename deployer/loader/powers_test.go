package loader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPowersAreAccepted: the loader cannot ask a user. Powers that its configuration does not accept are refused at the
// start, before a Job; accepted ones are deployed, in the cluster and in the environment.
func TestPowersAreAccepted(t *testing.T) {
	const configuration = "  environments: [{name: infra, solutions: [{name: edge, accept: {powers: [%POWERS%]}}]}]\n"
	b := bed{deployertest.New(t)}
	b.Imported("edge", "1.0.0", deployertest.Content{
		Files: map[string]string{
			"operator/cluster/all.yaml": `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: people},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: operations}]}
`,
			"components/part.yaml": "{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1], selector: {a: b}, ports: [{port: 1}]}}\n",
		},
		Manifest: "components: [{name: part, manifests: components/part.yaml}]",
	})
	b.Server.Stall("Job")
	pods := b.kubelet(t, loader.Run)
	for _, test := range []struct {
		powers string
		want   string // in the refusal
	}{
		{"", `"rights-for-people:ClusterRole/view@sha256:`},
		{"takes-traffic", "rights-for-people"},
		{"rights-for-people, read-others", "takes-traffic:Service/infra/part"},
		{"rights-for-people, read-others, 'takes-traffic:Service/infra/other'", "takes-traffic:Service/infra/part"},
	} {
		b.Writes()
		_, err := b.launcher(t, strings.Replace(configuration, "%POWERS%", test.powers, 1)).Start(t.Context(), loader.StartOptions{})
		deployertest.Refused(t, err, report.Refused, test.want, "accept: {powers: [")
		written := slices.DeleteFunc(b.Writes(), func(r string) bool { return strings.Contains(r, "/leases") })
		if len(written) > 0 || pods() > 0 {
			t.Errorf("accepted is %q: %d pods ran, written were %v", test.powers, pods(), written)
		}
	}
	progress, err := b.launcher(t, strings.Replace(configuration, "%POWERS%", "rights-for-people, read-others, 'takes-traffic:Service/infra/part'", 1)).Start(t.Context(), loader.StartOptions{})
	if err != nil || progress.Phase != schema.LoadReady {
		t.Fatalf("%+v, %v", progress, err)
	}
	if pods() != 1 || b.Server.Object("Service", "infra", "part") == nil {
		t.Errorf("%d pods ran, and the Services are %s", pods(), b.names("Service"))
	}
}

// TestUnlistedKeepsPowers: a version that is only not listed on this host needs no new approval of what already runs, as after a lost record.
func TestUnlistedKeepsPowers(t *testing.T) {
	b := bed{deployertest.New(t)}
	b.Imported("edge", "1.0.0", deployertest.Content{
		Files:    map[string]string{"components/part.yaml": "{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1], selector: {a: b}, ports: [{port: 1}]}}\n"},
		Manifest: "components: [{name: part, manifests: components/part.yaml}]",
	})
	accepting := strings.Replace(justEdge, "name: edge", "name: edge, accept: {powers: [takes-traffic]}", 1)
	if _, err := b.launcher(t, accepting).Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"", "part"} {
		b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: "infra", Name: "edge", Component: component}.SecretName())
	}
	if _, err := b.RebuildRecords(t.Context(), rebuild.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, list := range []deployer.ActiveVersions{nil, unlisted{}} {
		l := b.launcher(t, justEdge)
		l.Deployer.Active = list
		if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
			t.Errorf("list %v: %v", list, err)
		}
	}
}
