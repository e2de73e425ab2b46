package deployer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// Status tells what was imported, what is deployed where, and how it is. It changes nothing.
func (d *Deployer) Status(ctx context.Context) (*schema.Status, error) { return d.status(ctx, false) }

// StatusAndDrift is [Deployer.Status] with every field of every object that is no longer as it was deployed.
func (d *Deployer) StatusAndDrift(ctx context.Context) (*schema.Status, error) {
	return d.status(ctx, true)
}

func (d *Deployer) status(ctx context.Context, closely bool) (*schema.Status, error) {
	environments, err := d.documents().Environments(ctx)
	if err != nil {
		return nil, err
	}
	s, err := d.survey(ctx, environments, func(*engine.State) bool { return true }, closely)
	if err != nil {
		return nil, err
	}
	status := &schema.Status{Solutions: s.solutionStatuses(), Environments: []schema.EnvironmentStatus{}, Problems: s.problems()}
	for _, e := range environments {
		status.Environments = append(status.Environments, s.environmentStatus(e))
	}
	status.Ready = isReady(status)
	return status, nil
}

// EnvironmentStatus is the part of [Deployer.Status] that is about one environment.
func (d *Deployer) EnvironmentStatus(ctx context.Context, name string) (*schema.EnvironmentStatus, error) {
	e, err := d.documents().Environment(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := d.survey(ctx, []metalk8s.Environment{*e}, func(s *engine.State) bool {
		_, ok := e.Namespace(s.Namespace)
		return ok
	}, false)
	if err != nil {
		return nil, err
	}
	status := s.environmentStatus(*e)
	return &status, nil
}

func isReady(s *schema.Status) bool {
	good := func(d schema.DeploymentStatus) bool { return d.Health == schema.HealthReady }
	for _, solution := range s.Solutions {
		if solution.Deployment != nil && !good(*solution.Deployment) {
			return false
		}
	}
	for _, e := range s.Environments {
		for _, n := range e.Namespaces {
			if n.Terminating || len(n.Problems) > 0 || slices.ContainsFunc(n.Deployments, func(d schema.DeploymentStatus) bool { return !good(d) }) {
				return false
			}
		}
	}
	return len(s.Problems) == 0
}

// survey is everything that a status is made of, read once.
type survey struct {
	closely      bool // whether every object was compared with what was deployed
	environments []metalk8s.Environment
	solutions    *metalk8s.Solutions
	catalog      *Catalog
	states       map[engine.Key]*engine.State
	findings     map[engine.Key]*finding
	foreign      map[engine.Key]*unstructured.Unstructured // operators that somebody else deployed
	gone         map[string]bool                           // namespaces on the records that are not there
}

func (d *Deployer) survey(ctx context.Context, environments []metalk8s.Environment, wanted func(*engine.State) bool, closely bool) (*survey, error) {
	s := &survey{
		closely: closely, environments: environments,
		states: map[engine.Key]*engine.State{}, foreign: map[engine.Key]*unstructured.Unstructured{},
	}
	var err error
	if s.solutions, err = d.documents().Solutions(ctx); err != nil {
		return nil, err
	}
	if s.catalog, err = d.Catalog(ctx); err != nil {
		return nil, err
	}
	states, err := d.engine().States(ctx)
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(s *engine.State) bool { return !wanted(s) })
	for _, state := range states {
		s.states[state.Key] = state
	}
	if s.findings, err = d.examine(ctx, states, closely); err != nil {
		return nil, err
	}
	if err := d.findGone(ctx, s); err != nil {
		return nil, err
	}
	return s, d.findForeign(ctx, s)
}

// findGone looks for the namespaces that are on the records and in no environment.
func (d *Deployer) findGone(ctx context.Context, s *survey) error {
	s.gone = map[string]bool{"": false}
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			s.gone[n.Name] = false
		}
	}
	for _, key := range s.keys() {
		if _, known := s.gone[key.Namespace]; known {
			continue
		}
		live, err := d.Cluster.Get(ctx, namespaceKind, "", key.Namespace)
		if err != nil {
			return err
		}
		s.gone[key.Namespace] = live == nil
	}
	return nil
}

