package page

import (
	"cmp"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
)

// appRow is an instance in a list.
type appRow struct {
	schema.App
	Hidden bool // it does not match the query
}

// The keys of columns that no other list has.
const (
	columnName     = "name"
	columnKind     = "kind"
	columnOf       = "solution"
	columnIn       = "namespace"
	columnCreation = "created"
)

func (a *Apps) listing() Listing { return a.Listing.at(URL("environments", a.Environment, "apps")) }

// Headings are the heads of the columns.
func (a *Apps) Headings() []heading {
	var heads []heading
	for _, key := range []string{columnName, columnHealth, columnKind, columnOf, columnIn, columnCreation} {
		heads = append(heads, a.listing().Heading(key, Text("column."+key)))
	}
	return heads
}

// Facets are the states of the instances.
func (a *Apps) Facets() []facet {
	return facets(a.listing(), a.List.Apps, func(app schema.App) []string { return []string{string(app.Health)} })
}

// Toggle is nil: a list of instances is not grouped.
func (a *Apps) Toggle() *Link { return nil }

// Clear is the link that shows all instances again; nil where no filter is set.
func (a *Apps) Clear() *Link { return a.listing().Clear() }

// Rows are the instances as the listing has them.
func (a *Apps) Rows() []appRow {
	var rows []appRow
	for _, app := range a.List.Apps {
		if a.Listing.State == "" || a.Listing.State == string(app.Health) {
			rows = append(rows, appRow{app, !matches(a.Listing.Query, app.Name, app.Namespace, app.Kind, app.Solution, string(app.Health))})
		}
	}
	return sorted(a.Listing, rows, compareApps, func(string, appRow) bool { return false })
}

// Shown is how many instances match the query.
func (a *Apps) Shown() int {
	return len(slices.DeleteFunc(a.Rows(), func(r appRow) bool { return r.Hidden }))
}

// compareApps returns how instances are compared in a column.
func compareApps(key string) func(a, b appRow) int {
	text := map[string]func(r appRow) string{
		columnName: func(r appRow) string { return r.Name }, columnKind: func(r appRow) string { return r.Kind },
		columnOf: func(r appRow) string { return r.Solution }, columnIn: func(r appRow) string { return r.Namespace },
	}[key]
	switch {
	case text != nil:
		return func(a, b appRow) int { return cmp.Compare(text(a), text(b)) }
	case key == columnHealth:
		return func(a, b appRow) int { return rank(string(a.Health)) - rank(string(b.Health)) }
	case key == columnCreation:
		return func(a, b appRow) int { return a.Created.Compare(b.Created) }
	default:
		return nil
	}
}
