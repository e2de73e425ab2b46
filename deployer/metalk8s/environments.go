package metalk8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Environment is a set of namespaces under one name, in which Solutions are deployed.
type Environment struct {
	Name string
	// Description is that of its first namespace that has one.
	Description string
	// Namespaces are sorted by name; there is at least one.
	Namespaces []Namespace
}

// Namespace is a namespace of an environment.
type Namespace struct {
	Name        string
	Environment string
	// Description is nil where the annotation is missing.
	Description *string
	// Terminating is true while the namespace is being deleted.
	Terminating bool
	// Versions maps Solutions to versions, from ConfigMap metalk8s-environment; nil where it is absent or empty. Any
	// user with write access to the namespace can change it: it selects among imported versions, and is not trusted any
	// further. Invalid names and versions are left out.
	Versions map[string]string
	// Problems are the entries that are not in Versions, sorted.
	Problems []Problem
	// Hidden is true when the user is not allowed to read ConfigMap metalk8s-environment.
	Hidden bool
	// Alone is true when the user is not allowed to list the other namespaces of the environment, if there are any.
	Alone bool
	// Config is all of it, as it is.
	Config map[string]string

	object *unstructured.Unstructured
	config *unstructured.Unstructured // ConfigMap metalk8s-environment; nil where it is absent, or was read in part
}

// Namespace returns one of the environment's namespaces.
func (e *Environment) Namespace(name string) (Namespace, bool) {
	i := slices.IndexFunc(e.Namespaces, func(n Namespace) bool { return n.Name == name })
	if i < 0 {
		return Namespace{}, false
	}
	return e.Namespaces[i], true
}

// Names returns the names of the environment's namespaces.
func (e *Environment) Names() []string { return NamesOf(e.Namespaces) }

// NamesOf are the names of namespaces.
func NamesOf(namespaces []Namespace) []string {
	names := make([]string, len(namespaces))
	for i, n := range namespaces {
		names[i] = n.Name
	}
	return names
}

// Environments reads all environments, sorted by name.
func (d *Documents) Environments(ctx context.Context) ([]Environment, error) {
	complete, err := d.BeginEnvironments(ctx)
	if err != nil {
		return nil, err
	}
	return complete()
}

// BeginEnvironments is [Documents.Environments] in two steps, for callers that read other objects at the same time. It lists the namespaces, for
// which a user can lack the permission. Complete reads the requested versions.
func (d *Documents) BeginEnvironments(ctx context.Context) (complete func() ([]Environment, error), err error) {
	namespaces, err := d.bareNamespaces(ctx, EnvironmentLabel)
	if err != nil {
		return nil, err
	}
	return func() ([]Environment, error) {
		if err := d.addVersions(ctx, namespaces); err != nil {
			return nil, err
		}
		return group(namespaces), nil
	}, nil
}

// Environment reads one environment. When no namespace has its label, the error has the code NotFound and lists the
// existing environments.
func (d *Documents) Environment(ctx context.Context, name string) (*Environment, error) {
	if labelValue.MatchString(name) {
		namespaces, err := d.namespaces(ctx, EnvironmentLabel+"="+name)
		if err != nil {
			return nil, err
		}
		if found := group(namespaces); len(found) > 0 {
			return &found[0], nil
		}
	}
	all, err := d.Environments(ctx)
	if err != nil {
		return nil, err
	}
	return nil, noEnvironment(name, all)
}

// noEnvironment is the error that names the environments that there are.
func noEnvironment(name string, all []Environment) error {
	var names []string
	for _, other := range all {
		names = append(names, other.Name)
	}
	missing := report.Errorf(report.NotFound, "there is no environment %q", name)
	if len(names) == 0 {
		return missing.WithHint("create it: %s", report.Run("deploy env create", name))
	}
	return missing.WithHint("the environments are %s", strings.Join(names, ", "))
}

