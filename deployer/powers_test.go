package deployer_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// wide is a Solution with objects for the whole cluster.
func wide(objects string) deployertest.Content {
	return deployertest.Content{Files: map[string]string{"operator/cluster/objects.yaml": objects}}
}

// shown is a Solution with a component in each environment.
func shown(objects string) deployertest.Content {
	return deployertest.Content{
		Files: map[string]string{"components/part.yaml": objects}, Manifest: "components: [{name: part, manifests: components/part.yaml}]",
	}
}

const clusterAdmin = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mallory},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}
`

// TestPowersAreAsked checks that powers beyond a Solution's own namespaces and groups are refused, with their effect and their holder,
// listed in a plan, and granted once they are allowed. The harmless twin needs no approval.
func TestPowersAreAsked(t *testing.T) {
	for name, test := range map[string]struct {
		content deployertest.Content
		names   []string // in the refusal
	}{
		"a binding for a person": {wide(clusterAdmin), []string{"mallory", "--allow"}},
		"rights on everything": {wide(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: op}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all},
 subjects: [{kind: ServiceAccount, name: op, namespace: shop-system}]}
`), []string{"shop-system/op", "--allow all-rights:"}},
		"a webhook about Leases": {guarded(), []string{"guard", "--allow intercepts-requests:ValidatingWebhookConfiguration/guard"}},
		"a default of the cluster": {wide(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: mine, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: x}
`), []string{"--allow default-for-everyone:StorageClass/mine"}},
		"a privileged pod": {shown(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: part}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
 spec: {hostPID: true, containers: [{name: c, image: 'shop-operator:1.0.0', securityContext: {privileged: true}}]}}}}
`), []string{"DaemonSet site/part", "--allow pod-on-node:DaemonSet/site/part"}},
		"a RoleBinding for everybody": {shown(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: part}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]}
