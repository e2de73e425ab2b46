package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// maxColumns is the number of Solutions up to which each has a column of its own.
const maxColumns = 7

// matrix is a table of environments and Solutions.
type matrix struct {
	Listing
	Columns []string // Solutions; none where there are too many
	Groups  []rowGroup
	Facets  []facet
	Shown   int // rows that match the query
	All     int // rows in the state of the listing
}

// rowGroup are rows below each other.
type rowGroup struct {
	State string // that they have in common; "" where all rows are one group
	Rows  []row
	Shown int
}

// row is a namespace of an environment; an environment without one has a row, too.
type row struct {
	Environment, Description string
	Namespace                string
	Terminating              bool
	Problems                 []string
	Worst                    schema.DeploymentHealth
	Cells                    []*schema.DeploymentStatus // one for each column, nil where the Solution is not there
	Hidden                   bool                       // it does not match the query
}

func newMatrix(environments []schema.EnvironmentStatus, l Listing) matrix {
	m := matrix{Listing: l}
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
	var rows []row
	for _, e := range environments {
		namespaces := e.Namespaces
		if len(namespaces) == 0 {
			namespaces = []schema.NamespaceStatus{{}}
		}
		for _, n := range namespaces {
			rows = append(rows, newRow(e, n, m.Columns))
		}
	}
	m.Facets = facets(l, rows, row.states)
	rows = slices.DeleteFunc(rows, func(r row) bool { return l.State != "" && !slices.Contains(r.states(), l.State) })
	rows = sorted(l, rows, m.compare, m.isLast)
	m.All = len(rows)
	m.Groups = []rowGroup{{Rows: rows}}
	if l.Group {
		m.Groups = groupRows(rows)
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		for k := range g.Rows {
			if g.Rows[k].Hidden = !g.Rows[k].matches(l.Query); !g.Rows[k].Hidden {
				g.Shown++
			}
		}
		m.Shown += g.Shown
	}
	return m
}

// Label names the state of a group.
func (g rowGroup) Label() string { return stateText(g.State) }

// Toggle is the link that groups the rows or leaves that.
func (m matrix) Toggle() *Link { return new(m.Grouping()) }

// groupRows puts rows together that have the same worst state, the worst ones first.
func groupRows(rows []row) []rowGroup {
	var groups []rowGroup
	for _, r := range rows {
		state := cmp.Or(string(r.Worst), stateEmpty)
		i := slices.IndexFunc(groups, func(g rowGroup) bool { return g.State == state })
		if i < 0 {
			i = len(groups)
			groups = append(groups, rowGroup{State: state})
		}
		groups[i].Rows = append(groups[i].Rows, r)
	}
	slices.SortStableFunc(groups, func(a, b rowGroup) int { return rank(a.State) - rank(b.State) })
	return groups
}

// The keys of columns.
const (
	columnEnvironment = "environment"
	columnHealth      = "health"
	columnSolution    = "solution." // before the name of one
)

// column returns the place of the column of a Solution.
func (m matrix) column(key string) (int, bool) {
	solution, ok := strings.CutPrefix(key, columnSolution)
	if !ok {
		return 0, false
	}
	return slices.BinarySearch(m.Columns, solution)
}

// Headings are the heads of the columns.
func (m matrix) Headings() []heading {
	l := m.Listing
	l.Sort = cmp.Or(l.Sort, columnEnvironment)
	heads := []heading{l.Heading(columnEnvironment, Text("column.environment")), l.Heading(columnHealth, Text("column.health"))}
	for _, c := range m.Columns {
		heads = append(heads, l.Heading(columnSolution+c, c))
	}
	if m.Columns == nil {
		heads = append(heads, heading{Label: Text("column.solutions")})
	}
	return heads
}

// compare returns how rows are compared in a column.
func (m matrix) compare(key string) func(a, b row) int {
	column, ok := m.column(key)
	switch {
	case key == columnEnvironment:
		return func(a, b row) int {
			return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Namespace, b.Namespace))
		}
	case key == columnHealth:
		return func(a, b row) int { return worse(a.Worst, b.Worst) }
	case ok: // equal versions come together, the worst of them first
		return func(a, b row) int {
			x, y := a.Cells[column], b.Cells[column]
			return cmp.Or(schema.CompareVersions(x.Version, y.Version), worse(x.Health, y.Health))
		}
	default:
		return nil
	}
}

// isLast reports whether a row has nothing in a column.
func (m matrix) isLast(key string, r row) bool {
	if key == columnHealth {
		return r.Worst == ""
	}
	column, ok := m.column(key)
	return ok && r.Cells[column] == nil
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

// states lists the states of the deployments of a row. It is ready if all of them are.
func (r row) states() []string {
	if r.Worst == "" {
		return []string{stateEmpty}
	}
	var states []string
	for _, d := range r.Cells {
		if d != nil && (d.Health != schema.HealthReady || r.Worst == schema.HealthReady) && !slices.Contains(states, string(d.Health)) {
			states = append(states, string(d.Health))
		}
	}
	return states
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
