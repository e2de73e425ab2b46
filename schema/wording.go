package schema

import (
	"fmt"
	"slices"
	"strings"
)

// titleWords are the past tense of a verb, before the name of the Solution, and a preposition, before that of the environment.
var titleWords = map[string][2]string{
	"activate":   {"activated"},
	"deactivate": {"deactivated"},
	"add":        {"added", "to"},
	"remove":     {"removed", "from"},
	"upgrade":    {"upgraded to", "in"},
	"downgrade":  {"downgraded to", "in"},
	"repair":     {"repaired", "in"},
	"rollback":   {"rolled back to", "in"},
	"diff":       {"compared", "in"},
	"delete":     {"deleted"},
	"purge":      {"purged"},
}

// creationWords say what creating an environment did to its namespace.
var creationWords = map[Action]string{
	ActionCreate: "created",
	ActionAdopt:  "taken over",
	ActionUpdate: "was there; its description is changed",
	ActionNone:   "was there already",
}

// Title says in one line what was done, or what would be.
func (o *Operation) Title() string {
	if o.Operation == "create" && len(o.Parts) == 1 && len(o.Parts[0].Changes) == 1 {
		part := o.Parts[0]
		return fmt.Sprintf("environment %s: namespace %s %s", o.Environment, part.Namespace, creationWords[part.Changes[0].Action])
	}
	words, known := titleWords[o.Operation]
	if !known {
		words = [2]string{o.Operation, "in"}
	}
	if o.Planned && o.Operation != "diff" {
		words[0] = "to " + o.Operation
	}
	parts := []string{words[0], o.Solution, o.Version}
	if o.Environment != "" {
		parts = append(parts, words[1], "environment", o.Environment)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// Place says where a part of an operation takes place, and with which Solution where there are several.
func (p *OperationPart) Place() string {
	place := "cluster"
	if p.Namespace != "" {
		place = "namespace " + p.Namespace
	}
	if p.Solution != "" {
		place += ", " + strings.TrimSpace(p.Solution+" "+p.Version)
	}
	if p.Resumes {
		place += ", finishing what was interrupted"
	}
	return place
}

// Summary counts the changes of a part of the operation.
func (o *Operation) Summary(p *OperationPart) string {
	var counts []string
	for _, word := range []struct {
		action     Action
		will, done string
	}{
		{ActionCreate, "to create", "created"},
		{ActionUpdate, "to change", "changed"},
		{ActionReplace, "to replace", "replaced"},
		{ActionAdopt, "to take over", "taken over"},
		{ActionDelete, "to delete", "deleted"},
		{ActionKeep, "kept", "kept"},
		{ActionSkip, "skipped", "skipped"},
		{ActionNone, "unchanged", "unchanged"},
	} {
		if n := p.Count(word.action); n > 0 {
			text := word.done
			if o.Planned {
				text = word.will
			}
			counts = append(counts, fmt.Sprintf("%d %s", n, text))
		}
	}
	if len(counts) == 0 {
		return "no objects"
	}
	return strings.Join(counts, ", ")
}

// Nothing says what an operation that is [Operation.Empty] comes to.
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