`), []string{"system:authenticated", "--allow"}},
		"addresses of others": {
			shown("{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1], selector: {a: b}, ports: [{port: 1}]}}\n"),
			[]string{"10.96.0.1", "--allow takes-traffic:Service/site/part"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Imported(shop, "1.0.0", test.content)
			run := func(o plan.Options) (*schema.Operation, error) {
				if len(test.content.Manifest) > 0 {
					return b.Add(t.Context(), deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0"})
				}
				return b.Activate(t.Context(), deployer.ActivateOptions{Options: o, Solution: shop, Version: "1.0.0"})
			}
			if len(test.content.Manifest) > 0 {
				must(b, activate("1.0.0"))
			}
			_, err := run(plan.Options{})
			deployertest.Refused(t, err, report.Refused, test.names...)
			missing, ok := errors.AsType[*plan.PowersError](err)
			if !ok {
				t.Fatalf("%v is about no powers", err)
			}
			planned, err := run(plan.Options{DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			deployertest.Valid(t, "operation", planned)
			if len(planned.Unapproved()) == 0 {
				t.Error("the plan does not show it as not approved")
			}
			for _, p := range planned.Powers {
				if _, known := test.content.Files[p.File]; !known {
					t.Errorf("%s of %s is from file %q", p.Name, p.Object, p.File)
				}
			}
			allowed := plan.Options{Allow: missing.Allowances(), Expect: planned.Digest}
			done, err := run(allowed)
			if err != nil || len(done.Unapproved()) > 0 {
				t.Fatalf("allowed: %v", err)
			}
			again, err := run(plan.Options{})
			if err != nil || !again.Empty() {
				t.Errorf("again: %v", err)
			}
		})
	}
	t.Run("harmless", func(t *testing.T) {
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", deployertest.Content{})
		planned, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true}, Environment: site, Solution: shop, Version: "1.0.0"})
		if err != nil || len(planned.Powers) > 0 {
			t.Errorf("%+v, %v", planned, err)
		}
	})
}

// TestGroupsOfOthersNeedApproval checks that a Solution needs an approval for objects of an API group whose CRDs others have installed,
// also where its manifest claims the group and requires the CRDs, or where the archive has copies of them. It needs none where MetalK8s has
// activated the version with the CRDs.
func TestGroupsOfOthersNeedApproval(t *testing.T) {
	definition := deployertest.Content{}.CRD("bank")
	claiming := func(operator string, files map[string]string) deployertest.Content {
		content := shown("{apiVersion: " + deployertest.Group("bank") + "/v1, kind: Clock, metadata: {name: part}, spec: {hands: 2}}\n")
		content.Manifest += "\n  customApiGroups: [" + deployertest.Group("bank") + "]\n  operator: {" + operator + "}"
		maps.Copy(content.Files, files)
		return content
	}
	copied := map[string]string{"operator/deploy/crds/bank_crd.yaml": definition}
	for name, test := range map[string]struct {
		content deployertest.Content
		active  string
		own     bool
	}{
		"required":              {claiming("requiresCRDs: [{name: "+deployertest.Definition("bank")+", versions: [v1]}]", nil), "0.9.0", false},
		"copied":                {claiming("", copied), "0.9.0", false},
		"activated by MetalK8s": {claiming("", copied), "1.0.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Server.Put(t, definition)
			b.Server.Put(t, deployertest.Content{}.CRD(shop))
			b.Imported(shop, "0.9.0", plain)
			b.Imported(shop, "1.0.0", test.content)
			if err := b.Records.Documents.SetActive(t.Context(), shop, test.active); err != nil {
				t.Fatal(err)
			}
			_, err := b.Add(t.Context(), deployer.AddOptions{Environment: site, Solution: shop, Version: "1.0.0"})
			if test.own && err != nil {
				t.Fatal(err)
			}
			if !test.own {
				deployertest.Refused(t, err, report.Refused, "instructs-controller:Clock/site/part")
			}
			if there := b.Server.Object("Clock", site, "part") != nil; there != test.own {
				t.Errorf("the object is there: %t", there)
			}
		})
	}
}

// TestServersOfOthersNeedApproval checks that rights on an API group that a server behind the API server has need an approval, also where the
// manifest claims the group. They need none where the Solution has brought that server, and nothing is asked of a user who cannot read it.
func TestServersOfOthersNeedApproval(t *testing.T) {
	const group = "virt.example"
	server := func(labels string) string {
		return "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1." + group + labels + "}, spec: {group: " + group + ", version: v1, service: {name: a, namespace: virt}}}"
	}
	content := wide(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: op}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: op}, rules: [{apiGroups: [` + group + `], resources: ['*'], verbs: ['*']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: op}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op},
 subjects: [{kind: ServiceAccount, name: op, namespace: shop-system}]}
`)
	content.Manifest = "customApiGroups: [" + group + "]"
	for name, test := range map[string]struct {
		server    string
		forbidden bool
		own       bool
	}{
		"not there":      {"{apiVersion: v1, kind: Namespace, metadata: {name: virt}}", false, true},
		"of others":      {server(""), false, false},
		"another's":      {server(", labels: {solutionctl.io/release: " + record.Key{Name: "virt"}.ID() + "}"), false, false},
		"its own":        {server(", labels: {solutionctl.io/release: " + record.Key{Name: shop}.ID() + "}"), false, true},
		"cannot be read": {server(""), true, false},
		"two versions of its own definition": {
			strings.Replace(strings.ReplaceAll(deployertest.Content{Versions: "v1 v2"}.CRD(shop), deployertest.Group(shop), group), "metadata: {", "metadata: {labels: {solutionctl.io/release: "+record.Key{Name: shop}.ID()+"}, ", 1), true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Server.Put(t, test.server)
			b.Imported(shop, "1.0.0", content)
			b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if test.forbidden && strings.Contains(r.URL.Path, "/apiservices/") {
					clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "apiservices"}, "v1."+group, errors.New(`User "jane" cannot get resource "apiservices" in API group "apiregistration.k8s.io" at the cluster scope`)))
					return true
				}
				return false
			}
			_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0"})
			if test.own && err != nil {
				t.Fatal(err)
			}
			if !test.own {
				deployertest.Refused(t, err, report.Refused, "ClusterRole/")
			}
		})
	}
}

