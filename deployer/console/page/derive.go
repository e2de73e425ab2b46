package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// group is a Solution with those of its versions that were found.
type group struct {
	Name, DisplayName string
	Versions          []schema.FoundVersion // the highest first
}

// SignedBy describes who has signed a version, "" where that is not known.
func (g group) SignedBy(v schema.FoundVersion) string { return signedBy(v.Signers) }

// Signed describes who has signed all versions; "" where that is not known of each, or they have different signers.
func (g group) Signed() string {
	for _, v := range g.Versions {
		if v.Signers == nil || !slices.Equal(v.Signers, g.Versions[0].Signers) {
			return ""
		}
	}
	return signedBy(g.Versions[0].Signers)
}

// signedBy names the signers of an imported version; "" of nil: they are not known.
func signedBy(signers []string) string {
	switch {
	case signers == nil:
		return ""
	case len(signers) == 0:
		return Text("environment.unsigned")
	default:
		return Text("environment.signed", strings.Join(signers, ", "))
	}
}

// state reports whether one of the versions is active.
func (g group) state() string {
	if slices.ContainsFunc(g.Versions, func(v schema.FoundVersion) bool { return v.Active }) {
		return stateActive
	}
	return stateInactive
}

// used is in how many environments the versions are deployed.
func (g group) used() int {
	n := 0
	for _, v := range g.Versions {
		n += len(v.Environments)
	}
	return n
}

// all are the Solutions that were found, by name.
func (s *Solutions) all() []group {
	var groups []group
	for _, v := range s.Result.Versions {
		if len(groups) == 0 || groups[len(groups)-1].Name != v.Name {
			groups = append(groups, group{Name: v.Name, DisplayName: cmp.Or(v.DisplayName, v.Name)})
		}
		last := &groups[len(groups)-1]
		last.Versions = append(last.Versions, v)
	}
	for _, g := range groups {
		slices.Reverse(g.Versions)
	}
	return groups
}

// columnUse sorts Solutions by the number of their environments.
const columnUse = "-used"

func (s *Solutions) listing() Listing { return s.Listing.at(URL("solutions")) }

// Groups are the Solutions as the listing has them.
func (s *Solutions) Groups() []group {
	groups := slices.DeleteFunc(s.all(), func(g group) bool { return s.Listing.State != "" && g.state() != s.Listing.State })
	if s.Listing.Sort == columnUse {
		slices.SortStableFunc(groups, func(a, b group) int { return b.used() - a.used() })
	}
	return groups
}

// Facets are the states of the Solutions.
func (s *Solutions) Facets() []facet {
	return facets(s.listing(), s.all(), func(g group) []string { return []string{g.state()} })
}

// Clear is the link that shows all Solutions again; nil where no filter is set.
func (s *Solutions) Clear() *Link { return s.listing().Clear() }

// Toggle is the link that sorts the Solutions by use, or by name.
func (s *Solutions) Toggle() *Link {
	l, label := s.listing(), Text("facet.byuse")
	if l.Sort == columnUse {
		l.Sort, label = "", Text("facet.byname")
	} else {
		l.Sort = columnUse
	}
	return &Link{Label: label, URL: l.url()}
}

// versionRow is a version of a Solution with everything that is known of it.
type versionRow struct {
	schema.ImportedVersion
	Compatibility *schema.VersionCompatibility
	Environments  []string
	Needs         []string
	Actions       []Action
}

// Why are the reasons of the verdict.
func (r versionRow) Why() []string {
	c := r.Compatibility
	why := slices.Concat(c.Losses, c.Refusals, c.Notices)
	for _, o := range c.Operators {
		for _, reason := range o.Reasons {
			why = append(why, o.Environment+": "+reason)
		}
	}
	return why
}

// Rows are the versions, the highest first.
func (s *Solution) Rows() []versionRow {
	var rows []versionRow
	for _, v := range s.Status.Versions {
		r := versionRow{ImportedVersion: v, Actions: s.VersionActions[v.Version]}
		if s.Compatibility != nil {
			for i := range s.Compatibility.Versions {
				if s.Compatibility.Versions[i].Version == v.Version {
					r.Compatibility = &s.Compatibility.Versions[i]
				}
			}
		}
		for _, found := range s.Versions {
			if found.Version == v.Version {
				r.Environments = found.Environments
			}
		}
		for _, need := range s.Needs[v.Version] {
			r.Needs = append(r.Needs, strings.TrimSpace(need.Solution+" "+need.Version))
		}
		rows = append(rows, r)
	}
	slices.Reverse(rows)
	return rows
}

// State is the state of an operation in one word.
func (r Running) State() string {
	switch {
	case r.Stopped:
		return "stopped"
	case r.Failed:
		return "failed"
	case r.Finished != nil:
		return "done"
	default:
		return "running"
	}
}

// Title names the operation.
func (r Running) Title() string { return r.Operation.Heading() }

// Values returns the spec fields of the instance, with dotted paths as names.
func (a *App) Values() []Fact { return flatten("", a.App.Shown, nil) }

func flatten(prefix string, values map[string]any, facts []Fact) []Fact {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name].(type) {
		case map[string]any:
			facts = flatten(prefix+name+".", value, facts)
		case string:
			facts = append(facts, Fact{prefix + name, value})
		default:
			text, err := json.Marshal(value)
			if err != nil {
				text = fmt.Append(nil, value)
			}
			facts = append(facts, Fact{prefix + name, string(text)})
		}
	}
	return facts
}

// NameInput asks for the name of a new instance.
func (c *AppEdit) NameInput() Input {
	return Input{Name: "name", Label: Text("appedit.name"), Help: Text("appedit.namehelp"), Value: c.Name, Required: true}
}

// RollBackTo returns the action that rolls back to a history entry; nil where that is not possible.
func (h *History) RollBackTo(i int) *Action {
	if a, ok := h.RollBack[i]; ok {
		return &a
	}
	return nil
}

// area holds the checks of one area.
type area struct {
	ID, Area string
	Checks   []schema.Check
}

// Areas are the checks by area, problems first.
func (d *Doctor) Areas() []area {
	grave := []schema.CheckResult{schema.CheckProblem, schema.CheckWarning, schema.CheckOK, schema.CheckSkipped}
	var areas []area
	for _, c := range d.Diagnosis.Checks {
		i := slices.IndexFunc(areas, func(a area) bool { return a.Area == c.Area })
		if i < 0 {
			i = len(areas)
			areas = append(areas, area{ID: ident("area", c.Area), Area: c.Area})
		}
		areas[i].Checks = append(areas[i].Checks, c)
	}
	for _, a := range areas {
		slices.SortStableFunc(a.Checks, func(x, y schema.Check) int {
			return cmp.Compare(slices.Index(grave, x.Result), slices.Index(grave, y.Result))
		})
	}
	return areas
}

// Remedy is the action by which a check can be answered, nil where there is none.
func (d *Doctor) Remedy(c schema.Check) *Action {
	if a, ok := d.Remedies[c.Area+"/"+c.Name]; ok {
		return &a
	}
	return nil
}
