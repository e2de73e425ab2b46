package deployer_test

import (
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestSystemNamespaceOfOthers checks that a component with objects in <solution>-system does not share this namespace with its creator: the
// Namespace is planned, and has to be adopted.
func TestSystemNamespaceOfOthers(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop-system}}\n")
	b.Imported(shop, "1.0.0", deployertest.Content{
		Files:    map[string]string{"components/part.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: part, namespace: shop-system}}\n"},
		Manifest: "components: [{name: part, scope: cluster, namespace: " + neighbour + ", namespaces: [shop-system], manifests: components/part.yaml}]",
	})
	activate := func(adopt bool) error {
		_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0", Options: plan.Options{Adopt: adopt}})
		return err
	}
	deployertest.Refused(t, activate(false), report.Conflict, "Namespace shop-system", "--adopt")
	if b.Server.Object("ConfigMap", "shop-system", "part") != nil {
		t.Error("refused, but the object was created")
	}
	if err := activate(true); err != nil {
		t.Fatal(err)
	}
}

// TestSystemNamespaceIsNotShared checks that references to <solution>-system need an approval, in an activation and in an environment, if others
// have created this namespace.
func TestSystemNamespaceIsNotShared(t *testing.T) {
	service := func(namespace string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: part}, spec: {type: ExternalName, externalName: db." + namespace + ".svc.cluster.local}}\n"
	}
	own := record.Key{Name: shop}.ID()
	for _, labels := range []string{"{}", "{solutionctl.io/release: " + own + "}", "{solutionctl.io/release: bank}"} {
		b := deployertest.New(t)
		b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop-system, labels: "+labels+"}}\n")
		b.Activated(shop, "1.0.0", shown(service("shop-system")))
		_, err := b.Add(t.Context(), deployer.AddOptions{Environment: site, Solution: shop, Version: "1.0.0"})
		if strings.Contains(labels, own) {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		deployertest.Refused(t, err, report.Refused, "shop-system", "Service/site/part")
	}
}

// TestSystemNamespaceIsHidden checks that a user without permission to read <solution>-system can plan changes of an environment.
func TestSystemNamespaceIsHidden(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", shown("{apiVersion: v1, kind: ConfigMap, metadata: {name: part}}\n"))
	b.Activated(shop, "1.1.0", shown("{apiVersion: v1, kind: ConfigMap, metadata: {name: part}, data: {a: b}}\n"))
	b.Only(nowhere, func(a authorization.ResourceAttributes) bool {
		return a.Resource != "namespaces" || a.Name != "shop-system"
	})
	must(b, upgrade("1.1.0"))
}