// elsewhere is a Solution with a component of the cluster in a namespace of others.
func elsewhere(source string, files map[string]string) deployertest.Content {
	return deployertest.Content{
		Files:    files,
		Manifest: "components: [{name: part, scope: cluster, namespace: " + neighbour + ", namespaces: [" + neighbour + "], " + source + "}]",
	}
}

// neighbour is a namespace of another team.
const neighbour = "team-b"

// TestObjectsElsewhereNeedApproval checks that objects of a component outside the Solution's namespaces need an approval: users who run
// pods there can act as its accounts.
func TestObjectsElsewhereNeedApproval(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	b.Imported(shop, "1.0.0", elsewhere("manifests: components/part.yaml", map[string]string{
		"components/part.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: part}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
 spec: {serviceAccountName: deployer, containers: [{name: c, image: 'shop-operator:1.0.0'}]}}}}
`,
	}))
	run := func(allow ...string) error {
		_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0", Options: plan.Options{Allow: allow}})
		return err
	}
	deployertest.Refused(t, run(), report.Refused, "account", "act-as-others:Deployment/team-b/part", "objects-elsewhere:Deployment/team-b/part")
	deployertest.Refused(t, run("objects-elsewhere"), report.Refused, "act-as-others:Deployment/team-b/part")
	if b.Server.Object("Deployment", neighbour, "part") != nil {
		t.Error("refused, and there")
	}
	if err := run("objects-elsewhere", "act-as-others"); err != nil {
		t.Fatal(err)
	}
}

func neighbourNamespace() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": neighbour}}}
}

// TestHostsOfOthersNeedApproval checks that an Ingress needs an approval for a host of another owner's Ingress, because it would receive
// its requests. A free host, and one of an earlier version, need none.
func TestHostsOfOthersNeedApproval(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	ingress := func(name, host string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: " + name + "}, spec: {rules: [{host: " + host +
			", http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 1}}}}]}}]}}\n"
	}
	b.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"namespace": neighbour, "name": "bank"},
		"spec": map[string]any{"rules": []any{map[string]any{"host": "bank.example.com"}, map[string]any{"host": "*.wild.example.com"}}},
	}})
	b.Added(shop, "1.0.0", shown(ingress("part", "shop.example.com")))
	b.Activated(shop, "1.1.0", shown(ingress("part", "shop.example.com")+"---\n"+ingress("more", "shop.example.com")))
	must(b, upgrade("1.1.0"))
	for version, host := range map[string]string{"1.2.0": "bank.example.com", "1.3.0": "a.wild.example.com"} {
		b.Activated(shop, version, shown(ingress("part", host)))
		_, err := upgrade(version)(t.Context(), b.Deployer, plan.Options{})
		deployertest.Refused(t, err, report.Refused, host, "Ingress team-b/bank", "--allow takes-traffic:Ingress/site/part")
	}
	_, err := b.Change(t.Context(), deployer.ChangeOptions{
		Options: plan.Options{Allow: []string{"takes-traffic:Ingress/site/part"}}, Environment: site, Solution: shop, Version: "1.2.0", Direction: records.Up,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDataOfOthersNeedsApproval checks that pods of an environment need an approval to read what another Solution has there. What an
// administrator has made is for all of them.
func TestDataOfOthersNeedsApproval(t *testing.T) {
	b := deployertest.New(t)
	pod := func(spec string) string {
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: part}, spec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
			"containers: [{name: c, image: 'shop-operator:1.0.0'" + spec + "}}}}}\n"
	}
	b.Added(shop, "1.0.0", shown(pod("}]}")))
	b.Server.Put(t, `{apiVersion: v1, kind: Secret, metadata: {name: bank, namespace: site, labels: {solutionctl.io/release: bank.site}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bank, namespace: site, labels: {solutionctl.io/release: bank.site}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: site, namespace: site}}
`)
	for version, c := range map[string]struct{ spec, other string }{
		"1.1.0": {"}], volumes: [{name: a, secret: {secretName: bank}}]}", "Secret/bank of Solution bank"},
		"1.2.0": {", envFrom: [{configMapRef: {name: bank}}]}]}", "ConfigMap/bank of Solution bank"},
		"1.3.0": {", env: [{name: A, valueFrom: {secretKeyRef: {name: bank, key: a}}}]}]}", "Secret/bank of Solution bank"},
		"1.4.0": {"}], volumes: [{name: a, secret: {secretName: site}}, {name: b, secret: {secretName: none}}]}", ""},
	} {
		b.Activated(shop, version, shown(pod(c.spec)))
		_, err := upgrade(version)(t.Context(), b.Deployer, plan.Options{DryRun: true})
		if c.other == "" {
			if err != nil {
				t.Errorf("%s: %v", version, err)
			}
			continue
		}
		_, err = upgrade(version)(t.Context(), b.Deployer, plan.Options{})
		deployertest.Refused(t, err, report.Refused, c.other, "--allow uses-foreign-data:CronJob/site/part")
	}
}

// TestClaimsOfOthersNeedApproval checks that a StatefulSet needs an approval to use claims that one of another Solution makes, or that another
// Solution has, and so do pods that use a claim of such a StatefulSet. Claims with a name that only begins alike are not compared.
func TestClaimsOfOthersNeedApproval(t *testing.T) {
	b := deployertest.New(t)
	set := func(name, template, volumes string) string {
		return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: " + name + "}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {containers: [{name: c, image: 'shop-operator:1.0.0'}], volumes: [" + volumes + "]}}, volumeClaimTemplates: [{metadata: {name: " + template + "}}]}}\n"
	}
	b.Added(shop, "1.0.0", shown(set("own", "data", "")))
	b.Server.Put(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: my-postgres, namespace: site, labels: {solutionctl.io/release: bank.site}},
spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-my-postgres-0, namespace: site}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-postgres-main-0, namespace: site, labels: {solutionctl.io/release: bank.site}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: cache-bank-3, namespace: site, labels: {solutionctl.io/release: bank.site}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-own-0, namespace: site}}
`)
	claim := func(name string) string { return "{name: v, persistentVolumeClaim: {claimName: " + name + "}}" }
	shared := func(name string) string {
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name + "}}\n"
	}
	for version, test := range map[string]struct{ objects, other string }{
		"1.1.0": {set("postgres", "data-my", ""), "PersistentVolumeClaim/data-my-postgres-* of Solution bank"},
		"1.2.0": {set("bank", "cache", ""), "PersistentVolumeClaim/cache-bank-* of Solution bank"},
		"1.3.0": {set("own", "data", claim("data-my-postgres-0")), "PersistentVolumeClaim/data-my-postgres-0 of Solution bank"},
		"1.4.0": {set("postgres", "data", claim("data-postgres-main-0")), "PersistentVolumeClaim/data-postgres-main-0 of Solution bank"},
		"1.5.0": {set("postgres", "data", claim("data-postgres-0")), ""},
		"1.7.0": {shared("data-my-postgres-1"), "share a volume with a StatefulSet of Solution bank"},
		"1.8.0": {shared("data-my-postgres-main"), ""},
		"1.6.0": {set("own", "data", claim("data-own-0")), ""},
	} {
		b.Activated(shop, version, shown(test.objects))
		planned, err := upgrade(version)(t.Context(), b.Deployer, plan.Options{DryRun: true})
		if err != nil || (test.other == "") != (len(planned.Unapproved()) == 0) {
			t.Errorf("%s: %+v, %v", version, planned.Unapproved(), err)
			continue
		}
		if test.other != "" {
			_, err = upgrade(version)(t.Context(), b.Deployer, plan.Options{})
			deployertest.Refused(t, err, report.Refused, test.other, "--allow uses-foreign-data:")
		}
	}
}