// Namespace reads one namespace of an environment, without permissions on others. The error has the code NotFound when it is
// not part of the environment.
func (d *Documents) Namespace(ctx context.Context, environment, name string) (Namespace, error) {
	n, err := d.bare(ctx, environment, name)
	if err != nil {
		return Namespace{}, err
	}
	namespaces := []Namespace{n}
	err = d.addVersions(ctx, namespaces)
	return namespaces[0], err
}

// bare reads a namespace of an environment without its requested versions.
func (d *Documents) bare(ctx context.Context, environment, name string) (Namespace, error) {
	object, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", name)
	if err != nil {
		return Namespace{}, err
	}
	if object == nil || object.GetLabels()[EnvironmentLabel] != environment || environment == "" {
		return Namespace{}, report.Errorf(report.NotFound, "namespace %s is not part of environment %s", name, environment)
	}
	return newNamespace(object), nil
}

// EnvironmentOf names the environment of which a namespace is part, without permissions on others.
func (d *Documents) EnvironmentOf(ctx context.Context, namespace string) (string, error) {
	object, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
	if err != nil {
		return "", err
	}
	if object == nil || object.GetLabels()[EnvironmentLabel] == "" {
		return "", report.Errorf(report.NotFound, "there is no namespace %s that is part of an environment", namespace)
	}
	return object.GetLabels()[EnvironmentLabel], nil
}

// Visible reads the part of an environment that the user is allowed to read; whole reports whether that is all of it. A
// user who is not allowed to list namespaces gets the one that they name, by default the one with the name of the
// environment.
func (d *Documents) Visible(ctx context.Context, environment, namespace string) (e *Environment, whole bool, err error) {
	if e, err = d.Environment(ctx, environment); report.CodeOf(err) != report.Forbidden {
		return e, true, err
	}
	missing := err
	var namespaces []Namespace
	if labelValue.MatchString(environment) {
		namespaces, err = d.bareNamespaces(ctx, EnvironmentLabel+"="+environment)
	}
	if report.CodeOf(err) == report.Forbidden {
		var one Namespace
		one, err = d.bare(ctx, environment, cmp.Or(namespace, environment))
		namespaces = []Namespace{one}
	}
	switch code := report.CodeOf(err); {
	case code == report.NotFound || code == report.Forbidden:
		return nil, false, report.Errorf(code, "you do not have permission to list the namespaces of environment %s: %w", environment, err).
			WithHint("name your namespace with --namespace")
	case err != nil:
		return nil, false, err
	case len(namespaces) == 0: // there is none of this name, and the user is not allowed to list namespaces
		return nil, false, missing
	}
	for i := range namespaces {
		n := &namespaces[i]
		config, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, n.Name, EnvironmentConfigMap)
		if n.Hidden = report.CodeOf(err) == report.Forbidden; err != nil && !n.Hidden {
			return nil, false, err
		}
		n.read(dataOf(config))
	}
	return &group(namespaces)[0], false, nil
}

// Permitted reads an environment for a change of it. A user who is not allowed to list namespaces gets the one that
// they name, by default the one with the name of the environment; it is then [Namespace.Alone].
func (d *Documents) Permitted(ctx context.Context, environment, namespace string) (*Environment, error) {
	found, err := d.Environment(ctx, environment)
	if report.CodeOf(err) != report.Forbidden {
		return found, err
	}
	one, failure := d.Namespace(ctx, environment, cmp.Or(namespace, environment))
	if failure != nil {
		return nil, report.Errorf(report.CodeOf(failure), "namespaces of environment %s: %w", environment, err).
			WithHint("if you have permissions in one of its namespaces, name it with --namespace")
	}
	one.Alone = true
	return &group([]Namespace{one})[0], nil
}

