package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// titleWords maps a verb to its imperative and past tense, used before the name of the Solution, and to the preposition
// before the name of the environment.
var titleWords = map[string]struct{ order, done, at string }{
	VerbActivate:       {"activate", "activated", ""},
	VerbDeactivate:     {"deactivate", "deactivated", ""},
	VerbAdd:            {"add", "added", "to"},
	VerbRemove:         {"remove", "removed", "from"},
	VerbUpgrade:        {"upgrade to", "upgraded to", "in"},
	VerbDowngrade:      {"downgrade to", "downgraded to", "in"},
	VerbRepair:         {"repair", "repaired", "in"},
	VerbEnsure:         {"change", "changed", ""},
	VerbRollback:       {"roll back to", "rolled back to", "in"},
	VerbRemoveWebhooks: {"remove the webhooks of", "removed the webhooks of", ""},
	"diff":             {"compare", "compared", "in"},
	"create":           {"create", "created", ""},
	VerbDelete:         {"delete", "deleted", ""},
	"purge":            {"purge", "purged", ""},
	"import":           {"import", "imported", ""},
	"unimport":         {"unimport", "unimported", ""},
	"create-app":       {"create", "created", "in"},
	"delete-app":       {"delete", "deleted", "in"},
}

// creationWords describe what creating an environment did to its namespace.
var creationWords = map[Action]string{
	ActionCreate: "created",
	ActionAdopt:  "adopted",
	ActionUpdate: "was there; its description is changed",
	ActionNone:   "was there already",
}

// Title describes the operation, done or planned, in one line.
func (o *Operation) Title() string {
	if o.Operation == "create" && len(o.Parts) == 1 && len(o.Parts[0].Changes) == 1 {
		part := o.Parts[0]
		return fmt.Sprintf("environment %s: namespace %s %s", o.Environment, part.Namespace, creationWords[part.Changes[0].Action])
	}
	if o.Operation == VerbDelete && o.Empty() {
		return o.phrase("there is no")
	}
	if o.Planned && o.Operation != "diff" {
		return o.phrase("to " + o.Operation)
	}
	return o.phrase(cmp.Or(titleWords[o.Operation].done, o.Operation))
}

// Heading describes the operation in one line, in the imperative.
func (o *Operation) Heading() string {
	return report.Capitalized(o.phrase(cmp.Or(titleWords[o.Operation].order, o.Operation)))
}

// phrase is some words for what is done, with what it is done to.
func (o *Operation) phrase(doing string) string {
	parts := []string{doing, o.Solution, o.Version}
	if o.Environment != "" {
		words, known := titleWords[o.Operation]
		if !known {
			words.at = "in"
		}
		if o.Namespace != "" {
			parts = append(parts, "namespace", o.Namespace)
			words.at = "of"
		}
		parts = append(parts, words.at, "environment", o.Environment)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// Strings returns the texts of a list.
func Strings[T fmt.Stringer](list []T) []string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = element.String()
	}
	return texts
}

// Place returns the place of a part of an operation, with the Solution if there are several.
func (p *OperationPart) Place() string {
	place := "cluster"
	if p.Namespace != "" {
		place = "namespace " + p.Namespace
	}
	if p.Solution != "" {
		place += ", " + strings.TrimSpace(p.Solution+" "+p.Version)
	}
	if p.Component != "" {
		place += ", component " + p.Component
	}
	if p.Resumes {
		place += ", finishing what was interrupted"
	}
	return place
}

// Tally is to how many objects the same happens, with the words for it.
type Tally struct {
	Action Action
	Number int
	Words  string
}

// Tally counts the changes of a part of the operation.
func (o *Operation) Tally(p *OperationPart) []Tally {
	var tally []Tally
	for _, word := range []struct {
		action     Action
		will, done string
	}{
		{ActionCreate, "to create", "created"},
		{ActionUpdate, "to change", "changed"},
		{ActionReplace, "to replace", "replaced"},
		{ActionAdopt, "to adopt", "adopted"},
		{ActionDelete, "to delete", "deleted"},
		{ActionKeep, "kept", "kept"},
		{ActionSkip, "skipped", "skipped"},
		{ActionNone, "unchanged", "unchanged"},
	} {
		if n := p.Count(word.action); n > 0 {
			one := Tally{word.action, n, word.done}
			if o.Planned {
				one.Words = word.will
			}
			tally = append(tally, one)
		}
	}
	return tally
}

// Summary returns how many objects a part of the operation changes, in words.
func (o *Operation) Summary(p *OperationPart) string {
	var counts []string
	for _, one := range o.Tally(p) {
		counts = append(counts, fmt.Sprintf("%d %s", one.Number, one.Words))
	}
	if len(counts) == 0 {
		return "no objects"
	}
	return strings.Join(counts, ", ")
}

// Nothing describes the result of an operation that is [Operation.Empty].
func (o *Operation) Nothing() string {
	if o.Operation == "diff" {
		return "no differences"
	}
	return "nothing to do"
}

// Place names where something was done: the environment, with the namespace where that has another name.
func (h *HistoryEntry) Place() string {
	switch {
	case h.Namespace == "":
		return "cluster"
	case h.Environment == "", h.Environment == h.Namespace:
		return h.Namespace
	default:
		return h.Environment + "/" + h.Namespace
	}
}

// What names the Solution that an operation was about, with the component if it was one.
func (h *HistoryEntry) What() string {
	if h.Component == "" {
		return h.Solution
	}
	return h.Solution + "." + h.Component
}
