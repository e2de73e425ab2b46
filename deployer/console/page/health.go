package page

import (
	"cmp"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
)

// badness is the order of healths, the worst first: that in which people want to hear of them.
var badness = []schema.DeploymentHealth{
	schema.HealthFailed, schema.HealthMissing, schema.HealthForeign, schema.HealthDrifted, schema.HealthPending,
	schema.HealthProgressing, schema.HealthUnknown, schema.HealthReady,
}

// worse compares healths; words that this program does not know come first.
func worse(a, b schema.DeploymentHealth) int {
	return cmp.Compare(slices.Index(badness, a), slices.Index(badness, b))
}

// share is the number of deployments with one health.
type share struct {
	Health schema.DeploymentHealth
	Number int
	// X and Width are its place in a bar that is barWidth wide.
	X, Width int
}

const barWidth = 1000

// bar lays shares beside each other. Each one can be seen, however small it is.
func bar(shares []share) []share {
	const least = 6
	total := 0
	for _, s := range shares {
		total += s.Number
	}
	laid := slices.Clone(shares)
	spare := barWidth - least*len(laid)
	seen, x := 0, 0
	for i := range laid {
		seen += laid[i].Number
		laid[i].X = x
		end := least*(i+1) + spare*seen/max(total, 1)
		laid[i].Width = end - x
		x = end
	}
	return laid
}

// Shares are how many deployments have which health, the worst last: a bar grows from the good end.
func (o *Overview) Shares() []share {
	numbers := map[schema.DeploymentHealth]int{}
	for p := range o.Status.Deployments() {
		numbers[p.Health]++
	}
	var shares []share
	for health, number := range numbers {
		shares = append(shares, share{Health: health, Number: number})
	}
	slices.SortFunc(shares, func(a, b share) int { return worse(b.Health, a.Health) })
	return shares
}

// Deployments is the number of all deployments.
func (o *Overview) Deployments() int {
	n := 0
	for range o.Status.Deployments() {
		n++
	}
	return n
}

// NotReady are the deployments that are not ready, the worst first.
func (o *Overview) NotReady() []schema.PlacedDeployment {
	if o.Checking {
		return nil
	}
	var notReady []schema.PlacedDeployment
	for p := range o.Status.Deployments() {
		if p.Health != schema.HealthReady {
			notReady = append(notReady, p)
		}
	}
	slices.SortStableFunc(notReady, func(a, b schema.PlacedDeployment) int { return worse(a.Health, b.Health) })
	return notReady
}

// Active is the number of Solutions that are active.
func (o *Overview) Active() int {
	n := 0
	for _, s := range o.Status.Solutions {
		if s.Active != "" {
			n++
		}
	}
	return n
}

// Matrix shows the environments as the listing has them.
func (o *Overview) Matrix() matrix {
	m := newMatrix(o.Status.Environments, o.Listing.at(URL()))
	if o.Checking { // then it has one group
		all := &m.Groups[0]
		all.Rows, m.Shown = all.Rows[:min(len(all.Rows), maxPreview)], 0
		for _, r := range all.Rows {
			if !r.Hidden {
				m.Shown++
			}
		}
		all.Shown = m.Shown
	}
	return m
}

// Matrix shows the environments as the listing has them.
func (e *Environments) Matrix() matrix {
	return newMatrix(e.Environments, e.Listing.at(URL("environments")))
}

// Worst is the health of an environment: that of the deployment with which it is worst.
func (e *Environment) Worst() schema.DeploymentHealth {
	var worst schema.DeploymentHealth
	for _, n := range e.Status.Namespaces {
		for _, d := range n.Deployments {
			if worst == "" || worse(d.Health, worst) < 0 {
				worst = d.Health
			}
		}
	}
	return worst
}

// Reasons are the reasons for the health of a deployment, except changed fields, which its drift lists.
func (e *Environment) Reasons(d schema.DeploymentStatus) []schema.Reason {
	return slices.DeleteFunc(slices.Clone(d.Reasons), func(r schema.Reason) bool {
		return r.Changed && slices.ContainsFunc(d.Drift, func(c schema.Change) bool { return len(c.Fields) > 0 && c.Object == r.Object })
	})
}

// A cause is a reason for a health, with the log that has more about it.
type cause struct {
	Reason    string
	Log       string // its page; "" where there is none
	Container string
}

// causesOf returns the causes of what is the matter with a Solution in a namespace of an environment.
func causesOf(environment, namespace, solution string, reasons []schema.Reason) []cause {
	var causes []cause
	for _, reason := range reasons {
		one := cause{Reason: reason.String()}
		if log := reason.Log; log.Container != "" && environment != "" {
			to := []string{"namespace", namespace, "pod", log.Pod, "container", log.Container}
			if log.Previous {
				to = append(to, "previous", "true")
			}
			one.Container, one.Log = log.Container, LogsURL(environment, solution, to...)
		}
		causes = append(causes, one)
	}
	return causes
}

// Searchable reports whether one looks for a Solution in a namespace with a filter: in the first one that has many.
func (e *Environment) Searchable(namespace string) bool {
	const many = 9
	for _, n := range e.Status.Namespaces {
		if len(n.Deployments) >= many {
			return n.Name == namespace
		}
	}
	return false
}

// NewerOf returns the release that is ready to be installed in place of the deployed version; "" for none.
func (e *Environment) NewerOf(namespace, solution string) string {
	return e.Newer[Deployment{namespace, solution}]
}

// SignedBy returns who has signed the deployed version, in a few words; "" where that is not known.
func (e *Environment) SignedBy(namespace, solution string) string {
	return signedBy(e.Signers[Deployment{namespace, solution}])
}

// On returns the actions on a Solution in a namespace.
func (e *Environment) On(namespace, solution string) []Action {
	return e.Deployments[Deployment{namespace, solution}]
}
