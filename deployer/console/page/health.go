package page

import (
	"cmp"
	"slices"
	"strings"

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
	for _, p := range o.Status.Deployments() {
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
func (o *Overview) Deployments() int { return len(o.Status.Deployments()) }

// NotReady are the deployments that are not ready, the worst first.
func (o *Overview) NotReady() []schema.PlacedDeployment {
	notReady := slices.DeleteFunc(o.Status.Deployments(), func(p schema.PlacedDeployment) bool { return p.Health == schema.HealthReady })
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

// Matrix shows the environments that match the query.
func (o *Overview) Matrix() matrix { return newMatrix(o.Status.Environments, o.Query) }

// Matrix shows the environments that match the query.
func (e *Environments) Matrix() matrix { return newMatrix(e.Environments, e.Query) }

// maxColumns is the number of Solutions up to which each has a column of its own.
const maxColumns = 7

// matrix is a table of environments and Solutions.
type matrix struct {
	Columns []string // Solutions; none where there are too many
	Rows    []row
	All     int // rows without the query
}

// row is a namespace of an environment; an environment without one has a row, too.
type row struct {
	Environment, Description string
	Namespace                string
	Terminating              bool
	Problems                 []string
	Worst                    schema.DeploymentHealth
	Cells                    []*schema.DeploymentStatus // one for each column, nil where the Solution is not there
}

func newMatrix(environments []schema.EnvironmentStatus, query string) matrix {
	var m matrix
	for _, e := range environments {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				m.Columns = append(m.Columns, d.Solution)
			}
		}
	}
	slices.Sort(m.Columns)
	m.Columns = slices.Compact(m.Columns)
	if len(m.Columns) > maxColumns {
		m.Columns = nil
	}
	for _, e := range environments {
		namespaces := e.Namespaces
		if len(namespaces) == 0 {
			namespaces = []schema.NamespaceStatus{{}}
		}
		for _, n := range namespaces {
			m.All++
			if r := newRow(e, n, m.Columns); r.matches(query) {
				m.Rows = append(m.Rows, r)
			}
		}
	}
	return m
}

func newRow(e schema.EnvironmentStatus, n schema.NamespaceStatus, columns []string) row {
	r := row{
		Environment: e.Name, Description: e.Description, Namespace: n.Name, Terminating: n.Terminating, Problems: n.Problems,
		Cells: make([]*schema.DeploymentStatus, len(columns)),
	}
	for i := range n.Deployments {
		d := &n.Deployments[i]
		if r.Worst == "" || worse(d.Health, r.Worst) < 0 {
			r.Worst = d.Health
		}
		if column, ok := slices.BinarySearch(columns, d.Solution); ok {
			r.Cells[column] = d
		} else {
			r.Cells = append(r.Cells, d)
		}
	}
	return r
}

func (r row) matches(query string) bool {
	if query == "" {
		return true
	}
	texts := []string{r.Environment, r.Description, r.Namespace}
	for _, d := range r.Cells {
		if d == nil {
			continue
		}
		texts = append(texts, d.Solution+" "+d.Version)
		if d.Health != schema.HealthReady || r.Worst == schema.HealthReady { // as shown on the page, for the browser's search
			texts = append(texts, string(d.Health), Text("health."+string(d.Health)))
		}
	}
	return matches(query, texts...)
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
func (e *Environment) Reasons(d schema.DeploymentStatus) []string {
	return slices.DeleteFunc(slices.Clone(d.Reasons), func(reason string) bool {
		return slices.ContainsFunc(d.Drift, func(c schema.Change) bool {
			return len(c.Fields) > 0 && strings.HasPrefix(reason, c.Object.String()+" was changed: ")
		})
	})
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
	signers, known := e.Signers[Deployment{namespace, solution}]
	switch {
	case !known:
		return ""
	case len(signers) == 0:
		return Text("environment.unsigned")
	default:
		return Text("environment.signed", strings.Join(signers, ", "))
	}
}

// On returns the actions on a Solution in a namespace.
func (e *Environment) On(namespace, solution string) []Action {
	return e.Deployments[Deployment{namespace, solution}]
}
