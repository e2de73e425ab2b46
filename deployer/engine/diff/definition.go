package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
)

// Definition returns what a change of a CustomResourceDefinition means to its users; nil for other objects.
func Definition(before, after *unstructured.Unstructured) []schema.DefinitionChange {
	if before.GroupVersionKind() != cluster.DefinitionKind {
		return nil
	}
	previous, next := crd.FromObject(before.Object), crd.FromObject(after.Object)
	if previous == nil || next == nil {
		return nil
	}
	var changes []schema.DefinitionChange
	for _, c := range crd.Compare(previous, next) {
		changes = append(changes, schema.DefinitionChange{
			Kind: string(c.Kind), Severity: string(c.Severity), Version: c.Version, Path: c.Path, Message: c.Message,
		})
	}
	return changes
}
