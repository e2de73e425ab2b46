package survey

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// StatusOptions say how closely to look.
type StatusOptions struct {
	Drift bool // compare every field of every object with the deployed one
	// Preview is called once with what is read first, and before Status returns: the imported versions and the environments, with the versions that they
	// ask for. Nothing is known of the health of a deployment, which is "" there. Nil is not called.
	Preview func(*schema.Status)
}

// Status returns the imported versions, the deployments and their health. It changes nothing.
func (v *Survey) Status(ctx context.Context, o StatusOptions) (*schema.Status, error) {
	environments, err := v.Records.Documents.BeginEnvironments(ctx)
	if err != nil {
		return nil, orOne(err)
	}
	var s *picture
	var name *schema.ClusterName
	var unnamed error
	if err = together(
		func() (err error) {
			s, err = v.look(ctx, environments, nil, o)
			return err
		},
		func() error {
			name, unnamed = v.Records.NameOfCluster(ctx)
			return nil
		},
	); err != nil {
		return nil, err
	}
	status := &schema.Status{Cluster: name, Solutions: s.solutionStatuses(), Environments: []schema.EnvironmentStatus{}, Problems: s.problems()}
	for _, e := range s.environments {
		status.Environments = append(status.Environments, s.environmentStatus(e))
	}
	if report.CodeOf(unnamed) == report.Corrupt {
		status.Problems = append(status.Problems, unnamed.Error())
	}
	status.Ready = isReady(status)
	return status, nil
}

// Environments reads all environments. A user who is not allowed to list them gets an error whose hint shows one
// environment.
func (v *Survey) Environments(ctx context.Context) ([]metalk8s.Environment, error) {
	environments, err := v.Records.Documents.Environments(ctx)
	return environments, orOne(err)
}

// orOne adds the hint to the error of a user who is not allowed to list all environments.
func orOne(err error) error {
	if report.CodeOf(err) != report.Forbidden {
		return err
	}
	return report.As(report.Forbidden, err).WithHint("if one of the environments is yours: %s", report.Run("deploy env show", "ENVIRONMENT"))
}

// EnvironmentOptions name the environment to look at.
type EnvironmentOptions struct {
	Environment string
	Namespace   string // the namespace of the environment, for a user who is not allowed to list namespaces; "" means the name of the environment
	Members     bool   // list the members and their permissions
	Drift       bool   // compare every field of every object with the deployed one
}

// EnvironmentStatus is the part of [Survey.Status] about one environment. A user with fewer permissions sees the part
// that they allow, and a list of the other parts.
func (v *Survey) EnvironmentStatus(ctx context.Context, o EnvironmentOptions) (*schema.EnvironmentStatus, error) {
	e, whole, err := v.Records.Documents.Visible(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, err
	}
	s, err := v.look(ctx, func() ([]metalk8s.Environment, error) { return []metalk8s.Environment{*e}, nil }, e.Names(), StatusOptions{Drift: o.Drift})
	if report.CodeOf(err) == report.Forbidden {
		whole = false
		s, err = v.observe(ctx, *e)
	}
	if err != nil {
		return nil, err
	}
	status := s.environmentStatus(*e)
	if !whole {
		if status.Unseen, err = v.unseen(ctx, e); err != nil {
			return nil, err
		}
	}
	if o.Members {
		var unseen []schema.Unseen
		status.Members, unseen, err = v.Members(ctx, e.Names())
		status.Unseen = append(status.Unseen, unseen...)
	}
	return &status, err
}

func isReady(s *schema.Status) bool {
	for _, solution := range s.Solutions {
		if solution.Deployment != nil && !isWell(solution.Deployment.Health) {
			return false
		}
	}
	return len(s.Problems) == 0 && !slices.ContainsFunc(s.Environments, func(e schema.EnvironmentStatus) bool { return !IsEnvironmentReady(e) })
}

// IsEnvironmentReady reports whether all deployments of an environment are ready.
func IsEnvironmentReady(e schema.EnvironmentStatus) bool {
	return !slices.ContainsFunc(e.Namespaces, func(n schema.NamespaceStatus) bool {
		return n.Terminating || len(n.Problems) > 0 || slices.ContainsFunc(n.Deployments, func(d schema.DeploymentStatus) bool { return !isWell(d.Health) })
	})
}

func isWell(h schema.DeploymentHealth) bool { return h == schema.HealthReady }

