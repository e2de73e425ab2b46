package deployer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint/images"
	"github.com/solutionctl/solutionctl/schema"
)

// deployment is a version of a Solution in a namespace of an environment.
type deployment struct {
	environment, namespace, version string
}

// deployments returns where a Solution is: what our records say, and operators that are on none of them. That a namespace asks
// for a version says nothing: whoever may write there would hold up the whole cluster.
func (d *Deployer) deployments(ctx context.Context, solution string) ([]deployment, error) {
	environments, err := d.documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	names := environmentsByNamespace(environments)
	operators, err := d.operatorsIn(ctx, environments, operatorOf+","+labelPartOf+"="+solution)
	if err != nil {
		return nil, err
	}
	states, err := d.engine.States(ctx)
	if err != nil {
		return nil, err
	}
	var found []deployment
	for _, s := range states {
		if s.Solution != solution || s.Namespace == "" {
			continue
		}
		if s.Damage != nil {
			return nil, s.Damage
		}
		for _, revision := range []*schema.DeploymentRevision{s.Current, s.Pending} {
			if revision != nil && revision.Version != "" {
				found = append(found, deployment{names[s.Namespace], s.Namespace, revision.Version})
				delete(operators, s.Key)
			}
		}
	}
	for key, operator := range operators {
		found = append(found, deployment{names[key.Namespace], key.Namespace, versionOn(operator, asked(environments, key))})
	}
	slices.SortFunc(found, func(a, b deployment) int {
		return cmp.Or(cmp.Compare(a.environment, b.environment), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(found), nil
}

// asked is the version of a Solution that its namespace asks for.
func asked(environments []metalk8s.Environment, key engine.Key) string {
	for _, e := range environments {
		if n, ok := e.Namespace(key.Namespace); ok {
			return n.Versions[key.Solution]
		}
	}
	return ""
}

// active returns the active version of a Solution, "" when there is none.
func (d *Deployer) active(ctx context.Context, solution string) (string, error) {
	state, err := d.engine.State(ctx, engine.Key{Solution: solution})
	if err != nil {
		return "", err
	}
	if state.Current != nil && state.Current.Version != "" {
		return state.Current.Version, nil
	}
	if state.Pending != nil && state.Pending.Version != "" {
		return state.Pending.Version, nil
	}
	solutions, err := d.documents.Solutions(ctx)
	if err != nil {
		return "", err
	}
	return solutions.Active(solution), nil
}

// users names what uses a version of a Solution.
func (d *Deployer) users(ctx context.Context, solution, version string) ([]string, error) {
	var users []string
	active, err := d.active(ctx, solution)
	if err != nil {
		return nil, err
	}
	if active == version {
		users = append(users, "it is active")
	}
	deployed, err := d.deployments(ctx, solution)
	if err != nil {
		return nil, err
	}
	for _, there := range deployed {
		if there.version == version {
			users = append(users, there.String())
		}
	}
	return users, nil
}

// pullers returns what runs images of an archive without being deployed here: what an operator of another version runs,
// because its user asked for this one.
func (d *Deployer) pullers(ctx context.Context, id string) ([]string, error) {
	var found []string
	for _, kind := range []kube.GroupVersionKind{
		cluster.DeploymentKind, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
	} {
		for object, err := range d.Cluster.List(ctx, kind, "", metav1.ListOptions{}) {
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

// pulls tells whether an image of a workload's pods is in a repository.
func pulls(workload *unstructured.Unstructured, repository string) bool {
	for _, use := range images.Find(workload.Object) {
		if use.Place == images.Container && strings.Contains(use.Image, repository) {
			return true
		}
	}
	return false
}

func (u deployment) String() string {
	switch u.environment {
	case "":
		return "namespace " + u.namespace
	case u.namespace:
		return "environment " + u.environment
	default:
		return fmt.Sprintf("environment %s (namespace %s)", u.environment, u.namespace)
	}
}

// publish writes what MetalK8s knows about an imported version.
func (d *Deployer) publish(ctx context.Context, p *render.Payload, path string) error {
	entry, err := schema.NewImportedSolution(p.Solution, path)
	if err != nil {
		return err
	}
	return d.documents.PutVersion(ctx, p.Solution.Metadata.Name, entry)
}

// setActive returns the change of MetalK8s' document that makes a version the active one, none for "", and what makes it.
func (d *Deployer) setActive(ctx context.Context, solution, version string) ([]schema.Change, func(context.Context) error, error) {
	solutions, err := d.documents.Solutions(ctx)
	if err != nil {
		return nil, nil, err
	}
	change := recordChange(metalk8s.SolutionsNamespace, metalk8s.SolutionsConfigMap, "active version of "+solution, solutions.Active(solution), version)
	return change, func(ctx context.Context) error { return d.documents.SetActive(ctx, solution, version) }, nil
}

// recordChange is the change of one entry of a shared document, nothing when it is the same.
func recordChange(namespace, name, field, from, to string) []schema.Change {
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

// environmentsByNamespace names the environment of each of their namespaces.
func environmentsByNamespace(environments []metalk8s.Environment) map[string]string {
	names := map[string]string{}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			names[n.Name] = e.Name
		}
	}
	return names
}