// TestClaimsOfFormerSolutionsNeedApproval checks that claims which a removed Solution, or a removed component, left need an approval as those of
// others do. Only claims that exist count, and a StatefulSet that runs needs no approval for its own.
func TestClaimsOfFormerSolutionsNeedApproval(t *testing.T) {
	set := func(name string) string {
		return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: " + name + "}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {containers: [{name: c, image: 'shop-operator:1.0.0'}]}}, volumeClaimTemplates: [{metadata: {name: data}}]}}\n"
	}
	begin := func(t *testing.T) *deployertest.Bed {
		t.Helper()
		b := deployertest.New(t)
		b.Added("bank", "1.0.0", shown(set("postgres")))
		b.Server.Put(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-postgres-0, namespace: site}}\n---\n"+
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-own-0, namespace: site}}\n")
		must(b, remove("bank"))
		return b
	}
	const whose = "of Solution bank, which was removed"
	for name, test := range map[string]struct{ objects, other string }{
		"the same StatefulSet":     {set("postgres"), "PersistentVolumeClaim/data-postgres-* " + whose},
		"a pod":                    {usingClaim("data-postgres-0"), "PersistentVolumeClaim/data-postgres-0 " + whose},
		"a claim":                  {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-postgres-0}}\n", "share a volume with a StatefulSet " + whose},
		"another StatefulSet":      {set("own"), ""},
		"a claim that is not left": {usingClaim("data-postgres-1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t)
			b.Activated(shop, "1.0.0", shown(test.objects))
			_, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true, Refuse: true, Adopt: true}, Environment: site, Solution: shop, Version: "1.0.0"})
			if test.other == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			deployertest.Refused(t, err, report.Refused, test.other, "--allow uses-foreign-data:")
		})
	}
	t.Run("another version of what uses them", func(t *testing.T) {
		b := begin(t)
		b.Activated(shop, "1.0.0", shown(set("postgres")))
		b.Activated(shop, "1.1.0", shown(strings.Replace(set("postgres"), "replicas: 0", "replicas: 0, minReadySeconds: 1", 1)))
		if _, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{Allow: []string{"uses-foreign-data"}}, Environment: site, Solution: shop, Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		forgetApprovals(t, b)
		must(b, upgrade("1.1.0"))
	})
	t.Run("a record that cannot be read", func(t *testing.T) {
		b := begin(t)
		for _, name := range b.Server.Names("Secret") {
			if short, stored := strings.CutPrefix(name, cluster.SystemNamespace+"/"); stored && strings.HasPrefix(short, "state.bank.part") {
				secret := b.Server.Object("Secret", cluster.SystemNamespace, short)
				secret.Object["data"] = map[string]any{"state.json.gz": "AAAA"}
				b.Put(secret)
			}
		}
		b.Activated(shop, "1.0.0", shown(set("postgres")))
		planned, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true}, Environment: site, Solution: shop, Version: "1.0.0"})
		if err != nil || !strings.Contains(strings.Join(planned.Notices, "\n"), "claims that it left were not compared") {
			t.Errorf("%+v, %v", planned, err)
		}
	})
}