func (s *picture) environmentStatus(e metalk8s.Environment) schema.EnvironmentStatus {
	status := schema.EnvironmentStatus{Name: e.Name, Description: e.Description, Namespaces: []schema.NamespaceStatus{}}
	for _, n := range e.Namespaces {
		one := schema.NamespaceStatus{Name: n.Name, Terminating: n.Terminating, Deployments: []schema.DeploymentStatus{}, Problems: []string{}}
		solutions := map[string]bool{}
		for solution := range n.Versions {
			solutions[solution] = true
		}
		for _, key := range s.in(n.Name) {
			solutions[key.Name] = true
		}
		for _, problem := range n.Problems {
			one.Problems = append(one.Problems, problem.String())
		}
		for _, solution := range slices.Sorted(maps.Keys(solutions)) {
			one.Deployments = append(one.Deployments, s.deployment(record.Key{Namespace: n.Name, Name: solution}, n.Versions[solution], e.Name))
		}
		if n.Terminating {
			one.Problems = append(one.Problems, n.Holding()...)
		}
		status.Namespaces = append(status.Namespaces, one)
	}
	return status
}

// deployment judges a Solution in a namespace of an environment, or its part for the whole cluster, of which MetalK8s'
// document asks for a version.
func (s *picture) deployment(key record.Key, wanted, environment string) schema.DeploymentStatus {
	status := schema.DeploymentStatus{Solution: key.Name, Wanted: wanted, Health: schema.HealthReady, Reasons: []schema.Reason{}}
	worsen := func(health schema.DeploymentHealth, reasons ...schema.Reason) {
		if severity(health) > severity(status.Health) {
			status.Health = health
		}
		status.Reasons = append(status.Reasons, reasons...)
	}
	because := func(health schema.DeploymentHealth, text string) { worsen(health, schema.Reason{Text: text}) }
	state := cmp.Or(s.states[key], &record.State{Key: key})
	if state.Current != nil {
		status.Version = state.Current.Version
	}
	if f := s.findings[key]; f != nil {
		status.Objects, status.Ready, status.Completed, status.Waiting = f.objects, f.ready, f.completed, f.waiting
		worsen(f.health, f.reasons...)
		if s.closely {
			status.Drift = f.drift
		}
	}
	s.addComponents(&status, key, environment, worsen)
	if p := state.Pending; p != nil {
		status.Pending = &schema.PendingOperation{Operation: p.Operation, Version: p.Version, User: p.User, Started: p.Started}
		because(schema.HealthPending, s.unended(key.Namespace, p, cmp.Or(p.Version, status.Version)))
	}
	_, deployed := records.DeployedVersion(state)
	_, imported := s.catalog.Get(key.Name + "-" + wanted)
	lost := s.lost[key]
	if lost != nil && !deployed {
		status.Version = records.VersionOn(lost.Ours[0].Object, "")
	}
	switch {
	case state.Damage != nil:
		because(schema.HealthFailed, "its record cannot be read, and nothing can be done with it: "+unreadable(state.Damage, environment, key))
		return status
	case lost != nil:
		because(schema.HealthFailed, offRecord(lost, deployed, Rebuilding(environment, key)))
	}
	switch {
	case lost != nil && !deployed:
	case s.foreign[key] != nil:
		status.Version = records.VersionOn(s.foreign[key], "")
		worsen(schema.HealthForeign, foreignReasons(s.foreign[key])...)
	case wanted == "" && s.quiet[key.Namespace]: // nothing to compare with
	case !deployed && s.dim[key.Namespace]:
		because(schema.HealthUnknown, fmt.Sprintf("version %s is requested; you do not have permission to see the deployed one", wanted))
	case wanted == "" && key.Namespace != "":
		because(schema.HealthDrifted, fmt.Sprintf("it is deployed, but ConfigMap %s does not ask for it", metalk8s.EnvironmentConfigMap))
	case wanted == "":
		because(schema.HealthDrifted, fmt.Sprintf("it is deployed, but ConfigMap %s has no active version of it", metalk8s.SolutionsConfigMap))
	case !deployed && !imported && s.catalog.Damage == nil:
		because(schema.HealthMissing, fmt.Sprintf("version %s is asked for, but was not imported", wanted))
	case !deployed:
		because(schema.HealthMissing, fmt.Sprintf("version %s is asked for, but is not deployed", wanted))
	case status.Pending == nil && wanted != status.Version:
		because(schema.HealthDrifted, fmt.Sprintf("version %s is asked for, but %s is deployed", wanted, status.Version))
	}
	return status
}

// unended describes an operation that is not complete, and whether a process is working on it, as far as that is known.
func (s *picture) unended(namespace string, p *schema.DeploymentRevision, version string) string {
	text := fmt.Sprintf("%s of version %s, begun by %s,", p.Operation, version, p.User)
	resume := report.Run("deploy resume")
	work, known := s.work[namespace]
	switch {
	case !known:
		return fmt.Sprintf("%s is not complete: if no process is working on it, '%s' finishes it", text, resume)
	case work.Holder != "":
		return fmt.Sprintf("%s is not complete: %s is working on it", text, work.Holder)
	default:
		since := p.Started
		if work.Renewed.After(since) {
			since = work.Renewed
		}
		return fmt.Sprintf("%s was interrupted or has failed, and no process works on it since %s: '%s' finishes it", text, since.UTC().Format(time.RFC3339), resume)
	}
}