// Outline returns the names of the namespaces of an environment from the cache of the API server, none when it does not
// exist. The answer may be out of date, but comes without delay: a consistent list waits until the server has seen all
// writes.
func (d *Documents) Outline(ctx context.Context, name string) ([]string, error) {
	if !labelValue.MatchString(name) {
		return nil, nil
	}
	var names []string
	o := metav1.ListOptions{LabelSelector: EnvironmentLabel + "=" + name, ResourceVersion: "0"}
	for object, err := range d.Cluster.ListMetadata(ctx, cluster.NamespaceKind, "", o) {
		if err != nil {
			return nil, err
		}
		names = append(names, object.GetName())
	}
	return names, nil
}

// namespaces reads the namespaces that match a label selector, with the ConfigMap metalk8s-environment of each.
func (d *Documents) namespaces(ctx context.Context, selector string) ([]Namespace, error) {
	namespaces, err := d.bareNamespaces(ctx, selector)
	if err != nil {
		return nil, err
	}
	return namespaces, d.addVersions(ctx, namespaces)
}

// addVersions reads the requested versions of namespaces.
func (d *Documents) addVersions(ctx context.Context, namespaces []Namespace) error {
	configs, whole, err := d.configs(ctx, namespaces)
	if err != nil {
		return err
	}
	for i := range namespaces {
		n := &namespaces[i]
		n.read(dataOf(configs[n.Name]))
		if whole {
			n.config = configs[n.Name]
		}
	}
	return nil
}

// bareNamespaces reads namespaces without their requested versions.
func (d *Documents) bareNamespaces(ctx context.Context, selector string) ([]Namespace, error) {
	var namespaces []Namespace
	for object, err := range d.Cluster.List(ctx, cluster.NamespaceKind, "", metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return nil, err
		}
		namespaces = append(namespaces, newNamespace(object))
	}
	return namespaces, nil
}

// Bounds of the requested versions of a namespace, and of the problems that are reported.
const (
	maxAsked    = 100
	maxProblems = 5
	maxVersion  = 128
)

// read sets the versions from ConfigMap metalk8s-environment. It never fails: invalid entries become problems.
func (n *Namespace) read(config map[string]string) {
	n.Config = config
	where := "ConfigMap " + n.Name + "/" + EnvironmentConfigMap
	left := 0
	for _, solution := range slices.Sorted(maps.Keys(config)) {
		err := checkAsked(solution, config[solution])
		switch {
		case err == nil && len(n.Versions) < maxAsked:
			if n.Versions == nil {
				n.Versions = map[string]string{}
			}
			n.Versions[solution] = config[solution]
		case err != nil && len(n.Problems) < maxProblems:
			n.Problems = append(n.Problems, Problem{Where: where, Err: err})
		default:
			left++
		}
	}
	if left > 0 {
		n.Problems = append(n.Problems, Problem{Where: where, Err: fmt.Errorf("%s not checked", report.Count(left, "more key"))})
	}
}

// checkAsked returns the fault of an entry. The text has nothing in it that a terminal could take for more than text.
func checkAsked(solution, version string) error {
	if !dnsLabel.MatchString(solution) {
		return fmt.Errorf("key %s cannot be the name of a Solution", shortQuoted(solution))
	}
	if len(version) > maxVersion {
		return fmt.Errorf("key %s: %s is too long for a version", solution, shortQuoted(version))
	}
	if _, err := schema.ParseVersion(version); err != nil {
		return fmt.Errorf("key %s: %w", solution, err)
	}
	return nil
}

func shortQuoted(text string) string {
	const enough = 64
	if len(text) > enough {
		return strconv.Quote(text[:enough]) + "…"
	}
	return strconv.Quote(text)
}

func newNamespace(object *unstructured.Unstructured) Namespace {
	n := Namespace{
		Name:        object.GetName(),
		Environment: object.GetLabels()[EnvironmentLabel],
		Terminating: object.GetDeletionTimestamp() != nil,
		object:      object,
	}
	if description, ok := object.GetAnnotations()[descriptionAnnotation]; ok {
		n.Description = &description
	}
	return n
}

// fewNamespaces are asked for one by one.
const fewNamespaces = 3