// usingClaim is a CronJob whose pods use a claim.
func usingClaim(name string) string {
	return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: part}, spec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
		"containers: [{name: c, image: 'shop-operator:1.0.0'}], volumes: [{name: v, persistentVolumeClaim: {claimName: " + name + "}}]}}}}}}\n"
}

// TestHostsOfRoutesAreCompared: a route or Gateway of any kind that the cluster has takes the requests of a host from one of any other kind,
// but a route does not from the Gateway that it is attached to.
func TestHostsOfRoutesAreCompared(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	for kind, group := range map[string]string{
		"HTTPRoute": "gateway.networking.k8s.io", "GRPCRoute": "gateway.networking.k8s.io", "Gateway": "gateway.networking.k8s.io", "Route": "route.openshift.io",
	} {
		b.Server.Put(t, strings.NewReplacer("monitoring.coreos.com", group, "servicemonitor", strings.ToLower(kind), "ServiceMonitor", kind).Replace(deployertest.ServiceMonitors))
	}
	b.Cluster.Refresh()
	b.Server.Put(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: bank, namespace: team-b}, spec: {hostnames: [bank.example.com]}}
---
{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: wiki, namespace: team-b}, spec: {host: wiki.example.com}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: own, namespace: site}, spec: {hostnames: [shop.example.com]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: front, namespace: team-b}, spec: {listeners: [{name: a, hostname: mail.example.com}, {name: b, hostname: '*.apps.example.com'}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: proxy, namespace: team-b, annotations: {external-dns.alpha.kubernetes.io/hostname: 'db.example.com,*.dns.example.com'}}, spec: {ports: [{port: 1}]}}
`)
	for version, c := range map[string]struct{ object, other string }{
		"1.1.0": {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: part}, spec: {rules: [{host: bank.example.com}]}}", "HTTPRoute team-b/bank"},
		"1.2.0": {"{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: part}, spec: {hostnames: [Wiki.example.com]}}", "Route team-b/wiki"},
		"1.3.0": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: part}, spec: {hostnames: [shop.example.com]}}", ""},
		"1.4.0": {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: part}, spec: {rules: [{host: mail.example.com}]}}", "Gateway team-b/front"},
		"1.5.0": {"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: part}, spec: {listeners: [{name: a, hostname: mail.example.com}]}}", "Gateway team-b/front"},
		"1.6.0": {
			"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: part}, spec: {hostnames: [a.b.apps.example.com], parentRefs: [{name: own}]}}",
			"Gateway team-b/front",
		},
		"1.7.0": {
			"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: part}, spec: {hostnames: [a.apps.example.com], parentRefs: [{name: front, namespace: team-b}]}}",
			"",
		},
		"1.8.0": {
			"{apiVersion: v1, kind: Service, metadata: {name: part, annotations: {external-dns.alpha.kubernetes.io/hostname: bank.example.com}}, spec: {clusterIP: None}}",
			"HTTPRoute team-b/bank",
		},
		"1.9.0":  {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: part}, spec: {rules: [{host: db.example.com}]}}", "Service team-b/proxy"},
		"1.10.0": {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: part}, spec: {rules: [{host: a.dns.example.com}]}}", ""},
	} {
		b.Activated(shop, version, shown(c.object))
		operation, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{DryRun: true, Refuse: true}, Environment: site, Solution: shop, Version: version})
		switch {
		case c.other != "":
			deployertest.Refused(t, err, report.Refused, c.other, "--allow takes-traffic:")
		case err != nil:
			t.Errorf("a host that is not of others: %v", err)
		case len(operation.Powers) != 1 || operation.Powers[0].Need != schema.NeedShown:
			t.Errorf("shown: %+v", operation.Powers)
		}
	}
}

// reader is a Solution whose account may do something in the whole cluster.
func reader(rules string, more string) deployertest.Content {
	return wide(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: op}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [` + rules + `]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader},
 subjects: [{kind: ServiceAccount, name: op, namespace: shop-system}]}
` + more)
}

