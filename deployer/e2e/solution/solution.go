// Package solution makes Solutions for tests: as small as a Solution can be that has an operator and custom resources,
// in memory, and imported without a store, by those who only care for what happens in the cluster.
package solution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Kind is the kind of custom resources that the Solution of a name brings.
func Kind(name string) kube.GroupVersionKind {
	return kube.GroupVersionKind{Group: deployertest.Group(name), Version: "v1", Kind: "Clock"}
}

// CRD is the name of the definition of [Kind].
func CRD(name string) string { return deployertest.Definition(name) }

// Payload returns what is deployed of a version. Versions differ in the image and in the role of their operators.
func Payload(name, version string) (*render.Payload, error) {
	role := `- {apiGroups: [""], resources: [pods], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], resourceNames: ["version-` + version + `"], verbs: [get]}`
	return deployertest.Content{Role: role}.Payload(name, version)
}

// Endpoint is the registry of all images. It has no server: nothing is pulled where nothing runs.
const Endpoint = "http://127.0.0.1:9"

// Import makes versions of a Solution known to the cluster.
func Import(ctx context.Context, d *deployer.Deployer, name string, versions ...string) error {
	for _, version := range versions {
		payload, err := Payload(name, version)
		if err == nil {
			err = Record(ctx, d, payload)
		}
		if err != nil {
			return fmt.Errorf("import %s-%s: %w", name, version, err)
		}
	}
	return nil
}

// Record makes one version known to the cluster.
func Record(ctx context.Context, d *deployer.Deployer, p *render.Payload) error {
	id := p.Solution.ID()
	sum := sha256.Sum256([]byte(id))
	_, err := d.RecordImport(ctx, records.ImportRecord{
		Payload: p, Path: "/srv/" + id + ".iso", SHA256: hex.EncodeToString(sum[:]), Size: 4096,
		Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{Endpoint}},
	})
	return err
}
