package records

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Deployment is a version of a Solution in a namespace of an environment.
type Deployment struct {
	Environment, Namespace, Version string
}

// Deployments returns the places of a Solution: from our records, and operators that are on no record. A version that a
// namespace only requests does not count: a user with write access to one namespace could otherwise block the whole
// cluster.
func (r *Records) Deployments(ctx context.Context, solution string) ([]Deployment, error) {
	environments, err := r.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	names := EnvironmentsByNamespace(environments)
	operators, err := r.OperatorsIn(ctx, environments, OperatorOf+","+labelPartOf+"="+solution)
	if err != nil {
		return nil, err
	}
	states, err := r.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	var found []Deployment
	for _, s := range states {
		if s.Name != solution || s.Namespace == "" {
			continue
		}
		if s.Damage != nil {
			return nil, s.Damage
		}
		for _, revision := range s.Recent() {
			if revision.Version != "" {
				found = append(found, Deployment{names[s.Namespace], s.Namespace, revision.Version})
				delete(operators, s.Key)
			}
		}
	}
	for key, operator := range operators {
		found = append(found, Deployment{names[key.Namespace], key.Namespace, VersionOn(operator, Asked(environments, key))})
	}
	slices.SortFunc(found, func(a, b Deployment) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(found), nil
}

// Asked is the version of a Solution that its namespace asks for.
func Asked(environments []metalk8s.Environment, key record.Key) string {
	for _, e := range environments {
		if n, ok := e.Namespace(key.Namespace); ok {
			return n.Versions[key.Name]
		}
	}
	return ""
}

// Active returns the active version of a Solution, "" when there is none.
func (r *Records) Active(ctx context.Context, solution string) (string, error) {
	state, err := r.Engine.State(ctx, record.Key{Name: solution})
	if err != nil {
		return "", err
	}
	for _, revision := range slices.Backward(state.Recent()) {
		if revision.Version != "" {
			return revision.Version, nil
		}
	}
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return "", err
	}
	return solutions.Active(solution), nil
}

// Activating returns the version that an unfinished activation of a Solution makes active, "" when there is none. MetalK8s' configuration lists it already.
func (r *Records) Activating(ctx context.Context, solution string) (string, error) {
	state, err := r.Engine.State(ctx, record.Key{Name: solution})
	if err != nil || state.Pending == nil {
		return "", err
	}
	return state.Pending.Version, nil
}

// users lists the uses of a version of a Solution.
func (r *Records) users(ctx context.Context, solution, version string) ([]string, error) {
	var users []string
	active, err := r.Active(ctx, solution)
	if err != nil {
		return nil, err
	}
	if active == version {
		users = append(users, "it is active")
	}
	deployed, err := r.Deployments(ctx, solution)
	if err != nil {
		return nil, err
	}
	for _, there := range deployed {
		if there.Version == version {
			users = append(users, there.String())
		}
	}
	return users, nil
}

// Pullers are the kinds whose images are looked at before a version goes.
var Pullers = []kube.GroupVersionKind{
	cluster.DeploymentKind, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
}

// pullers returns workloads that run images of an archive without being deployed here: an operator of another version
// runs them, because its user requested this one.
func (r *Records) pullers(ctx context.Context, id string) ([]string, error) {
	var found []string
	for _, kind := range Pullers {
		for object, err := range r.Cluster.List(ctx, kind, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if object.GetDeletionTimestamp() == nil && pulls(object, "/"+id+"/") {
				found = append(found, cluster.Name(kind.Kind, object.GetNamespace(), object.GetName()))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// pulls reports whether the pods of a workload have an image from a repository.
func pulls(workload *unstructured.Unstructured, repository string) bool {
	return slices.ContainsFunc(images.Find(workload.Object), func(use images.Use) bool {
		return use.Place == images.Container && strings.Contains(use.Image, repository)
	})
}

func (u Deployment) String() string {
	switch u.Environment {
	case "":
		return "namespace " + u.Namespace
	case u.Namespace:
		return "environment " + u.Environment
	default:
		return fmt.Sprintf("environment %s (namespace %s)", u.Environment, u.Namespace)
	}
}

// publish writes what MetalK8s knows about an imported version.
func (r *Records) publish(ctx context.Context, p *render.Payload, path string) error {
	entry, err := schema.NewImportedSolution(p.Solution, path)
	if err != nil {
		return err
	}
	return r.Documents.PutVersion(ctx, p.Solution.Metadata.Name, entry)
}

// SetActive returns the change of MetalK8s' document that makes a version the active one, none for "", and a function
// that applies it.
func (r *Records) SetActive(ctx context.Context, solution, version string) ([]schema.Change, func(context.Context) error, error) {
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return nil, nil, err
	}
	change := EntryChange(metalk8s.SolutionsNamespace, metalk8s.SolutionsConfigMap, "active version of "+solution, solutions.Active(solution), version)
	return change, func(ctx context.Context) error { return r.Documents.SetActive(ctx, solution, version) }, nil
}

// EntryChange is the change of one entry of a shared document, nothing when it is the same.
func EntryChange(namespace, name, field, from, to string) []schema.Change {
	if from == to {
		return nil
	}
	return []schema.Change{{
		Action: schema.ActionUpdate,
		Object: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name},
		Fields: []schema.FieldChange{{Path: field, From: quoted(from), To: quoted(to)}},
	}}
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	data, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return string(data)
}

// EnvironmentsByNamespace names the environment of each of their namespaces.
func EnvironmentsByNamespace(environments []metalk8s.Environment) map[string]string {
	names := map[string]string{}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			names[n.Name] = e.Name
		}
	}
	return names
}