// configs reads ConfigMap metalk8s-environment of each namespace: with one list for many, or one by one for a few and
// for a user who is not allowed to list the whole cluster. A list has only a part of each.
func (d *Documents) configs(ctx context.Context, namespaces []Namespace) (configs map[string]*unstructured.Unstructured, whole bool, err error) {
	if len(namespaces) <= fewNamespaces {
		configs, err = d.configsOneByOne(ctx, namespaces)
		return configs, true, err
	}
	configs = map[string]*unstructured.Unstructured{}
	all := metav1.ListOptions{FieldSelector: "metadata.name=" + EnvironmentConfigMap}
	var failure error
	for object, err := range d.Cluster.ListPartial(ctx, cluster.ConfigMapKind, "", all) {
		if err != nil {
			failure = err
			break
		}
		configs[object.GetNamespace()] = object
	}
	if report.CodeOf(failure) != report.Forbidden {
		return configs, false, failure
	}
	configs, err = d.configsOneByOne(ctx, namespaces)
	return configs, true, err
}

func (d *Documents) configsOneByOne(ctx context.Context, namespaces []Namespace) (map[string]*unstructured.Unstructured, error) {
	configs := map[string]*unstructured.Unstructured{}
	for _, n := range namespaces {
		object, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, n.Name, EnvironmentConfigMap)
		if err != nil {
			return nil, err
		}
		configs[n.Name] = object
	}
	return configs, nil
}

// group makes environments of namespaces. A label without a value names no environment.
func group(namespaces []Namespace) []Environment {
	byName := map[string]*Environment{}
	for _, n := range namespaces {
		if n.Environment == "" {
			continue
		}
		e := byName[n.Environment]
		if e == nil {
			e = &Environment{Name: n.Environment}
			byName[n.Environment] = e
		}
		e.Namespaces = append(e.Namespaces, n)
	}
	var environments []Environment
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		e := byName[name]
		slices.SortFunc(e.Namespaces, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
		for _, n := range e.Namespaces {
			if n.Description != nil && *n.Description != "" {
				e.Description = *n.Description
				break
			}
		}
		environments = append(environments, *e)
	}
	return environments
}

// SetVersion sets the requested version of a Solution in ConfigMap metalk8s-environment of a namespace; "" removes it.
// The entries of other Solutions stay.
func (d *Documents) SetVersion(ctx context.Context, namespace, solution, version string) error {
	return d.editData(ctx, namespace, EnvironmentConfigMap, nil, setVersion(solution, version))
}

// SetVersions is [Documents.SetVersion] for several Solutions, with one write, in a namespace that was read before: its ConfigMap is read again
// only if it has changed since.
func (d *Documents) SetVersions(ctx context.Context, n Namespace, versions map[string]string) error {
	return d.editData(ctx, n.Name, EnvironmentConfigMap, n.config, func(data map[string]string) error {
		for solution, version := range versions {
			_ = setVersion(solution, version)(data) // it never fails
		}
		return nil
	})
}

func setVersion(solution, version string) func(data map[string]string) error {
	return func(data map[string]string) error {
		if version == "" {
			delete(data, solution)
		} else {
			data[solution] = version
		}
		return nil
	}
}

// ensureConfigMap creates an empty ConfigMap metalk8s-environment. One that is there is left as it is.
func (d *Documents) ensureConfigMap(ctx context.Context, namespace string) error {
	object, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, namespace, EnvironmentConfigMap)
	if err != nil || object != nil {
		return err
	}
	_, err = d.Cluster.Create(ctx, cluster.NewObject(cluster.ConfigMapKind, namespace, EnvironmentConfigMap), cluster.WriteOptions{})
	if errors.Is(err, cluster.ErrExists) {
		return nil
	}
	return d.explainTerminating(ctx, err, namespace)
}

// Holding returns the conditions that hold a namespace that is being deleted, see [holding].
func (n *Namespace) Holding() []string { return holding(n.object) }
