package powers_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

const operatorRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [%s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {kind: ClusterRole, name: %[1]s}
subjects: [{%[3]s}]
`

func judged(t *testing.T, role, rules, subject string) []schema.Power {
	t.Helper()
	return powers.Judge(acme(), read(t, "a.yaml", fmt.Appendf(nil, operatorRole, role, rules, subject)))
}

func TestUncovered(t *testing.T) {
	const account, mallory = "kind: ServiceAccount, name: operator, namespace: acme", "kind: User, name: mallory"
	const nodes, pods = `{apiGroups: [""], resources: [nodes], verbs: [get, list]}`, `{apiGroups: [""], resources: [nodes, pods], verbs: [get, list]}`
	const all = `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`
	for _, test := range []struct {
		name                 string
		role, rules, subject string // wanted; approved is to get nodes
		want                 []schema.PowerName
	}{
		{"the same", "op", nodes, account, nil},
		{"less", "op", `{apiGroups: [""], resources: [nodes], verbs: [get]}`, account, nil},
		{"named", "op", `{apiGroups: [""], resources: [nodes], verbs: [get], resourceNames: [a]}`, account, nil},
		{"of its own group", "op", nodes + `, {apiGroups: [acme.example.com], resources: ["*"], verbs: ["*"]}`, account, nil},
		{"another resource", "op", pods, account, []schema.PowerName{schema.PowerReadOthers}},
		{"another verb", "op", `{apiGroups: [""], resources: [nodes], verbs: [get, patch]}`, account, []schema.PowerName{schema.PowerControlNodes}},
		{"everything", "op", all, account, []schema.PowerName{schema.PowerAllRights}},
		{"another role", "op2", nodes, account, []schema.PowerName{schema.PowerReadOthers}},
		{"another subject", "op", nodes, mallory, []schema.PowerName{schema.PowerReadOthers, schema.PowerRightsForPeople}},
	} {
		t.Run(test.name, func(t *testing.T) {
			approved := judged(t, "op", nodes, account)
			var got []schema.PowerName
			for _, p := range powers.Uncovered(approved, judged(t, test.role, test.rules, test.subject)) {
				got = append(got, p.Name)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Effects are compared as sets; what no approval allows is never covered, and what is only shown is never asked for.
func TestUncoveredEffects(t *testing.T) {
	power := func(need schema.Need, effects ...string) []schema.Power {
		return []schema.Power{{Name: schema.PowerPodOnNode, Reach: schema.ReachNode, Need: need, Effects: effects}}
	}
	rights := func(effects ...string) []schema.Power {
		role := schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "op"}
		return []schema.Power{{Name: schema.PowerBorrowsRights, Reach: schema.ReachCluster, Need: schema.NeedApproval, Object: role, Effects: effects}}
	}
	for _, test := range []struct {
		name             string
		approved, wanted []schema.Power
		covered          bool
	}{
		{"fewer", power(schema.NeedApproval, "hostPath /a", "privileged"), power(schema.NeedApproval, "hostPath /a"), true},
		{"others", power(schema.NeedApproval, "hostPath /a"), power(schema.NeedApproval, "hostPath /b"), false},
		{"everything, from the archive", power(schema.NeedApproval, "*"), power(schema.NeedApproval, "pv-bank"), false},
		{"of every namespace", rights("*"), rights("shop"), true},
		{"of every namespace, with other labels", rights("*", "roles labelled a"), rights("*", "roles labelled b"), false},
		{"nothing approved", nil, power(schema.NeedApproval, "a"), false},
		{"refused", power(schema.NeedRefused, "a"), power(schema.NeedRefused, "a"), false},
		{"shown", nil, power(schema.NeedShown, "a"), true},
	} {
		if got := len(powers.Uncovered(test.approved, test.wanted)) == 0; got != test.covered {
			t.Errorf("%s: covered %v", test.name, got)
		}
	}
}

// A manifest cannot claim a group that another owner defines in the cluster.
func TestGroupsCannotBeClaimed(t *testing.T) {
	webhook := func(group string) []powers.Object {
		return read(t, "a.yaml", fmt.Appendf(nil, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a},
			webhooks: [{name: a, rules: [{apiGroups: [%q], resources: ["*"], operations: ["*"]}]}]}`, group))
	}
	foreign := func(group string) string {
		if group == "odd.example.com" {
			return "Solution odd"
		}
		return ""
	}
	for group, want := range map[string]string{
		"acme.example.com": "[]", "rbac.authorization.k8s.io": "[claims-group intercepts-requests]", "coordination.k8s.io": "[claims-group intercepts-requests]",
		"batch": "[claims-group intercepts-requests]", "solutions.metalk8s.scality.com": "[claims-group intercepts-requests]",
		"acme.metalk8s.scality.com": "[]", "odd.example.com": "[intercepts-requests]",
	} {
		owner := powers.Owner{Solution: "acme", Namespaces: []string{"acme-system"}, Groups: []string{group}, ForeignGroup: foreign}
		names := []schema.PowerName{}
		for _, p := range powers.Judge(owner, webhook(group)) {
			names = append(names, p.Name)
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%s: %v, want %s", group, names, want)
		}
	}
	if got := powers.OwnGroups("acme", []string{"acme.example.com", "apps", "x.k8s.io"}, nil); len(got) != 1 {
		t.Errorf("own groups %q", got)
	}
}