// TestApprovalsAreOfSets: an approval is of what a version can do. A version that can do more asks again, whatever flags an earlier one
// was activated with; one that can do less does not, and neither does the way back.
func TestApprovalsAreOfSets(t *testing.T) {
	b := deployertest.New(t)
	nodes, secrets := "{apiGroups: [''], resources: [nodes], verbs: [get]}", "{apiGroups: [''], resources: [secrets], verbs: [get, list]}"
	b.Imported(shop, "1.0.0", reader(nodes, ""))
	b.Imported(shop, "1.1.0", reader("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", "---\n"+clusterAdmin))
	b.Imported(shop, "1.3.0", reader(nodes+", "+secrets, ""))
	run := func(version string, wide bool, allow ...string) error {
		o := deployer.ActivateOptions{Solution: shop, Version: version, Options: plan.Options{Allow: allow}}
		if wide {
			o.ClusterWide = &wide
		}
		_, err := b.Activate(t.Context(), o)
		return err
	}
	deployertest.Refused(t, run("1.0.0", false), report.Refused, "for account shop-system/op", "--allow")
	if err := run("1.0.0", true); err != nil {
		t.Fatal(err)
	}
	deployertest.Refused(t, run("1.1.0", false), report.Refused, "shop-system/op", "mallory")
	deployertest.Refused(t, run("1.1.0", true), report.Refused, "mallory") // it is about its own accounts
	if err := run("1.0.0", false); err != nil {
		t.Errorf("the approved version asks again: %v", err)
	}
	deployertest.Refused(t, run("1.3.0", false), report.Refused, "Secret", "--allow read-secrets:")
	if err := run("1.3.0", false, string(schema.PowerReadSecrets)); err != nil {
		t.Fatal(err)
	}
	if err := run("1.0.0", false); err != nil {
		t.Errorf("back: %v", err)
	}
	if err := run("1.3.0", false); err != nil {
		t.Errorf("what was approved is asked for again: %v", err)
	}
	deployertest.Refused(t, run("1.3.0", false, "read-secret"), report.Usage, "did you mean read-secrets?")
}

