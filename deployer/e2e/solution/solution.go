// Package solution makes Solutions for tests: as small as a Solution can be that has an operator and custom resources,
// in memory, and imported without a store, by those who only care for what happens in the cluster.
package solution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing/fstest"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Kind is the kind of custom resources that the Solution of a name brings.
func Kind(name string) kube.GroupVersionKind {
	return kube.GroupVersionKind{Group: name + ".example", Version: "v1", Kind: "Clock"}
}

// CRD is the name of the definition of [Kind].
func CRD(name string) string { return "clocks." + name + ".example" }

// Payload returns what is deployed of a version. Versions differ in the image and in the role of their operators.
func Payload(name, version string) (*render.Payload, error) {
	files := fstest.MapFS{
		"manifest.yaml": text("apiVersion: %s\nkind: Solution\nmetadata: {name: %s}\nspec: {version: %s}\n", schema.APIVersion, name, version),
		"operator/deploy/role.yaml": text(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %s-operator}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], resourceNames: ["version-%s"], verbs: [get]}
`, name, version),
		"operator/deploy/crds/clocks_crd.yaml": text(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: Clock, plural: clocks, singular: clock, listKind: ClockList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {hands: {type: integer}}}}}}
`, CRD(name), Kind(name).Group),
	}
	addImage(files, name+"-operator", version)
	a, err := archive.FromFS(files)
	if err != nil {
		return nil, err
	}
	return render.FromArchive(a)
}

// Endpoint is where images are said to be. Nobody answers there: nothing is pulled where nothing runs.
const Endpoint = "http://127.0.0.1:9"

// Import makes versions of a Solution known to the cluster.
func Import(ctx context.Context, d *deployer.Deployer, name string, versions ...string) error {
	for _, version := range versions {
		payload, err := Payload(name, version)
		if err != nil {
			return err
		}
		_, err = d.RecordImport(ctx, records.ImportRecord{
			Payload: payload, Path: "/srv/" + name + "-" + version + ".iso", SHA256: digest(name + version), Size: 4096,
			Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{Endpoint}},
		})
		if err != nil {
			return fmt.Errorf("import %s-%s: %w", name, version, err)
		}
	}
	return nil
}

// addImage puts an image into an archive as MetalK8s' tooling writes it.
func addImage(files fstest.MapFS, name, tag string) {
	config, layer := `{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`, "layer of "+tag
	dir := "images/" + name + "/" + tag + "/"
	files[dir+"version"] = text("Directory Transport Version: 1.1\n")
	files[dir+digest(config)], files[dir+digest(layer)] = text("%s", config), text("%s", layer)
	files[dir+"manifest.json"] = text(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:%s","size":%d},
"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","digest":"sha256:%s","size":%d}]}`,
		digest(config), len(config), digest(layer), len(layer))
}

func text(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
