package deployer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/cluster"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DiffOptions say what to compare; empty fields stand for everything.
type DiffOptions struct {
	Environment, Solution string
}

// Diff tells what was changed since it was deployed: fields that were applied and that somebody has changed, with who and
// when, and objects that are gone. What others have added is none of its business. It needs no right to write.
func (d *Deployer) Diff(ctx context.Context, o DiffOptions) (*schema.Operation, error) {
	t := &task{Operation: schema.Operation{Operation: "diff", Solution: o.Solution, Environment: o.Environment, Planned: true}}
	states, namespaces, notices, err := d.deployed(ctx, o)
	if err != nil {
		return nil, err
	}
	t.notice(notices...)
	var unread map[engine.Key]error
	if t.plans, unread, err = d.drift(ctx, states); err != nil {
		return nil, err
	}
	if t.records, _, err = d.versionDrift(ctx, states, namespaces); err != nil {
		return nil, err
	}
	return t.finish(), t.unread(unread, o)
}

// unread tells of what was deployed and cannot be read any more. It is an error for whoever asked for this one, and else harms
// no other.
func (t *task) unread(failures map[engine.Key]error, o DiffOptions) error {
	for _, key := range slices.SortedFunc(maps.Keys(failures), compareKeys) {
		if o.Solution != "" {
			return failures[key]
		}
		t.notice(unreadText(key, failures[key]))
	}
	return nil
}

// unreadText says that a record, or what belongs to it, cannot be read, and what helps.
func unreadText(key engine.Key, err error) string {
	text := fmt.Sprintf("%s is left out: %v", key, err)
	if hints := report.Hints(err); len(hints) > 0 {
		text += " (" + strings.Join(hints, "; ") + ")"
	}
	return text
}

func compareKeys(a, b engine.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Solution, b.Solution))
}

// versionDrift is what the shared documents say other than the records about versions, and what makes them say it again.
func (d *Deployer) versionDrift(ctx context.Context, states []*engine.State, namespaces map[string]metalk8s.Namespace) (changes []schema.Change, restore func(context.Context) error, err error) {
	var writes []func(context.Context) error
	for _, s := range states {
		if s.Current.Version == "" {
			continue
		}
		if s.Namespace == "" {
			change, write, err := d.setActive(ctx, s.Solution, s.Current.Version)
			if err != nil {
				return nil, nil, err
			}
			if len(change) > 0 {
				changes, writes = append(changes, change...), append(writes, write)
			}
			continue
		}
		n, inEnvironment := namespaces[s.Namespace]
		change := recordChange(s.Namespace, metalk8s.EnvironmentConfigMap, "data."+s.Solution, n.Versions[s.Solution], s.Current.Version)
		if inEnvironment && len(change) > 0 {
			changes = append(changes, change...)
			writes = append(writes, func(ctx context.Context) error {
				return d.documents.SetVersion(ctx, s.Namespace, s.Solution, s.Current.Version)
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

// deployed returns the records of what is deployed there, and the namespaces of the environments. What was left in the middle, and
// what is in a namespace that goes away, is left out with a notice.
func (d *Deployer) deployed(ctx context.Context, o DiffOptions) (found []*engine.State, inside map[string]metalk8s.Namespace, notices []string, err error) {
	var environments []metalk8s.Environment
	if o.Environment == "" {
		all, err := d.documents.Environments(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		environments = all
	} else {
		one, err := d.documents.Environment(ctx, o.Environment)
		if err != nil {
			return nil, nil, nil, err
		}
		environments = append(environments, *one)
	}
	there := map[string]bool{"": true}
	inside = map[string]metalk8s.Namespace{}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			inside[n.Name], there[n.Name] = n, !n.Terminating
		}
	}
	states, err := d.engine.States(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	states = slices.DeleteFunc(states, func(s *engine.State) bool {
		_, here := inside[s.Namespace]
		elsewhere := o.Environment != "" && !here
		return s.Current == nil && s.Pending == nil && s.Damage == nil || o.Solution != "" && s.Solution != o.Solution || elsewhere
	})
	if len(states) == 0 && o.Solution != "" {
		return nil, nil, nil, notDeployed(o.Solution)
	}
	for _, s := range states {
		if s.Damage != nil {
			if o.Solution != "" {
				return nil, nil, nil, s.Damage
			}
			notices = append(notices, unreadText(s.Key, s.Damage))
			continue
		}
		if _, known := there[s.Namespace]; !known {
			namespace, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", s.Namespace)
			if err != nil {
				return nil, nil, nil, err
			}
			there[s.Namespace] = namespace != nil && namespace.GetDeletionTimestamp() == nil
		}
		switch {
		case s.Pending != nil && s.Pending.Operation != repairVerb:
			notices = append(notices, fmt.Sprintf("%s: the last %s was interrupted; run it again", s, s.Pending.Operation))
		case !there[s.Namespace]:
			notices = append(notices, fmt.Sprintf("%s: the namespace is gone, or being deleted", s))
		case s.Current != nil:
			found = append(found, s)
		}
	}
	return found, inside, notices, nil
}

// drift plans what would bring back what is on the records, without asking for a right to do it. What cannot be read of them is
// left out, and returned.
func (d *Deployer) drift(ctx context.Context, states []*engine.State) ([]*engine.Plan, map[engine.Key]error, error) {
	releases, unread, err := d.engine.Deployed(ctx, states)
	if err != nil {
		return nil, nil, err
	}
	plans, err := d.engine.PlanAll(ctx, releases, engine.PlanOptions{Restore: true, Look: true})
	return plans, unread, err
}

func notDeployed(solution string) error {
	return report.Errorf(report.NotFound, "Solution %s was not deployed here", solution).WithHint("'solutionctl deploy status' lists what was")
}