// findForeign looks for the operators of Solutions that an environment asks for and that are not on our records: MetalK8s
// may have deployed them.
func (d *Deployer) findForeign(ctx context.Context, s *survey) error {
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			for _, solution := range sortedKeys(n.Versions) {
				key := engine.Key{Namespace: n.Name, Solution: solution}
				if state := s.states[key]; state != nil {
					if _, deployed := deployedVersion(state); deployed {
						continue
					}
				}
				operator, err := d.Cluster.Get(ctx, deploymentKind, n.Name, solution+"-operator")
				if err != nil {
					return err
				}
				s.foreign[key] = operator
			}
		}
	}
	return nil
}

func (s *survey) environmentStatus(e metalk8s.Environment) schema.EnvironmentStatus {
	status := schema.EnvironmentStatus{Name: e.Name, Description: e.Description, Namespaces: []schema.NamespaceStatus{}}
	for _, n := range e.Namespaces {
		one := schema.NamespaceStatus{Name: n.Name, Terminating: n.Terminating, Deployments: []schema.DeploymentStatus{}, Problems: []string{}}
		solutions := map[string]bool{}
		for solution := range n.Versions {
			solutions[solution] = true
		}
		for key, state := range s.states {
			if _, deployed := deployedVersion(state); deployed && key.Namespace == n.Name {
				solutions[key.Solution] = true
			}
		}
		for _, solution := range sortedKeys(solutions) {
			one.Deployments = append(one.Deployments, s.deployment(engine.Key{Namespace: n.Name, Solution: solution}, n.Versions[solution]))
		}
		if n.Terminating {
			one.Problems = append(one.Problems, n.Holding()...)
		}
		status.Namespaces = append(status.Namespaces, one)
	}
	return status
}

// deployment judges a Solution in a namespace, or its part for the whole cluster, of which MetalK8s' document asks for a
// version.
func (s *survey) deployment(key engine.Key, wanted string) schema.DeploymentStatus {
	status := schema.DeploymentStatus{Solution: key.Solution, Wanted: wanted, Health: schema.HealthReady, Reasons: []string{}}
	worsen := func(health schema.DeploymentHealth, reasons ...string) {
		if severity(health) > severity(status.Health) {
			status.Health = health
		}
		status.Reasons = append(status.Reasons, reasons...)
	}
	state := s.states[key]
	if state == nil {
		state = &engine.State{Key: key}
	}
	if state.Current != nil {
		status.Version = state.Current.Version
	}
	if f := s.findings[key]; f != nil {
		status.Objects, status.Ready, status.Completed = f.objects, f.ready, f.completed
		worsen(f.health, f.reasons...)
		if s.closely {
			status.Drift = f.drift
		}
	}
	if p := state.Pending; p != nil {
		status.Pending = &schema.PendingOperation{Operation: p.Operation, Version: p.Version, User: p.User, Started: p.Started}
		worsen(schema.HealthPending, fmt.Sprintf("%s of version %s, begun by %s, has not ended: if nobody is at work, 'solutionctl deploy resume' finishes it",
			p.Operation, cmp.Or(p.Version, status.Version), p.User))
	}
	_, deployed := deployedVersion(state)
	_, imported := s.catalog.imports[key.Solution+"-"+wanted]
	switch {
	case wanted == "" && key.Namespace != "":
		worsen(schema.HealthDrifted, fmt.Sprintf("it is deployed, but ConfigMap %s does not ask for it", metalk8s.EnvironmentConfigMap))
	case wanted == "":
		worsen(schema.HealthDrifted, fmt.Sprintf("it is deployed, but ConfigMap %s says that no version is active", metalk8s.SolutionsConfigMap))
	case !deployed && s.foreign[key] != nil:
		worsen(schema.HealthForeign, foreignReasons(s.foreign[key])...)
	case !deployed && !imported:
		worsen(schema.HealthMissing, fmt.Sprintf("version %s is asked for, but was not imported", wanted))
	case !deployed:
		worsen(schema.HealthMissing, fmt.Sprintf("version %s is asked for, but is not deployed", wanted))
	case status.Pending == nil && wanted != status.Version:
		worsen(schema.HealthDrifted, fmt.Sprintf("version %s is asked for, but %s is deployed", wanted, status.Version))
	}
	return status
}

// severity orders health from good to bad.
func severity(h schema.DeploymentHealth) int {
	return slices.Index([]schema.DeploymentHealth{
		schema.HealthReady, schema.HealthProgressing, schema.HealthForeign, schema.HealthDrifted, schema.HealthPending,
		schema.HealthMissing, schema.HealthFailed,
	}, h)
}

