package deployer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/scaffold"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// TestScaffold: what a project made of manifests has in its archive is deployed as it is, with the definition active, the objects in the
// namespace of the environment, and the image from the archive.
func TestScaffold(t *testing.T) {
	source := fstest.MapFS{"shop.yaml": {Data: []byte(`apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {kind: Order, listKind: OrderList, plural: orders, singular: order}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/shop/web:1.0.0"}]}
`)}}
	project, err := scaffold.New(t.Context(), scaffold.Options{Solution: "shop"}, []scaffold.Source{{Name: "shop.yaml", Files: source, Path: "shop.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild("solution.yaml", project.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	components, err := json.Marshal(build.Spec.Components)
	if err != nil {
		t.Fatal(err)
	}
	content := deployertest.Content{
		Bare: true, Images: []string{"web"}, Files: map[string]string{},
		Manifest: fmt.Sprintf("customApiGroups: [shop.example]\n  components: %s\n  imageOrigins: {%q: %q}", components, "web:1.0.0", build.Spec.Images[0].OriginName()),
	}
	for _, file := range project.Files[1:] {
		content.Files[file.Path] = string(file.Data)
	}
	b := deployertest.New(t)
	b.Added("shop", "1.0.0", content)
	for _, want := range [][3]string{
		{"CustomResourceDefinition", "", "orders.shop.example"}, {"ConfigMap", deployertest.Environment, "settings"}, {"Deployment", deployertest.Environment, "web"},
	} {
		if b.Server.Object(want[0], want[1], want[2]) == nil {
			t.Errorf("the cluster has no %s", strings.Join(want[:], " "))
		}
	}
	if images := fmt.Sprint(b.Server.Object("Deployment", deployertest.Environment, "web").Object); !strings.Contains(images, "/shop-1.0.0/web") {
		t.Errorf("the image is not that of the archive: %s", images)
	}
}
