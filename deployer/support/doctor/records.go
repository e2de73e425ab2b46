package doctor

import (
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// records checks the records of this tool and of MetalK8s' tools.
func (x *examination) records() {
	x.locks()
	x.refusedLocks()
	x.status()
	x.monitoring()
	x.broken()
}

// status checks the documents, and the deployments that they name.
func (x *examination) status() {
	status, err := x.Deployer.Survey.Status(x.ctx, survey.StatusOptions{})
	if err != nil {
		x.failed("records", "documents", err)
		return
	}
	for _, problem := range status.Problems[:min(len(status.Problems), maxRows)] {
		x.add(schema.CheckWarning, "records", "documents", problem, "")
	}
	if len(status.Problems) == 0 {
		x.ok("records", "documents", "what was imported and which environments there are can be read, and goes together")
	}
	x.deployments(status)
	x.support(status)
}

// broken finds lost and damaged records.
func (x *examination) broken() {
	found, err := x.Deployer.Broken(x.ctx)
	if err != nil {
		x.failed("records", "records", err)
		return
	}
	for _, one := range found[:min(len(found), maxProblems)] {
		x.record(schema.Check{Area: "records", Name: "records", Object: one.Of, Result: schema.CheckProblem, Message: one.What, Hint: one.Cure})
	}
	x.unlisted("records", "records", len(found))
	if len(found) == 0 {
		x.ok("records", "records", "the records of what is imported and deployed are there, and can be read")
	}
}

// locks reports the holders of locks.
func (x *examination) locks() {
	held, err := x.Deployer.Cluster.Locks(x.ctx)
	if err != nil {
		x.failed("records", "locks", err)
		return
	}
	now := x.Now().Add(x.server)
	for _, lock := range held {
		since := lock.Since.UTC().Format(time.RFC3339)
		if lock.Promised.Before(now) {
			x.add(schema.CheckWarning, "records", "locks",
				fmt.Sprintf("%s took lock %s at %s, and gives no sign of life since %s", lock.Person, lock.Name, since, lock.Promised.UTC().Format(time.RFC3339)),
				"no action needed: the next command acquires it")
			continue
		}
		x.add(schema.CheckWarning, "records", "locks", fmt.Sprintf("%s is at work since %s (lock %s)", lock.Person, since, lock.Name),
			"wait, or let commands wait with --lock-wait 5m")
	}
	if len(held) == 0 {
		x.ok("records", "locks", "no lock is held")
	}
}

// deployments finds pending operations, and counts deployments that are not ready.
func (x *examination) deployments(s *schema.Status) {
	all, bad, pending := 0, 0, 0
	for d := range s.Deployments() {
		all++
		if d.Health != schema.HealthReady {
			bad++
		}
		if d.Pending == nil {
			continue
		}
		place := "in the cluster"
		if d.Namespace != "" {
			place = "in namespace " + d.Namespace
		}
		if pending++; pending <= maxRows {
			x.add(schema.CheckWarning, "records", "pending", fmt.Sprintf("%s of %s %s %s was begun by %s at %s and has not ended",
				d.Pending.Operation, d.Solution, d.Pending.Version, place, d.Pending.User, d.Pending.Started.UTC().Format(time.RFC3339)),
				fmt.Sprintf("if no process is working on it: '%s' finishes it", report.Run("deploy resume")))
		}
	}
	if pending == 0 {
		x.ok("records", "pending", "everything that was begun has ended")
	}
	well := report.Count(all, "deployment")
	if bad > 0 {
		x.add(schema.CheckWarning, "records", "deployments", fmt.Sprintf("%d of %s not well", bad, well), report.Run("deploy status").String())
		return
	}
	x.ok("records", "deployments", "%d of %s well", all, well)
}

// support warns of versions in use whose vendor ends their support soon, or has ended it.
func (x *examination) support(s *schema.Status) {
	used := map[string]bool{}
	for d := range s.Deployments() {
		if d.Namespace != "" {
			used[d.Solution+" "+d.Version] = true
		}
	}
	now := x.Now().Add(x.server)
	for _, solution := range s.Solutions {
		for _, v := range solution.Versions {
			end, name := v.SupportEnd(), solution.Name+" "+v.Version
			if end.IsZero() || !v.Active && !used[name] {
				continue
			}
			hint := report.Run("deploy compatibility", solution.Name).String()
			switch left := end.Sub(now); {
			case left <= 0:
				x.add(schema.CheckWarning, "records", "support", name+" is in use, and its support has ended on "+v.SupportedUntil, hint)
			case left < soon:
				x.add(schema.CheckWarning, "records", "support", name+" is in use, and its support ends on "+v.SupportedUntil, hint)
			default:
				x.ok("records", "support", "%s is supported until %s", name, v.SupportedUntil)
			}
		}
	}
}

// monitoring looks for monitors and rules that no Prometheus selects.
func (x *examination) monitoring() {
	selectors, err := x.Deployer.Survey.Selectors(x.ctx)
	if err != nil {
		x.failed("records", "monitoring", err)
		return
	}
	if selectors == nil {
		x.skip("records", "monitoring", "the cluster has no Prometheus object: whether monitors and rules are selected is unknown")
		return
	}
	remarks, err := x.Deployer.Survey.Unselected(x.ctx, selectors)
	if err != nil {
		x.failed("records", "monitoring", err)
		return
	}
	for _, remark := range remarks[:min(len(remarks), maxRows)] {
		x.add(schema.CheckWarning, "records", "monitoring", remark, "")
	}
	if len(remarks) == 0 {
		x.ok("records", "monitoring", "a Prometheus selects each monitor and each rule")
	}
}