// TestWhatRunsNeedsNoApproval checks that powers that were never asked for, as those of a rule that is stricter now, need no approval for
// objects that stay as they are. They are not recorded as approved, so that a change of the object is asked for.
func TestWhatRunsNeedsNoApproval(t *testing.T) {
	b := deployertest.New(t)
	privileged := func(more string) deployertest.Content {
		return shown("{apiVersion: apps/v1, kind: Deployment, metadata: {name: part}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {hostNetwork: true, " + more + "containers: [{name: c, image: 'shop-operator:1.0.0'}]}}}}\n")
	}
	b.Activated(shop, "1.0.0", privileged(""))
	b.Activated(shop, "1.1.0", privileged(""))
	b.Activated(shop, "1.1.1", privileged("terminationGracePeriodSeconds: 5, "))
	b.Activated(shop, "1.2.0", privileged("hostPID: true, "))
	if _, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{Allow: []string{"pod-on-node", "schedules-above-others", "opens-to-outside"}}, Environment: site, Solution: shop, Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	forgetApprovals(t, b)
	must(b, add("1.0.0"))
	must(b, upgrade("1.1.0"))
	if state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: site, Name: shop}); err != nil || len(state.Approvals) > 0 {
		t.Errorf("recorded as approved: %+v, %v", state.Approvals, err)
	}
	for _, version := range []string{"1.1.1", "1.2.0"} {
		_, err := upgrade(version)(t.Context(), b.Deployer, plan.Options{})
		deployertest.Refused(t, err, report.Refused, "Deployment site/part", "--allow pod-on-node:")
	}
	_, err := b.Change(t.Context(), deployer.ChangeOptions{
		Options: plan.Options{Allow: []string{"pod-on-node:Deployment/site/part"}}, Environment: site, Solution: shop, Version: "1.2.0", Direction: records.Up,
	})
	if err != nil {
		t.Fatal(err)
	}
	must(b, rollback(0))
}

// forgetApprovals makes the record of the Solution one of a program that knew no approvals.
func forgetApprovals(t *testing.T, b *deployertest.Bed) {
	t.Helper()
	for _, name := range b.Server.Names("Secret") {
		short, stored := strings.CutPrefix(name, cluster.SystemNamespace+"/")
		if !stored || !strings.HasPrefix(short, "state.") {
			continue
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(recordOf(b, short)), &record); err != nil {
			t.Fatal(err)
		}
		delete(record, "approvals")
		record["formatVersion"] = 2
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err = w.Write(text)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		secret := b.Server.Object("Secret", cluster.SystemNamespace, short)
		secret.Object["data"] = map[string]any{"state.json.gz": base64.StdEncoding.EncodeToString(packed.Bytes())}
		b.Put(secret)
	}
}

