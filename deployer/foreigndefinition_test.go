package deployer_test

import (
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