// offRecord describes unrecorded objects, with the command that records or releases them.
func offRecord(s *records.Unrecorded, deployed bool, rebuild report.Remedy) string {
	if deployed {
		return fmt.Sprintf("objects with the label of it are not on its record: %s: '%s' makes them no part of it", s.Text(), s.Unlabel())
	}
	return fmt.Sprintf("it is here, but its record is lost: %s: '%s' puts on record again what is as it was imported", s.Text(), rebuild)
}

// unreadable explains why a record cannot be read, with the remedy: a record of a newer program is not damaged.
func unreadable(damage error, environment string, key record.Key) string {
	if report.CodeOf(damage) == report.Refused {
		return fmt.Sprintf("%v: %s", damage, strings.Join(report.Hints(damage), "; "))
	}
	return fmt.Sprintf("%v: '%s' rebuilds it", damage, Rebuilding(environment, key))
}

// Rebuilding is the remedy that rebuilds a record.
func Rebuilding(environment string, key record.Key) report.Remedy {
	if environment == "" {
		return report.Run("deploy repair").With("records")
	}
	return report.Run("deploy repair", environment, key.Name).With("records")
}

// severity orders health from good to bad.
func severity(h schema.DeploymentHealth) int {
	return slices.Index([]schema.DeploymentHealth{
		schema.HealthReady, schema.HealthUnknown, schema.HealthProgressing, schema.HealthForeign, schema.HealthDrifted, schema.HealthPending,
		schema.HealthMissing, schema.HealthFailed,
	}, h)
}

// problems returns those of the cluster as a whole.
func (s *picture) problems() []string {
	problems := []string{}
	for _, p := range s.solutions.Problems {
		problems = append(problems, p.String())
	}
	for _, i := range s.catalog.Imports() {
		if _, ok := s.solutions.Find(i.Name, i.Version); !ok {
			problems = append(problems, fmt.Sprintf("%s was imported, but MetalK8s' ConfigMap %s does not list it: import it again", i.ID(), metalk8s.SolutionsConfigMap))
		}
	}
	if s.catalog.Damage != nil {
		problems = append(problems, s.catalog.Unread())
	}
	for _, name := range slices.Sorted(maps.Keys(s.solutions.Versions)) {
		for _, entry := range s.solutions.Versions[name] {
			if _, ok := s.catalog.Get(name + "-" + entry.Version); !ok && s.catalog.Damage == nil {
				problems = append(problems, fmt.Sprintf("%s-%s was imported by MetalK8s only: to deploy it from here, run '%s'",
					name, entry.Version, report.Run("deploy import", cmp.Or(entry.Archive, "FILE"))))
			}
		}
	}
	inEnvironment := map[string]bool{"": true}
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			inEnvironment[n.Name] = true
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.lost), record.CompareKeys) {
		if !inEnvironment[key.Namespace] {
			problems = append(problems, fmt.Sprintf("Solution %s is in namespace %s, which is not part of an environment, and on no record: %s",
				key.Name, key.Namespace, s.lost[key].Text()))
		}
	}
	for _, key := range s.keys() {
		if key.Component != "" {
			continue // it is where its Solution is
		}
		version, deployed := records.DeployedVersion(s.states[key])
		what := strings.TrimSpace(key.Name + " " + version)
		switch {
		case inEnvironment[key.Namespace]:
		case s.states[key].Damage != nil:
			problem := fmt.Sprintf("the record of Solution %s in namespace %s cannot be read: %s", key.Name, key.Namespace, unreadable(s.states[key].Damage, "", key))
			if report.CodeOf(s.states[key].Damage) != report.Refused {
				problem += fmt.Sprintf(", and where the namespace is gone 'kubectl delete secret -n %s %s' gives it up", cluster.SystemNamespace, s.states[key].Secret())
			}
			problems = append(problems, problem)
		case !deployed:
		case s.gone[key.Namespace]:
			problems = append(problems, fmt.Sprintf("Solution %s was deployed in namespace %s, which was deleted: "+
				"'%s' removes its remaining objects", what, key.Namespace, report.Run("deploy env delete", key.Namespace)))
		default:
			problems = append(problems, fmt.Sprintf("Solution %s is deployed in namespace %s, which is not part of an environment: "+
				"'%s' makes it one", what, key.Namespace, report.Run("deploy env create", "NAME").With("namespace", key.Namespace).With("adopt")))
		}
	}
	return problems
}