// TestConfigurationAccepts: an EnvironmentConfiguration lists what is approved; what it does not list is refused before anything is written.
func TestConfigurationAccepts(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace(site, site)
	b.Activated(shop, "1.0.0", shown("{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1], selector: {a: b}, ports: [{port: 1}]}}\n"))
	apply := func(powers string) error {
		c, err := schema.ParseEnvironmentConfiguration("site.yaml", []byte("apiVersion: solutionctl.io/v1alpha1\nkind: EnvironmentConfiguration\n"+
			"spec: {name: "+site+", solutions: [{name: "+shop+", accept: {powers: ["+powers+"]}}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := b.Wanted(t.Context(), c.Spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Ensure(t.Context(), deployer.EnsureOptions{Environment: site, Solutions: wanted})
		return err
	}
	for _, powers := range []string{"", "pod-on-node", "'takes-traffic:Service/site/other'"} {
		b.Writes()
		deployertest.Refused(t, apply(powers), report.Refused, "takes-traffic:Service/site/part")
		if writes := slices.DeleteFunc(b.Writes(), isLock); len(writes) > 0 {
			t.Errorf("accepted is %q, and written were %q", powers, writes)
		}
	}
	if err := apply("takes-traffic"); err != nil {
		t.Fatal(err)
	}
	if err := apply(""); err != nil {
		t.Errorf("what is approved is asked for again: %v", err)
	}
}

// TestAcceptedDigests checks that a line of a configuration with the digest of a power accepts what it was printed for, and no version that can do
// more.
func TestAcceptedDigests(t *testing.T) {
	b := deployertest.New(t)
	for version, more := range map[string]string{"1.0.0": "", "1.1.0": ", 10.96.0.2"} {
		b.Imported(shop, version, shown("{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1"+more+"], selector: {a: b}, ports: [{port: 1}]}}\n"))
	}
	must(b, activate("1.0.0"))
	wanted := plan.Wanted{Solution: shop, Version: "1.0.0"}
	ensure := func() error {
		_, err := b.Ensure(t.Context(), deployer.EnsureOptions{Environment: site, Solutions: []plan.Wanted{wanted}})
		return err
	}
	missing, _ := errors.AsType[*plan.PowersError](ensure())
	if missing == nil {
		t.Fatal("nothing is asked for")
	}
	line := plan.Accepting(missing.Powers)
	accepted := strings.TrimSuffix(strings.TrimPrefix(line, `accept: {powers: ["`), `"]}`)
	if !strings.HasPrefix(accepted, "takes-traffic:Service/site/part@sha256:") {
		t.Fatal(line)
	}
	wanted.Allow = []string{accepted}
	if err := ensure(); err != nil {
		t.Fatal(err)
	}
	must(b, activate("1.1.0"))
	wanted.Version = "1.1.0"
	deployertest.Refused(t, ensure(), report.Refused, "10.96.0.2")
	wanted.Allow = []string{"takes-traffic:Service/site/part"}
	if err := ensure(); err != nil {
		t.Fatal(err)
	}
}

// TestRemovalEndsApprovals checks that a rollback to a revision from before a removal asks again, and that one which was interrupted ends nothing.
func TestRemovalEndsApprovals(t *testing.T) {
	taking := shown("{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {externalIPs: [10.96.0.1], selector: {a: b}, ports: [{port: 1}]}}\n")
	allowed := plan.Options{Allow: []string{"takes-traffic:Service/site/part"}}
	begin := func(t *testing.T) *deployertest.Bed {
		t.Helper()
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", shown("{apiVersion: v1, kind: ConfigMap, metadata: {name: part}}\n"))
		b.Activated(shop, "1.1.0", taking)
		if _, err := add("1.1.0")(t.Context(), b.Deployer, allowed); err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Run("removed", func(t *testing.T) {
		b := begin(t)
		must(b, remove(shop))
		must(b, add("1.0.0"))
		_, err := rollback(0)(t.Context(), b.Deployer, plan.Options{})
		deployertest.Refused(t, err, report.Refused, "10.96.0.1", "--allow takes-traffic:Service/site/part")
		if _, err = rollback(0)(t.Context(), b.Deployer, allowed); err != nil {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		b := begin(t)
		for number := 1; !anyBegun(b); number++ {
			mend := endingAt(b, number)
			_, err := remove(shop)(t.Context(), b.Deployer, plan.Options{})
			mend()
			if err == nil || number > manyWrites {
				t.Fatal("no write failed", err)
			}
		}
		must(b, rollback(0))
	})
}
