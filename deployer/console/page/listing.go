package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// Listing is how a list is shown. All of it is in the address of the page, so that it survives a reload and can be passed on.
type Listing struct {
	// Query are words that each row has: parameter "q". The other rows are hidden.
	Query string
	// Sort is the key of the column by which rows are sorted, with "-" before it for the reverse order: parameter "sort". With an unknown
	// one, rows keep the order that they have.
	Sort string
	// State leaves only rows in that state: parameter "state".
	State string
	// Group puts rows with the same state together: parameter "group" with the value "state".
	Group bool
	path  string // of the page
}

// NewListing returns the listing that the parameters of a page ask for.
func NewListing(parameter func(name string) string) Listing {
	l := Listing{Query: parameter("q"), Sort: parameter("sort"), State: parameter("state"), Group: parameter("group") == stateGroup}
	if rank(l.State) < 0 {
		l.State = ""
	}
	return l
}

// stateGroup is the only value of parameter "group".
const stateGroup = "state"

// at returns the listing on a page.
func (l Listing) at(path string) Listing {
	l.path = path
	return l
}

// url is the address of the page with this listing.
func (l Listing) url() string {
	group := ""
	if l.Group {
		group = stateGroup
	}
	to := Query(l.path, "q", l.Query, "sort", l.Sort, "state", l.State, "group", group)
	if l.path == URL() {
		to += "#environments" // far down on the overview
	}
	return to
}

// Kept are the parameters that a search sends along.
func (l Listing) Kept() []Hidden {
	var kept []Hidden
	for _, h := range []Hidden{{"sort", l.Sort}, {"state", l.State}} {
		if h.Value != "" {
			kept = append(kept, h)
		}
	}
	if l.Group {
		kept = append(kept, Hidden{"group", stateGroup})
	}
	return kept
}

// Clear is the link that shows all rows again; nil where no filter is set.
func (l Listing) Clear() *Link {
	if l.Query == "" && l.State == "" {
		return nil
	}
	l.Query, l.State = "", ""
	return &Link{Label: Text("facet.clear"), URL: l.url()}
}

// heading is the head of a column by which a list can be sorted.
type heading struct {
	Label string
	Order string // of aria-sort; "" unless rows are sorted by it
	URL   string // sorts by it; the other way round where rows are sorted by it already
}

// Heading is the head of a column.
func (l Listing) Heading(key, label string) heading {
	h := heading{Label: label}
	next := l
	switch next.Sort = key; l.Sort {
	case key:
		h.Order, next.Sort = "ascending", "-"+key
	case "-" + key:
		h.Order = "descending"
	}
	h.URL = next.url()
	return h
}

// sorted sorts rows by the column of the listing; those that are equal keep their order. Compare returns how the rows of a column are
// compared, nil for an unknown one; rows for which isLast is true come last either way.
func sorted[T any](l Listing, rows []T, compare func(key string) func(a, b T) int, isLast func(key string, row T) bool) []T {
	key, reverse := strings.CutPrefix(l.Sort, "-")
	by := compare(key)
	if by == nil {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b T) int {
		switch lastA, lastB := isLast(key, a), isLast(key, b); {
		case lastA != lastB:
			if lastA {
				return 1
			}
			return -1
		case lastA:
			return 0
		case reverse:
			return by(b, a)
		default:
			return by(a, b)
		}
	})
	return rows
}

// The states of rows that do not describe health.
const (
	stateEmpty    = "empty"    // of an environment without a Solution
	stateActive   = "active"   // of a Solution
	stateInactive = "inactive" // of a Solution without an active version
)

// stateText is the word for a state.
func stateText(state string) string {
	switch state {
	case stateEmpty:
		return Text("matrix.empty")
	case stateActive, stateInactive:
		return Text("solutions." + state)
	default:
		return Text("health." + state)
	}
}

// rank is the place of a state, the worst first; -1 of a word that is none.
func rank(state string) int { return slices.Index(states, state) }

// states are the states of rows, the worst first.
var states = func() []string {
	var list []string
	for _, health := range badness {
		if health == schema.HealthReady {
			list = append(list, string(schema.AppDeleting))
		}
		list = append(list, string(health))
	}
	return append(list, stateEmpty, stateActive, stateInactive)
}()

// facet is a state that leaves only a part of a list.
type facet struct {
	State, Label string // State is "" for all
	Number       int
	URL          string
	Current      bool
}

// facets are all rows, and the states of rows, the worst first; none where all rows are in one state. StatesOf returns those of a row.
func facets[T any](l Listing, rows []T, statesOf func(row T) []string) []facet {
	numbers := map[string]int{}
	if l.State != "" {
		numbers[l.State] = 0 // it can be left when its last row has gone
	}
	for _, row := range rows {
		for _, state := range statesOf(row) {
			numbers[state]++
		}
	}
	if len(numbers) < 2 && l.State == "" {
		return nil
	}
	all := l
	all.State = ""
	list := []facet{{Label: Text("facet.all"), Number: len(rows), URL: all.url(), Current: l.State == ""}}
	for state, number := range numbers {
		only := l
		only.State = state
		list = append(list, facet{State: state, Label: stateText(state), Number: number, URL: only.url(), Current: l.State == state})
	}
	slices.SortFunc(list[1:], func(a, b facet) int {
		return cmp.Or(rank(a.State)-rank(b.State), strings.Compare(a.State, b.State))
	})
	return list
}

// Grouping is the link that groups rows by state, or leaves that.
func (l Listing) Grouping() Link {
	label := Text("facet.group")
	if l.Group {
		label = Text("facet.ungroup")
	}
	l.Group = !l.Group
	return Link{Label: label, URL: l.url()}
}