// Of the group of a well-known controller, a Solution has only the kinds whose CRDs it brings, in its operator or in a chart. A wildcard is its
// own with the controller's main kind.
func TestGroupsOfControllersCannotBeClaimed(t *testing.T) {
	claimed := []string{"acme.example.com", "helm.toolkit.fluxcd.io", "gateway.keda.sh", "notkeda.sh"}
	crd := func(plural, kind string) powers.Object {
		return read(t, "crd.yaml", fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.helm.toolkit.fluxcd.io},
			spec: {group: helm.toolkit.fluxcd.io, names: {plural: %[1]s, kind: %s}}}`, plural, kind))[0]
	}
	dummies, releases := crd("dummies", "helmreleases"), crd("helmreleases", "HelmRelease")
	if got := fmt.Sprint(powers.OwnGroups("acme", claimed, nil)); got != "[acme.example.com notkeda.sh]" {
		t.Errorf("without a CRD: %s", got)
	}
	if got := fmt.Sprint(powers.OwnGroups("acme", claimed, []*unstructured.Unstructured{dummies.Unstructured})); got != "[acme.example.com helm.toolkit.fluxcd.io notkeda.sh]" {
		t.Errorf("with a CRD: %s", got)
	}
	role := func(resource string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [helm.toolkit.fluxcd.io], resources: ["` + resource + `"], verbs: [create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: a}, subjects: [{kind: ServiceAccount, name: a, namespace: acme}]}`
	}
	webhook := `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a},
		webhooks: [{name: a, rules: [{apiGroups: [helm.toolkit.fluxcd.io], resources: [helmreleases], operations: ["*"]}]}]}`
	for objects, want := range map[string]schema.PowerName{
		"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a, namespace: acme}}": schema.PowerInstructsController,
		role("helmreleases"): schema.PowerInstructsController, role("helmreleases/status"): schema.PowerInstructsController,
		role("*"): schema.PowerInstructsController, webhook: schema.PowerInterceptsRequests,
	} {
		for _, test := range []struct {
			claimed []string // by the manifest, with the CRD in a chart
			crds    []powers.Object
			asks    bool
		}{{claimed, nil, true}, {claimed, []powers.Object{dummies}, true}, {claimed, []powers.Object{releases}, false}, {nil, []powers.Object{dummies}, true}, {nil, []powers.Object{releases}, false}} {
			owner, all := acme(), read(t, "a.yaml", []byte(objects))
			if owner.Claimed = test.claimed; test.claimed != nil {
				all = append(all, test.crds...)
			} else { // in its operator, which was activated before
				owner.Groups = append(owner.Groups, "helm.toolkit.fluxcd.io")
				owner.Definitions = append(owner.Definitions, powers.DefinitionOf(test.crds[0].Unstructured))
			}
			got := slices.DeleteFunc(powers.Judge(owner, all), func(p schema.Power) bool { return p.Name != want })
			if asks := len(got) > 0; asks != test.asks {
				t.Errorf("%s\nwith %v, %v: asks %v, want %v", objects, test.claimed, test.crds, asks, test.asks)
			}
		}
	}
}

// TestUncoveredMounts checks that an approval of a missing volume covers no setting of the pod with the volume's name.
func TestUncoveredMounts(t *testing.T) {
	pod := func(container string) []schema.Power {
		return powers.Judge(acme(), read(t, "a.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: acme}, spec: {containers: [{name: a, image: a, "+container+"}]}}")))
	}
	approved, wanted := pod("volumeMounts: [{name: privileged, mountPath: /a}]"), pod("securityContext: {privileged: true}")
	if left := powers.Uncovered(approved, wanted); len(approved) != 1 || len(left) != 1 {
		t.Errorf("%+v covers %+v", approved, wanted)
	}
}