// solutionStatuses lists what was imported, as we and as MetalK8s know it.
func (s *survey) solutionStatuses() []schema.SolutionStatus {
	names := map[string]bool{}
	for _, i := range s.catalog.imports {
		names[i.Name] = true
	}
	for name := range s.solutions.Versions {
		names[name] = true
	}
	for key, state := range s.states {
		if _, deployed := deployedVersion(state); deployed && key.Namespace == "" {
			names[key.Solution] = true
		}
	}
	statuses := []schema.SolutionStatus{}
	for _, name := range sortedKeys(names) {
		status := schema.SolutionStatus{Name: name, DisplayName: s.displayName(name), Active: s.solutions.Active(name), Versions: s.versions(name)}
		if state := s.states[engine.Key{Solution: name}]; state != nil {
			if _, deployed := deployedVersion(state); deployed {
				part := s.deployment(state.Key, status.Active)
				status.Deployment, status.Active = &part, cmp.Or(part.Version, status.Active)
			}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// displayName is that of the highest version that has one.
func (s *survey) displayName(solution string) string {
	name := solution
	for _, entry := range s.solutions.Versions[solution] {
		name = cmp.Or(entry.Name, name)
	}
	return name
}

// versions are the imported versions of a Solution, the lowest first.
func (s *survey) versions(solution string) []schema.ImportedVersion {
	byVersion := map[string]schema.ImportedVersion{}
	for _, entry := range s.solutions.Versions[solution] {
		byVersion[entry.Version] = schema.ImportedVersion{
			Version: entry.Version, ID: cmp.Or(entry.ID, solution+"-"+entry.Version), Active: entry.Active, Archive: entry.Archive,
		}
	}
	for _, i := range s.catalog.Of(solution) {
		v := byVersion[i.Version]
		v.Version, v.ID, v.ImportedAt, v.ImportedBy = i.Version, i.ID(), &i.ImportedAt, i.ImportedBy
		v.Archive = cmp.Or(v.Archive, i.Archive.Path)
		byVersion[i.Version] = v
	}
	versions := []schema.ImportedVersion{}
	for _, v := range byVersion {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b schema.ImportedVersion) int { return schema.CompareVersions(a.Version, b.Version) })
	return versions
}

// problems are what is wrong with the cluster as a whole.
func (s *survey) problems() []string {
	problems := []string{}
	for _, p := range s.solutions.Problems {
		problems = append(problems, p.String())
	}
	for _, i := range s.catalog.Imports() {
		if _, ok := s.solutions.Find(i.Name, i.Version); !ok {
			problems = append(problems, fmt.Sprintf("%s was imported, but MetalK8s' ConfigMap %s does not list it: import it again", i.ID(), metalk8s.SolutionsConfigMap))
		}
	}
	for _, name := range sortedKeys(s.solutions.Versions) {
		for _, entry := range s.solutions.Versions[name] {
			if _, ok := s.catalog.imports[name+"-"+entry.Version]; !ok {
				problems = append(problems, fmt.Sprintf("%s-%s was imported by MetalK8s only: to deploy it from here, run 'solutionctl deploy import %s'",
					name, entry.Version, cmp.Or(entry.Archive, "FILE")))
			}
		}
	}
	inEnvironment := map[string]bool{"": true}
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			inEnvironment[n.Name] = true
		}
	}
	for _, key := range s.keys() {
		version, deployed := deployedVersion(s.states[key])
		what := strings.TrimSpace(key.Solution + " " + version)
		switch {
		case !deployed || inEnvironment[key.Namespace]:
		case s.gone[key.Namespace]:
			problems = append(problems, fmt.Sprintf("Solution %s was deployed in namespace %s, which somebody has deleted: "+
				"'solutionctl deploy env delete %s' removes what is left of it", what, key.Namespace, key.Namespace))
		default:
			problems = append(problems, fmt.Sprintf("Solution %s is deployed in namespace %s, which is not part of an environment: "+
				"'solutionctl deploy env create NAME --namespace %s --adopt' makes it one", what, key.Namespace, key.Namespace))
		}
	}
	return problems
}

// keys are those of the records, sorted.
func (s *survey) keys() []engine.Key {
	var keys []engine.Key
	for key := range s.states {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b engine.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Solution, b.Solution))
	})
	return keys
}