// ObjectsOf are the objects on a record, those that were kept when all else was removed included.
func ObjectsOf(s *record.State) []schema.DeployedObject {
	var objects []schema.DeployedObject
	for _, revision := range slices.Backward(s.Recent()) {
		objects = append(objects, revision.Objects...)
	}
	return objects
}

// StatesIn returns the records of present and former deployments in namespaces.
func (r *Records) StatesIn(ctx context.Context, namespaces []metalk8s.Namespace) ([]*record.State, error) {
	return r.Engine.StatesIn(ctx, metalk8s.NamesOf(namespaces)...)
}

// DeployedVersion is the version of which objects are there, or may be.
func DeployedVersion(s *record.State) (version string, deployed bool) {
	for _, revision := range s.Recent() {
		if revision.Version != "" || slices.ContainsFunc(revision.Objects, isDeployed) {
			return revision.Version, true
		}
	}
	return "", false
}

// isDeployed reports whether an object is part of a deployment, and was not merely kept by its removal.
func isDeployed(object schema.DeployedObject) bool { return !object.Kept }

// Namespaces returns one namespace of an environment, for "" all of them.
func (r *Records) Namespaces(ctx context.Context, name, namespace string) ([]metalk8s.Namespace, error) {
	environment, err := r.Documents.Permitted(ctx, name, namespace)
	if err != nil {
		return nil, err
	}
	if namespace == "" {
		return environment.Namespaces, nil
	}
	if one, ok := environment.Namespace(namespace); ok {
		return []metalk8s.Namespace{one}, nil
	}
	all, err := r.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		if _, ok := other.Namespace(namespace); ok {
			return nil, report.Errorf(report.Conflict, "namespace %s belongs to environment %s, not %s", namespace, other.Name, name).
				WithHint("environment %s has %s", name, strings.Join(environment.Names(), ", "))
		}
	}
	return nil, report.Errorf(report.NotFound, "environment %s has no namespace %s", name, namespace).
		WithHint("it has %s; '%s' extends it", strings.Join(environment.Names(), ", "), report.Run("deploy env create", name).With("namespace", namespace))
}

// UnreadText is a message that a record cannot be read, with the remedy.
func UnreadText(key record.Key, err error) string {
	text := fmt.Sprintf("%s is left out: %v", key, err)
	if hints := report.Hints(err); len(hints) > 0 {
		text += " (" + strings.Join(hints, "; ") + ")"
	}
	return text
}

// VersionDrift is the difference between the shared documents and the records about versions, and the repair of it.
func (r *Records) VersionDrift(ctx context.Context, states []*record.State, namespaces map[string]metalk8s.Namespace) (changes []schema.Change, restore func(context.Context) error, err error) {
	var writes []func(context.Context) error
	for _, s := range states {
		if s.Current.Version == "" || s.Component != "" {
			continue
		}
		if s.Namespace == "" {
			change, write, err := r.SetActive(ctx, s.Name, s.Current.Version)
			if err != nil {
				return nil, nil, err
			}
			if len(change) > 0 {
				changes, writes = append(changes, change...), append(writes, write)
			}
			continue
		}
		n, inEnvironment := namespaces[s.Namespace]
		change := EntryChange(s.Namespace, metalk8s.EnvironmentConfigMap, "data."+s.Name, n.Versions[s.Name], s.Current.Version)
		if inEnvironment && len(change) > 0 {
			changes = append(changes, change...)
			writes = append(writes, func(ctx context.Context) error {
				return r.Documents.SetVersion(ctx, s.Namespace, s.Name, s.Current.Version)
			})
		}
	}
	return changes, func(ctx context.Context) error {
		for _, write := range writes {
			if err := write(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// NotDeployed is the error for a Solution that is on no record.
func NotDeployed(solution string) error {
	return report.Errorf(report.NotFound, "Solution %s was not deployed here", solution).WithHint("'%s' lists the deployed Solutions", report.Run("deploy status"))
}

// DefaultTimeout is the longest wait for an object where the caller sets none.
const DefaultTimeout = 10 * time.Minute

// Parallel is how many requests for objects of the same kind are made at the same time.
const Parallel = 8
