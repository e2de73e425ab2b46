package deployer_test

import (
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestDefinitionsOfTheAPIServerAreRefused activates a Solution with a CRD in a group of the API server, which would end with every
// request to the group: no approval allows it, and nothing of it is applied.
func TestDefinitionsOfTheAPIServerAreRefused(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", deployertest.Content{Files: map[string]string{"operator/deploy/crds/evils_crd.yaml": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: evils.rbac.authorization.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, experimental-only"}}
spec:
  group: rbac.authorization.k8s.io
  scope: Namespaced
  names: {kind: Evil, plural: evils, singular: evil, listKind: EvilList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`}})
	all := make([]string, 0, len(schema.PowerNames()))
	for _, name := range schema.PowerNames() {
		all = append(all, string(name))
	}
	wide := true
	for name, options := range map[string]plan.Options{
		"nothing allowed":    {},
		"all powers allowed": {Allow: all},
	} {
		_, err := b.Activate(t.Context(), deployer.ActivateOptions{Options: options, Solution: shop, Version: "1.0.0", ClusterWide: &wide})
		deployertest.Refused(t, err, report.Refused, "CustomResourceDefinition evils.rbac.authorization.k8s.io", "no approval")
		if len(b.Server.Names("CustomResourceDefinition")) > 0 {
			t.Errorf("%s: %q are there", name, b.Server.Names("CustomResourceDefinition"))
		}
	}
}

// TestDataOfOthersStays removes and deactivates a Solution with its data. Custom resources of a CRD that the Solution only needs, or that a
// version which was never active has a copy of, stay and refuse nothing.
func TestDataOfOthersStays(t *testing.T) {
	definition := deployertest.Content{}.CRD("bank")
	copied := deployertest.Content{Files: map[string]string{"operator/deploy/crds/bank_crd.yaml": definition}}
	for name, prepare := range map[string]func(b *deployertest.Bed){
		"required": func(b *deployertest.Bed) {
			b.Server.Put(t, definition)
			b.Added(shop, "1.0.0", deployertest.Content{Manifest: "operator: {requiresCRDs: [{name: " + deployertest.Definition("bank") + ", versions: [v1]}]}"})
		},
		"copied": func(b *deployertest.Bed) {
			b.Server.Put(t, definition)
			b.Imported(shop, "0.9.0", copied)
			b.Added(shop, "1.0.0", plain)
		},
		"copied from a Solution": func(b *deployertest.Bed) {
			b.Activated("bank", "1.0.0", plain)
			b.Imported(shop, "0.9.0", copied)
			b.Added(shop, "1.0.0", plain)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			prepare(b)
			b.Namespace("town", "town")
			for _, namespace := range []string{site, "town"} {
				b.Clock("bank", namespace, "bank", "hands: 2")
			}
			b.Clock(shop, site, "own", "hands: 2")
			var out export
			for _, data := range []plan.DataPolicy{plan.RefuseData, plan.DeleteData} {
				_, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: data, Export: out.open})
				checkOwnData(t, err, data)
			}
			b.Clock(shop, "town", "own", "hands: 2")
			for _, data := range []plan.DataPolicy{plan.RefuseData, plan.DeleteData} {
				_, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: shop, Data: data, Export: out.open})
				checkOwnData(t, err, data)
			}
			if left, want := b.Server.Names("Clock"), []string{site + "/bank", "town/bank"}; !slices.Equal(left, want) {
				t.Errorf("left are %q, want %q", left, want)
			}
			if left := b.Server.Names("CustomResourceDefinition"); len(left) != 1 {
				t.Errorf("left are definitions %q", left)
			}
		})
	}
}

// TestDataOfMetalK8s: custom resources of a Solution that MetalK8s has activated are its own, although the CRD has no label.
func TestDataOfMetalK8s(t *testing.T) {
	b := deployertest.New(t)
	b.Server.Put(t, deployertest.Content{}.CRD(shop))
	b.Imported(shop, "1.0.0", plain)
	if err := b.Records.Documents.SetActive(t.Context(), shop, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	must(b, add("1.0.0"))
	b.Clock(shop, site, "own", "hands: 2")
	_, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop})
	checkOwnData(t, err, plan.RefuseData)
}

// checkOwnData expects that data is deleted, or that a refusal counts one custom resource.
func checkOwnData(t *testing.T, err error, data plan.DataPolicy) {
	t.Helper()
	if data == plan.RefuseData {
		deployertest.Refused(t, err, report.DataLoss, "1 of kind Clock")
	} else if err != nil {
		t.Fatal(err)
	}
}