// TestUncoveredTraffic checks that an approval of a wildcard covers nothing else that has the name of a host beside it.
func TestUncoveredTraffic(t *testing.T) {
	service := func(hosts, spec string) []schema.Power {
		return powers.Judge(acme(), read(t, "a.yaml", []byte("{apiVersion: v1, kind: Service, metadata: {name: a, namespace: acme, annotations: {external-dns.alpha.kubernetes.io/hostname: '"+hosts+"'}}, spec: {"+spec+"}}")))
	}
	ingress := func(annotation, path string) []schema.Power {
		return powers.Judge(acme(), read(t, "a.yaml", []byte("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: acme, annotations: {"+annotation+"}}, spec: {rules: [{http: {paths: [{path: "+path+"}]}}]}}")))
	}
	for _, test := range []struct{ approved, wanted []schema.Power }{
		{service("*.example.com, 10.96.0.1", ""), service("", "externalIPs: [10.96.0.1]")},
		{service("*.example.com, a.team-b.svc", ""), service("", "type: ExternalName, externalName: a.team-b.svc")},
		{service("*.example.com, 127.0.0.1", ""), service("", "type: ExternalName, externalName: 127.0.0.1")},
		{ingress("external-dns.alpha.kubernetes.io/hostname: '*.example.com, /bank'", "/"), ingress("traefik.ingress.kubernetes.io/router.priority: '9'", "/bank")},
		{ingress("external-dns.alpha.kubernetes.io/hostname: '*.example.com, team-b-a@kubernetescrd'", "/"), ingress("traefik.ingress.kubernetes.io/router.middlewares: team-b-a@kubernetescrd", "/env/prod/acme/acme")},
	} {
		if left := powers.Uncovered(test.approved, test.wanted); len(test.approved) != 1 || len(left) != 1 {
			t.Errorf("%+v covers %+v", test.approved, test.wanted)
		}
	}
}

// TestUncoveredVolumes checks that an approval of a volume that is not the Solution's covers no other source with the same name.
func TestUncoveredVolumes(t *testing.T) {
	pod := func(volume string) []schema.Power {
		return powers.Judge(acme(), read(t, "a.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: acme}, spec: {containers: [{name: a, image: a}], volumes: ["+volume+"]}}")))
	}
	for approved, wanted := range map[string]string{
		"{name: data, rbd: {monitors: [m], image: shop}}":                                              "{name: data, rbd: {monitors: [m], image: bank}}",
		"{name: data, csi: {driver: d, volumeAttributes: {share: shop}}}":                              "{name: data, csi: {driver: d, volumeAttributes: {share: bank}}}",
		"{name: data, iscsi: {targetPortal: p, iqn: 'iqn.2026-11.example:shop', lun: 0}}":              "{name: data, iscsi: {targetPortal: p, iqn: 'iqn.2026-11.example:bank', lun: 0}}",
		"{name: data, nfs: {server: s, path: /a, readOnly: true}}":                                     "{name: data, nfs: {server: s, path: /a}}",
		"{name: data, ephemeral: {volumeClaimTemplate: {spec: {volumeName: '*'}}}}":                    "{name: data, ephemeral: {volumeClaimTemplate: {spec: {volumeName: bank}}}}",
		"{name: data, flexVolume: {driver: d}}, {name: b, hostPath: {path: /a}}":                       "{name: data, flexVolume: {driver: d, options: {share: bank}}}, {name: b, hostPath: {path: /a}}",
		"{name: data, cephfs: {monitors: [m], path: /shop}}, {name: other, nfs: {server: s, path: /}}": "{name: data, cephfs: {monitors: [m], path: /bank}}, {name: other, nfs: {server: s, path: /}}",
	} {
		if left := powers.Uncovered(pod(approved), pod(approved)); len(left) > 0 {
			t.Errorf("%s does not cover itself: %+v", approved, left)
		}
		if left := powers.Uncovered(pod(approved), pod(wanted)); len(left) != 1 || left[0].Name != schema.PowerUsesForeignData {
			t.Errorf("%s covers %s: %+v", approved, wanted, left)
		}
	}
}

// TestUncoveredSettings checks that an approval of one SELinux setting, host of a probe or sysctl covers no other.
func TestUncoveredSettings(t *testing.T) {
	pod := func(settings string) []schema.Power {
		return powers.Judge(acme(), read(t, "a.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: acme}, spec: {"+settings+"}}")))
	}
	const container = "containers: [{name: a, image: a, "
	for _, c := range [][2]string{
		{container + "securityContext: {seLinuxOptions: {user: acme_u}}}]", container + "securityContext: {seLinuxOptions: {type: spc_t}}}]"},
		{container + "securityContext: {seLinuxOptions: {type: acme_t}}}]", "securityContext: {seLinuxOptions: {role: acme_t}}, " + container + "}]"},
		{container + "livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}}]", container + "livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}}]"},
		{container + "startupProbe: {httpGet: {host: 127.0.0.1, port: 80}}}]", container + "readinessProbe: {tcpSocket: {host: 10.0.0.1, port: 80}}}]"},
		{container + "lifecycle: {postStart: {httpGet: {host: 127.0.0.1, port: 80}}}}]", container + "lifecycle: {preStop: {tcpSocket: {host: 10.0.0.1, port: 80}}}}]"},
		{"securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}, " + container + "}]", "securityContext: {sysctls: [{name: kernel.sem, value: '1'}]}, " + container + "}]"},
	} {
		if got := powers.Uncovered(pod(c[0]), pod(c[0])); len(got) > 0 {
			t.Errorf("an approval of %s does not cover the same", c[0])
		}
		if got := powers.Uncovered(pod(c[0]), pod(c[1])); len(got) != 1 {
			t.Errorf("an approval of %s covers %s", c[0], c[1])
		}
	}
}
