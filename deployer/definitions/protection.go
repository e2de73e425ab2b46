package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// SettingProtect is the setting of a revision whose definitions are protected.
const SettingProtect = "protectCRDs"

// ProtectionName is the name of the policy and of its binding.
func ProtectionName(key record.Key) string { return key.Name + ".crds.solutionctl.io" }

// Protect returns an admission policy with which the API server rejects any deletion of the CRDs of a Solution, and
// annotates the CRDs with the way to lift it.
func Protect(key record.Key, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, definition := range ByName(objects) {
		cluster.SetAnnotation(definition, engine.AnnotationAllowDeletion, "false")
	}
	name := ProtectionName(key)
	metadata := map[string]any{
		"name": name, "labels": map[string]any{"app.kubernetes.io/part-of": key.Name, "app.kubernetes.io/managed-by": "solutionctl"},
	}
	policy := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
		"spec": map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{
				"matchPolicy":    "Equivalent",
				"objectSelector": map[string]any{"matchLabels": map[string]any{schema.LabelRelease: key.ID()}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{cluster.DefinitionKind.Group}, "apiVersions": []any{"*"}, "operations": []any{"DELETE"}, "resources": []any{"customresourcedefinitions"}, "scope": "Cluster",
				}},
			},
			"validations": []any{map[string]any{
				"expression": fmt.Sprintf("has(oldObject.metadata.annotations) && "+
					"%[1]q in oldObject.metadata.annotations && oldObject.metadata.annotations[%[1]q] == 'true'", engine.AnnotationAllowDeletion),
				"message": fmt.Sprintf("deleting it would delete every object of its kind; '%s' exports them before, "+
					"and the annotation %s=true lets it be deleted all the same", report.Run("deploy deactivate", key.Name), engine.AnnotationAllowDeletion),
			}},
		},
	}
	binding := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
		"spec": map[string]any{"policyName": name, "validationActions": []any{"Deny"}},
	}
	made := []*unstructured.Unstructured{{Object: policy}, {Object: binding}}
	for i, object := range made {
		made[i] = object.DeepCopy() // they share their metadata
	}
	return made
}

// IsProtected reports whether the CRDs on a record are protected.
func IsProtected(s *record.State) bool {
	return slices.ContainsFunc(s.Recent(), func(r *schema.DeploymentRevision) bool { return r.Settings[SettingProtect] == "true" })
}

// AllowDeletion lifts the protection of definitions that are about to be deleted.
func (g *Guard) AllowDeletion(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		for {
			live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", definition.GetName())
			if err != nil {
				return err
			}
			if live == nil || live.GetAnnotations()[engine.AnnotationAllowDeletion] == "true" {
				break
			}
			if live.GetUID() != definition.GetUID() {
				return report.Errorf(report.Conflict, "custom resource definition %s was made again meanwhile", live.GetName()).WithHint("run the command again")
			}
			cluster.SetAnnotation(live, engine.AnnotationAllowDeletion, "true")
			if _, err = g.Cluster.Update(ctx, live, cluster.WriteOptions{}); err != nil && !errors.Is(err, cluster.ErrChanged) {
				return err
			}
		}
	}
	return nil
}

// AwaitProtection returns when the API server refuses to delete the definitions: it takes it a moment to learn of a policy.
func (g *Guard) AwaitProtection(ctx context.Context, definitions map[string]*unstructured.Unstructured, timeout time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(timeout, records.DefaultTimeout))
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		for {
			inForce, err := g.refusesDeletion(waiting, name)
			if err != nil && waiting.Err() == nil {
				return err
			}
			if inForce {
				break
			}
			if cluster.Sleep(waiting, protectionPoll) != nil {
				return cmp.Or(ctx.Err(), error(report.Errorf(report.Timeout, "the API server does not protect custom resource definition %s", name).
					WithHint("look at the status of ValidatingAdmissionPolicy objects, then run the same command again")))
			}
		}
	}
	return nil
}

// protectionPoll is the interval between checks whether the policy is in force; the API server does not report it.
const protectionPoll = 200 * time.Millisecond

// refusesDeletion tries to delete a CRD with a dry run. It returns true as well when the user lacks the permission to
// delete.
func (g *Guard) refusesDeletion(ctx context.Context, name string) (bool, error) {
	live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", name)
	if err != nil {
		return false, err
	}
	if live == nil { // another client has deleted it
		return true, nil
	}
	live.SetResourceVersion("") // the API server writes its status
	err = g.Cluster.Delete(ctx, live, cluster.DeleteOptions{DryRun: true})
	switch {
	case err == nil:
		return false, nil
	case strings.Contains(err.Error(), engine.AnnotationAllowDeletion), report.CodeOf(err) == report.Forbidden:
		return true, nil
	}
	return false, err
}
