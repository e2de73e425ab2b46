package install_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// twoFaced is a Solution with a chart that renders other objects in a cluster than without one.
func twoFaced(t *testing.T, shown, deployed string) deployertest.Content {
	t.Helper()
	return deployertest.Content{
		Bare: true, Manifest: "components: [{name: part, chart: charts/part.tgz}]",
		Files: map[string]string{"charts/part.tgz": deployertest.Chart(t, "part", map[string]string{"templates/part.yaml": `apiVersion: v1
kind: Service
metadata: {name: part}
spec:
  externalIPs: [{{ if lookup "v1" "Namespace" "" .Release.Namespace }}` + deployed + `{{ else }}` + shown + `{{ end }}]
  selector: {a: b}
  ports: [{port: 1}]
`})},
	}
}

// TestOnlyShownPowersAreApproved checks that a chart which looks into the cluster gets no power that the user was not shown, and that the
// plan of the next run shows it.
func TestOnlyShownPowersAreApproved(t *testing.T) {
	for name, test := range map[string]struct {
		shown, deployed string
		refused         bool
	}{
		"another power":   {"192.0.2.7", "10.96.0.10", true},
		"the same":        {"192.0.2.7", "192.0.2.7", false},
		"a narrower one":  {"192.0.2.7, 192.0.2.8", "192.0.2.7", false},
		"one power wider": {"192.0.2.7", "192.0.2.7, 10.96.0.10", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			archive := s.vendor.ArchiveOf(t, "shop", "1.0.0", twoFaced(t, test.shown, test.deployed))
			approve := func(address string) (*install.Plan, error) {
				p := s.plan(t, archive)
				missing := p.Unapproved()
				if text := strings.Join((&plan.PowersError{Powers: missing}).Lines(), "\n"); !strings.Contains(text, address) {
					t.Fatalf("shown is %q, want %s", text, address)
				}
				p.Approve(missing)
				return p, p.Run(t.Context())
			}
			_, err := approve("192.0.2.7")
			if !test.refused {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			deployertest.Refused(t, err, report.Refused, "10.96.0.10", "beyond those that were approved", "--allow takes-traffic:Service/prod/part")
			if unshown, ok := errors.AsType[*plan.PowersError](err); !ok || len(unshown.Powers) != 1 {
				t.Errorf("%v", err)
			}
			if slices.Contains(s.bed.Server.Names("Service"), "prod/part") {
				t.Error("it is deployed")
			}
			shown := s.plan(t, archive)
			s.options.Deploy.Allow = []string{"takes-traffic"}
			if allowed := s.plan(t, archive); allowed.Digest != shown.Digest || len(allowed.Unapproved()) > 0 {
				t.Errorf("%s asks for %+v, want the plan %s that was shown without --allow", allowed.Digest, allowed.Unapproved(), shown.Digest)
			}
			s.options.Deploy.Allow = nil
			p, err := approve("10.96.0.10")
			if err != nil {
				t.Fatalf("%v after %q", err, states(p))
			}
		})
	}
}

// TestApprovedOnce checks that what is deployed is not asked about again: where only MetalK8s' configuration lacks it, and where an object of it was
// deleted. The archive, which does not know the namespace, shows another power.
func TestApprovedOnce(t *testing.T) {
	s := newSite(t)
	if _, err := s.bed.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "prod", Namespace: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	archive := s.vendor.ArchiveOf(t, "shop", "1.0.0", twoFaced(t, "192.0.2.7", "192.0.2.7"))
	var err error
	for range 2 { // the first run refuses the Service in another namespace than the plan has shown
		p := s.plan(t, archive)
		p.Approve(p.Unapproved())
		err = p.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for planned, undo := range map[string]func(){
		"activate planned": func() {
			if _, err := s.Host.Configuration.Edit(t.Context(), func(c *schema.SolutionsConfiguration) { delete(c.Active, "shop") }); err != nil {
				t.Error(err)
			}
		},
		"deploy planned": func() { s.bed.Deleted("Service", "elsewhere", "part") },
	} {
		undo()
		p := s.plan(t, archive)
		if missing := p.Unapproved(); !slices.Contains(states(p), planned) || len(missing) > 0 {
			t.Errorf("%s: %q asks for %+v", planned, states(p), missing)
		}
		if err := p.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestShownPowersAreEnough checks that powers of many kinds which a plan shows offline allow what the cluster gets.
func TestShownPowersAreEnough(t *testing.T) {
	s := newSite(t)
	s.options.Deploy.NoWait = true
	c := deployertest.Content{
		Images: []string{"agent"},
		Role:   "- {apiGroups: [''], resources: [secrets, nodes], verbs: ['*']}", RoleKind: "ClusterRole",
		Manifest: "components: [{name: part, manifests: components/part.yaml}, {name: host, scope: cluster, namespace: team-b, manifests: components/host.yaml}]",
		Files: map[string]string{
			"operator/cluster/objects.yaml": `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: op}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all},
 subjects: [{kind: ServiceAccount, name: op, namespace: shop-system}]}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: mine, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: x}
---
{apiVersion: v1, kind: Service, metadata: {name: guard}, spec: {selector: {a: b}, ports: [{port: 443}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: guard.shop.example, sideEffects: None, admissionReviewVersions: [v1],
 clientConfig: {service: {name: guard, namespace: shop-system}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}]}
`,
			"components/part.yaml": `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: part}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
 spec: {hostPID: true, priorityClassName: system-node-critical, volumes: [{name: a, hostPath: {path: /}}],
 containers: [{name: c, image: '{{ repository }}/agent:1.0.0', securityContext: {privileged: true, capabilities: {add: [NET_ADMIN]}}}]}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: part}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}, {kind: ServiceAccount, name: default}]}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: part}, spec: {podSelector: {}, policyTypes: [Ingress]}}
---
{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {type: NodePort, externalIPs: [192.0.2.7], selector: {a: b}, ports: [{port: 1}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: part}, spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: part, port: {number: 1}}}}]}}]}}
`,
			"components/host.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: host, namespace: team-b}}\n",
		},
	}
	p := s.plan(t, s.vendor.ArchiveOf(t, "shop", "1.0.0", c))
	missing := p.Unapproved()
	p.Approve(missing)
	if err := p.Run(t.Context()); err != nil || len(missing) < 10 {
		t.Fatalf("%d powers: %v", len(missing), err)
	}
}
