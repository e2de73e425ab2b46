package metalk8s

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// CreateOptions describe the environment to create.
type CreateOptions struct {
	Name string
	// Namespace is the namespace of the environment to create; "" is one with the environment's name.
	Namespace string
	// Description applies to all namespaces of the environment; nil leaves it unchanged.
	Description *string
	// Adopt takes a namespace that exists and is not part of the environment.
	Adopt bool
}

// Creation is the result of creating an environment.
type Creation string

// Results of creating an environment.
const (
	Created   Creation = "created"
	Adopted   Creation = "adopted"
	Changed   Creation = "changed"   // it was there already, with another description
	Unchanged Creation = "unchanged" // it was there already
)

// Names as Kubernetes wants them: the environment's is the value of a label.
var (
	labelValue = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	dnsLabel   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// reserved are the namespaces that never become part of an environment, because deleting it would delete them.
var reserved = []string{
	"default", "kube-node-lease", "kube-public", "kube-system", SolutionsNamespace, cluster.SystemNamespace,
}

// CreateEnvironment creates an environment, or adds a namespace to it. An existing namespace of the environment stays
// as it is. A namespace that exists and is not part of the environment is a conflict, unless it is to be adopted.
func (d *Documents) CreateEnvironment(ctx context.Context, o CreateOptions) (Creation, error) {
	o, err := o.Check()
	if err != nil {
		return "", err
	}
	siblings, err := d.namespaces(ctx, EnvironmentLabel+"="+o.Name)
	if err != nil {
		return "", err
	}
	description := ""
	for _, e := range group(siblings) {
		description = e.Description
	}
	if o.Description != nil {
		description = *o.Description
	}
	result, err := d.createNamespace(ctx, o, description)
	if err != nil {
		return "", err
	}
	if err := d.ensureConfigMap(ctx, o.Namespace); err != nil {
		return "", err
	}
	if o.Description == nil {
		return result, nil
	}
	for _, n := range siblings {
		if n.Name == o.Namespace || n.Terminating {
			continue
		}
		if err := d.editNamespace(ctx, n.Name, describe(description)); err != nil {
			return "", err
		}
	}
	return result, nil
}

// Check returns the options with the name of the namespace, or an error about invalid names.
func (o CreateOptions) Check() (CreateOptions, error) {
	o.Namespace = cmp.Or(o.Namespace, o.Name)
	return o, o.check()
}

func (o CreateOptions) check() error {
	switch {
	case !labelValue.MatchString(o.Name):
		return report.Errorf(report.Usage, "%q cannot be the name of an environment", o.Name).
			WithHint("use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends")
	case !dnsLabel.MatchString(o.Namespace) && o.Name == o.Namespace:
		return report.Errorf(report.Usage, "environment %s: a namespace cannot have this name", o.Name).
			WithHint("name the namespace with --namespace: at most 63 lower-case letters, digits and '-'")
	case !dnsLabel.MatchString(o.Namespace):
		return report.Errorf(report.Usage, "%q cannot be the name of a namespace", o.Namespace).
			WithHint("use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends")
	case slices.Contains(reserved, o.Namespace):
		return report.Errorf(report.Refused, "namespace %s cannot be part of an environment: the cluster needs it for itself", o.Namespace).
			WithHint("name another namespace with --namespace")
	}
	return nil
}

// createNamespace makes a namespace part of the environment.
func (d *Documents) createNamespace(ctx context.Context, o CreateOptions, description string) (Creation, error) {
	for range attempts {
		live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", o.Namespace)
		if err != nil {
			return "", err
		}
		var result Creation
		if live == nil {
			result, err = Created, d.postNamespace(ctx, o, description)
		} else {
			result, err = d.adoptNamespace(ctx, live, o, description)
		}
		if !isOutdated(err) {
			return result, err
		}
	}
	return "", busyNamespace(o.Namespace)
}

func (d *Documents) postNamespace(ctx context.Context, o CreateOptions, description string) error {
	object := cluster.NewObject(cluster.NamespaceKind, "", o.Namespace)
	object.SetLabels(map[string]string{EnvironmentLabel: o.Name})
	object.SetAnnotations(map[string]string{descriptionAnnotation: description})
	_, err := d.Cluster.Create(ctx, object, cluster.WriteOptions{})
	return err
}

// adoptNamespace takes a namespace that exists into the environment, see [adopt].
func (d *Documents) adoptNamespace(ctx context.Context, live *unstructured.Unstructured, o CreateOptions, description string) (Creation, error) {
	if live.GetDeletionTimestamp() != nil {
		return "", d.Terminating(ctx, o.Namespace)
	}
	result, err := adopt(live, o, description)
	if err != nil || result == Unchanged {
		return result, err
	}
	_, err = d.Cluster.Update(ctx, live, cluster.WriteOptions{})
	return result, err
}

// adopt makes a namespace part of the environment, if it may become one.
func adopt(live *unstructured.Unstructured, o CreateOptions, description string) (Creation, error) {
	result := Unchanged
	environment, labelled := live.GetLabels()[EnvironmentLabel]
	switch {
	case labelled && environment == o.Name:
		if o.Description == nil {
			return Unchanged, nil
		}
	case o.Adopt:
		result = Adopted
	case labelled && environment != "":
		return "", report.Errorf(report.Conflict, "namespace %s is part of environment %s", o.Namespace, environment).
			WithHint("name another namespace with --namespace, or move it here with %s", report.Accept("adopt"))
	default:
		return "", report.Errorf(report.Conflict, "namespace %s exists and is not part of an environment", o.Namespace).
			WithHint("name another namespace with --namespace, or take it with %s: deleting the environment then deletes it", report.Accept("adopt"))
	}
	switch changed := describe(description)(live); {
	case result == Adopted:
	case !changed:
		return Unchanged, nil
	default:
		result = Changed
	}
	cluster.SetLabel(live, EnvironmentLabel, o.Name)
	return result, nil
}

// editNamespace changes a namespace and retries after conflicts; edit reports whether it changed anything.
func (d *Documents) editNamespace(ctx context.Context, name string, edit func(*unstructured.Unstructured) bool) error {
	for range attempts {
		live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", name)
		if err != nil || live == nil || !edit(live) {
			return err
		}
		if _, err = d.Cluster.Update(ctx, live, cluster.WriteOptions{}); !isOutdated(err) {
			return err
		}
	}
	return busyNamespace(name)
}

func busyNamespace(name string) error {
	return report.Errorf(report.Conflict, "namespace %s: another client changes it again and again", name).
		WithHint("find out who: kubectl get namespace %s -o yaml --show-managed-fields", name)
}

// describe returns an edit that sets the description of a namespace.
func describe(description string) func(*unstructured.Unstructured) bool {
	return func(namespace *unstructured.Unstructured) bool {
		if before, ok := namespace.GetAnnotations()[descriptionAnnotation]; ok && before == description {
			return false
		}
		cluster.SetAnnotation(namespace, descriptionAnnotation, description)
		return true
	}
}
